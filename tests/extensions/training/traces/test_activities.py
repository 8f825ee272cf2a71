"""Which kernels of a GPU communicate inside ops, and how."""

import json

import pytest

from pipeplan.costs import LANES
from pipeplan.extensions.training.traces.activities import lane_of
from pipeplan.extensions.training.traces.annotations import RESOLUTION
from pipeplan.extensions.training.traces.kineto import parse_rank
from pipeplan.extensions.training.traces.traced_run import MeasuredRun, traced_run
from tests.extensions.training.traces.gpu_traces import COMPUTE, EXPERTS, MAIN, MESSAGES, SEND_RECV, GpuRank


@pytest.mark.parametrize(
    ("kernel", "collective", "lane"),
    [
        (SEND_RECV, "all_to_allv", "all_to_all"),
        (SEND_RECV, "send", "compute"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "", None),
        ("ncclDevKernel_AllGather_RING_LL", "_allgather_base", "all_gather"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "", "all_reduce"),
        ("rcclGenericKernel<1, false>", "all_to_all", "all_to_all"),
        ("void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(int4*)", "", "all_to_all"),
        ("void dpsk::ep::internode::cached_notify<false>(int)", "", "all_to_all"),
        ("dispatch", "", "all_to_all"),
        ("deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)", "", "compute"),
        ("triton_poi_fused_all_to_all_single_clone_permute_view_0", "", "compute"),
        ("void at::native::dispatch_elementwise(int)", "", "compute"),
    ],
)
def test_lanes_of_kernels(kernel, collective, lane):
    """A ``SendRecv`` without the name of its collective has none by itself."""
    found = lane_of(kernel, collective)
    assert (None if found < 0 else LANES[found]) == lane


def op_of(
    *kernels: tuple[str, int, float, float], outside: tuple[str, int] | None = None, collective: str = ""
) -> MeasuredRun:
    """A run of an F with these kernels (name, stream, start and end in microseconds), and of a B."""
    writer = GpuRank()
    writer.annotate("PP:0F0", 0, 50)
    for number, (name, stream, start, end) in enumerate(kernels):
        own = {"Collective name": collective} if collective and stream != COMPUTE else {}
        writer.launch(1 + number, MAIN, name, stream, start, end, **own)
    if outside is not None:
        writer.launch(60, MAIN, *outside, 400, 450)
    writer.annotate("PP:0B0", 100, 50)
    writer.launch(105, MAIN, "gemm", COMPUTE, 500, 600)
    return traced_run([parse_rank("a", json.dumps({"traceEvents": writer.events}))])


GEMM, LATER = ("gemm", COMPUTE, 0, 100), ("gemm", COMPUTE, 140, 200)
BETWEEN = (SEND_RECV, EXPERTS, 100, 140)


@pytest.mark.parametrize(
    ("run", "exposed", "time"),
    [
        (op_of(GEMM, BETWEEN, LATER, outside=(SEND_RECV, MESSAGES)), [0.04], 0.2),
        (op_of(GEMM, BETWEEN, LATER, outside=(SEND_RECV, EXPERTS)), [], 0.2),
        (op_of(GEMM, BETWEEN, LATER, collective="recv"), [], 0.2),
        (op_of(BETWEEN, LATER), [], 0.06),
        (op_of(GEMM, (SEND_RECV, EXPERTS, 90, 140), ("gemm", COMPUTE, 104, 200)), [0], 0.2),
        (op_of(GEMM, LATER, (SEND_RECV, EXPERTS, 200, 250)), [], 0.2),
        (op_of(GEMM, LATER, (SEND_RECV, EXPERTS, 200, 250), collective="all_to_allv"), [0.05], 0.25),
        (op_of(GEMM, LATER, outside=("ncclDevKernel_AllReduce_Sum_f32_RING_LL", EXPERTS)), [], 0.2),
        (op_of(), [], RESOLUTION / 1e3),
    ],
)
def test_communication_in_ops_is_told_from_messages_and_from_what_is_outside(run, exposed, time):
    """Nothing is said of a run whose ops show no communication. An op ends with its all-to-all.

    Two kernels leave 4 microseconds of an all-to-all between them, which count as computation.
    """
    assert [rank for step in run.exposed for rank in step] == pytest.approx(exposed)
    (timeline,) = run.timelines
    assert timeline.end[0] - timeline.start[0] == pytest.approx(time)
