"""When an op worked: its stream's first work after what it receives."""

import json
from pathlib import Path

import numpy as np
import pytest

from pipeplan.costs import Settings
from pipeplan.extensions.training.traces import parse_kineto, read_run
from pipeplan.extensions.training.traces.annotations import RESOLUTION
from pipeplan.extensions.training.traces.kineto import parse_rank
from pipeplan.model import COMPUTE_KINDS, Kind, Timeline, among, crosses_ranks, dependencies
from pipeplan.passes import insert_communication
from pipeplan.simulation import compute_only, simulate
from pipeplan.strategies import STRATEGIES
from tests.extensions.training.traces.gpu_traces import AUTOGRAD, COMPUTE, MAIN, MESSAGES, GpuRank, gpu_traces

DATA = Path(__file__).parent / "data"

SCHEDULES = {
    "1f1b": STRATEGIES["1f1b"](STRATEGIES["1f1b"].shape(3, 4, 1)),
    "zb-h1": STRATEGIES["zb-h1"](STRATEGIES["zb-h1"].shape(2, 4, 1)),
    "zbv": STRATEGIES["zbv"](STRATEGIES["zbv"].shape(2, 4, 2)),
}


def run_of(name: str) -> Timeline:
    schedule = insert_communication(SCHEDULES[name])
    costs = Settings(time_unit="ms", p2p_time=2.0, forward_times=3.0).costs(schedule.placement)
    return simulate(schedule, costs, communication="blocking").timeline


@pytest.mark.parametrize("fsdp", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_on_a_gpu_the_kernels_after_the_receive_count(name, fsdp):
    """Not NCCL's, not the copies of an unshard, not what runs on a stream that only copies; autograd's thread counts."""
    run = run_of(name)
    (timeline,) = parse_kineto(gpu_traces(run, fsdp=fsdp))
    compute = among(run.schedule.columns.kind, COMPUTE_KINDS)
    zero = run.start[compute].min() - timeline.start[compute].min()
    np.testing.assert_allclose(timeline.start[compute] + zero, run.start[compute])
    np.testing.assert_allclose(timeline.end[compute] + zero, run.end[compute])


def one_rank(writer: GpuRank) -> Timeline:
    (timeline,) = parse_kineto({"a": json.dumps({"traceEvents": writer.events})})
    return timeline


def test_an_op_without_kernels_follows_the_one_before():
    writer = GpuRank()
    writer.annotate("PP:0F0", 0, 10)
    writer.launch(5, MAIN, "gemm", COMPUTE, 100, 400)
    writer.annotate("PP:0I0", 20, 10)
    writer.annotate("PP:0W0", 40, 10)
    writer.launch(45, AUTOGRAD, "gemm", COMPUTE, 700, 900)
    timeline = one_rank(writer)
    assert timeline.start.tolist() == pytest.approx([0, 0.3, 0.6])
    assert timeline.end.tolist() == pytest.approx([0.3, 0.3 + RESOLUTION / 1e3, 0.8])


def test_a_receive_that_ends_after_the_op_was_not_the_ops():
    """Its mark began another message too, one that is needed later."""
    writer = GpuRank()
    writer.annotate("PP:0F0", 0, 10)
    writer.launch(5, MAIN, "gemm", COMPUTE, 0, 100)
    writer.annotate("PP:0SEND_F0", 20, 5)
    writer.annotate("PP:1RECV_F0", 30, 5)
    writer.launch(31, MAIN, "ncclDevKernel_SendRecv", MESSAGES, 100, 900)
    writer.annotate("PP:1F0", 40, 10)
    writer.launch(45, MAIN, "gemm", COMPUTE, 200, 300)
    timeline = one_rank(writer)
    assert (timeline.start[3], timeline.end[3]) == pytest.approx((0.2, 0.3))


def test_all_kernels_of_a_launched_graph_count():
    writer = GpuRank()
    writer.annotate("PP:0F0", 0, 10)
    writer.launch(5, MAIN, "gemm", COMPUTE, 100, 200)
    kernel = writer.events[-1]
    writer.events.append(kernel | {"ts": 300.0, "dur": 50.0})
    assert one_rank(writer).end.tolist() == pytest.approx([0.25])


def host_trace(*events: tuple[str, str, float, float]) -> str:
    """A trace of a host: category, name, start and end in microseconds."""
    return json.dumps(
        {
            "traceEvents": [
                {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start}
                for category, name, start, end in events
            ]
        }
    )


def times_of(text: str) -> list[tuple[float, float]]:
    """Start and end of the ops of a rank, in microseconds from its first start."""
    (timeline,) = parse_kineto({"a": text})
    return [(1e3 * start, 1e3 * end) for start, end in zip(timeline.start, timeline.end, strict=True)]


WAITS = [
    ("user_annotation", "PP:0F0", 0, 40),
    ("cpu_op", "aten::mm", 0, 40),
    ("user_annotation", "PP:0SEND_F0", 40, 50),
    ("user_annotation", "PP:1RECV_F0", 50, 60),
    ("user_annotation", "gloo:recv", 52, 900),
    ("user_annotation", "PP:1F0", 60, 1500),
]


def test_on_a_host_operators_before_the_end_of_the_receive_are_not_the_ops():
    """An unshard copies parameters before the receive is waited for."""
    text = host_trace(
        *WAITS,
        ("user_annotation", "FSDP::all_gather_copy_out (0)", 65, 200),
        ("cpu_op", "fsdp::split_with_sizes_copy", 70, 190),
        ("cpu_op", "aten::copy_", 210, 220),
        ("cpu_op", "aten::mm_backward", 1000, 1400),
    )
    assert times_of(text)[-1] == pytest.approx((900, 1500))


def test_on_a_host_all_that_an_annotation_holds_but_receives_is_its_op():
    """What sleeps, reads data or computes in another library has no operators."""
    before = [
        ("user_annotation", "PP:0F0", 0, 22000),
        ("cpu_op", "aten::mm", 20000, 22000),
        ("user_annotation", "PP:0SEND_F0", 22000, 22010),
        ("user_annotation", "PP:1RECV_F0", 22010, 22020),
        ("user_annotation", "gloo:recv", 22012, 30000),
        ("user_annotation", "PP:1F0", 22020, 50000),
    ]
    for operators in (), [("cpu_op", "aten::mm", 22030, 22040)], [("cpu_op", "aten::mm", 48000, 50000)]:
        times = times_of(host_trace(*before, *operators))
        assert times[0] == pytest.approx((0, 22000))
        assert times[-1] == pytest.approx((30000, 50000))


def test_a_receive_inside_an_annotation_is_not_its_op_whatever_stands_before_it():
    """PyTorch 2.15 makes the buffer inside the annotation, before the receive."""
    text = host_trace(
        ("user_annotation", "Forward 0", 0, 100),
        ("cpu_op", "aten::mm", 10, 60),
        ("user_annotation", "Backward 0", 200, 900),
        ("cpu_op", "aten::empty_strided", 205, 210),
        ("cpu_op", "c10d::recv_", 220, 230),
        ("user_annotation", "gloo:recv", 221, 700),
        ("cpu_op", "aten::mm", 720, 890),
    )
    rank = parse_rank("a", text)
    assert (rank.start.tolist(), rank.end.tolist()) == ([0, 700], [100, 900])


def test_an_arrival_that_no_trace_tells_is_that_of_the_first_operator():
    text = host_trace(
        ("user_annotation", "PP:0F0", 0, 900),
        ("cpu_op", "c10d::recv_", 20, 30),
        ("cpu_op", "aten::mm", 720, 890),
    )
    rank = parse_rank("a", text)
    assert rank.end - rank.start == pytest.approx([180])


def test_a_pair_starts_with_its_forward_even_where_the_backward_waits():
    rank = [
        *WAITS[:-1],
        ("user_annotation", "PP:1F0", 60, 1000),
        ("cpu_op", "aten::mm", 950, 1000),
        ("user_annotation", "PP:1B0", 1000, 1100),
        ("cpu_op", "aten::mm", 1000, 1100),
        ("user_annotation", "PP:1SEND_B0", 1100, 1110),
        ("user_annotation", "PP:0RECV_B0", 1110, 1120),
        ("user_annotation", "gloo:recv", 1112, 1500),
        ("user_annotation", "PP:(0F1;0B0)OVERLAP_F_B", 1120, 2000),
        ("cpu_op", "aten::mm", 1200, 1300),
        ("cpu_op", "aten::mm", 1600, 1900),
        ("user_annotation", "PP:0SEND_F1", 2000, 2010),
        ("user_annotation", "PP:1RECV_F1", 2010, 2020),
        ("user_annotation", "PP:1F1", 2020, 2030),
    ]
    (timeline,) = parse_kineto({"a": host_trace(*rank)})
    pair = int(np.flatnonzero(timeline.schedule.joined)[0])
    assert timeline.start[[pair - 1, pair]] * 1e3 == pytest.approx([1120, 1120])
    assert timeline.end[[pair - 1, pair]] * 1e3 == pytest.approx([2000, 2000])


def test_an_unshard_is_not_the_first_stages_work():
    text = host_trace(
        ("user_annotation", "PP:0F0", 0, 500),
        ("user_annotation", "FSDP::all_gather_copy_out (0)", 5, 300),
        ("cpu_op", "fsdp::split_with_sizes_copy", 10, 290),
        ("cpu_op", "aten::mm", 310, 490),
        ("user_annotation", "PP:0B0", 600, 700),
        ("cpu_op", "aten::mm", 600, 690),
    )
    assert times_of(text) == [pytest.approx((0, 200)), pytest.approx((300, 400))]


def test_on_a_host_an_op_ends_where_it_turns_to_sending():
    text = host_trace(
        ("user_annotation", "PP:0F0", 0, 100),
        ("cpu_op", "c10d::broadcast_", 5, 8),
        ("cpu_op", "aten::mm", 10, 60),
        ("cpu_op", "c10d::broadcast_", 80, 90),
    )
    assert times_of(text) == [pytest.approx((0, 70))]


def test_the_loss_that_gpipe_computes_behind_a_forward_is_part_of_it():
    text = host_trace(
        ("user_annotation", "Forward 0", 0, 100),
        ("cpu_op", "aten::mm", 10, 60),
        ("cpu_op", "aten::cross_entropy_loss", 110, 150),
        ("user_annotation", "Backward 0", 200, 300),
        ("cpu_op", "aten::mm", 210, 290),
        ("cpu_op", "optimizer", 310, 400),
    )
    assert times_of(text) == [pytest.approx((0, 150)), pytest.approx((200, 300))]


@pytest.mark.parametrize("name", ["torchtitan_zbv_fsdp", "gpipe_fsdp"])
def test_in_real_runs_no_op_starts_before_what_it_needs_has_ended(name):
    """Recorded on a CPU with gloo, two pipeline ranks x FSDP on two: torchtitan 0.3.0 with PyTorch 2.14, PyTorch 2.13."""
    run = read_run(DATA / name)
    assert run.replicas == 2
    for timeline in map(compute_only, run.timelines):
        arrival = dependencies(timeline.schedule).arrival
        crossing = np.flatnonzero(crosses_ranks(timeline.schedule, arrival))
        assert (timeline.start[crossing] > timeline.end[arrival[crossing]]).all()
        assert (timeline.end > timeline.start).all()


def test_in_torchtitans_run_the_first_stages_i_takes_no_work():
    run = read_run(DATA / "torchtitan_zbv_fsdp")
    assert (run.steps, run.replicas, len(run.timelines), run.pauses) == (2, 2, 4, ())
    for timeline in run.timelines:
        schedule = timeline.schedule
        assert schedule.placement.rank_of == ((0, 1, 1, 0),)
        durations = timeline.end - timeline.start
        mine = (schedule.columns.kind == Kind.I) & (schedule.columns.stage == 0)
        assert durations[mine].max() < 0.5 < durations[(schedule.columns.kind == Kind.I) & ~mine].min()
