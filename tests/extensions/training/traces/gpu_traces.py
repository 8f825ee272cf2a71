"""Traces as PyTorch's profiler writes them of ranks with a GPU, made from a timeline: launches, kernels by stream, NCCL."""

import json
from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise
from typing import Any

from pipeplan.costs import Segments
from pipeplan.model import RECEIVE_KINDS, Kind, Timeline, dependencies, format_cells
from tests.costs.two_lanes import backward

Event = dict[str, Any]

COMPUTE, MESSAGES, EXPERTS, TENSOR_PARALLEL, COPIES = 7, 20, 21, 24, 28
"""Streams."""

MAIN, AUTOGRAD = 100, 101
"""Threads of the host."""

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
"""NCCL's kernel of a message, and of an all-to-all."""


class GpuRank:
    """Writes one rank's events. The host runs ahead: it launches everything before the GPU starts."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._launches = 0

    def annotate(self, name: str, start: float, duration: float) -> None:
        self.events.append(_event("user_annotation", name, start, duration, 1, MAIN))

    def launch(
        self, at: float, thread: int, name: str, stream: int, start: float, end: float, **arguments: str
    ) -> None:
        """A launch at a time of the host in microseconds, and what the GPU does for it."""
        self._launches += 1
        category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
        about = {"correlation": self._launches, "External id": 7}
        self.events.append(_event("cuda_runtime", call, at, 0.5, 1, thread) | {"args": about})
        result = _event(category, name, start, end - start, 0, stream)
        self.events.append(result | {"args": about | {"device": 0, "stream": stream} | arguments})


def gpu_trace(timeline: Timeline, rank: int, *, fsdp: bool = False, **changes: Any) -> str:
    """One rank's trace. Every op has two kernels with a tensor-parallel collective between them.

    With ``fsdp`` parameters are copied on the compute stream before the message has come, inside FSDP's annotation and
    outside. The host launches a backward from autograd's thread.
    """
    schedule = timeline.schedule
    writer = GpuRank()
    first, stop = schedule.offsets[rank], schedule.offsets[rank + 1]
    for number, (cell, position) in enumerate(zip(format_cells(schedule[rank]), range(first, stop), strict=True)):
        start, end = timeline.start[position] * 1e3, timeline.end[position] * 1e3
        at = number * 20.0
        kind = schedule.columns.kind[position]
        writer.annotate(f"PP:{cell}", at, 15.0)
        if kind in (Kind.SEND_F, Kind.SEND_B, Kind.RECV_F, Kind.RECV_B):
            writer.launch(at + 1, MAIN, SEND_RECV, MESSAGES, start, end)
            continue
        thread = MAIN if kind == Kind.F else AUTOGRAD
        if fsdp:
            writer.annotate("FSDP::all_gather_copy_out (layers.0)", at + 1, 2.0)
            writer.launch(at + 2, MAIN, "split_with_sizes_copy_out", COMPUTE, start - 900, start - 800)
        if fsdp and (received := _received(timeline, position)) is not None:
            writer.launch(at + 4, MAIN, "cast_to_bfloat16", COMPUTE, received - 700, received - 600)
        length = end - start
        writer.launch(at + 5, thread, "sm90_gemm", COMPUTE, start, start + 0.4 * length)
        writer.launch(
            at + 6, thread, "ncclDevKernel_AllReduce", TENSOR_PARALLEL, start + 0.4 * length, start + 0.6 * length
        )
        writer.launch(at + 7, thread, "elementwise", COMPUTE, start + 0.6 * length, end)
        writer.launch(at + 8, thread, "Memcpy DtoH (Device -> Pinned)", COPIES, end, end + 5000)
    return _document(writer, timeline, rank, **changes)


def _document(writer: GpuRank, timeline: Timeline, rank: int, **changes: Any) -> str:
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "a GPU"}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": timeline.schedule.ranks},
        "host_name": "one",
        "baseTimeNanoseconds": 1790857026000000000,
        "traceEvents": writer.events[::-1],
    }
    return json.dumps(document | changes)


Part = tuple[str, float, float]
"""What a part of an op does, and its start and end in milliseconds from the start of the op."""

KERNELS = {"compute": ("sm90_gemm",), "all_to_all": (SEND_RECV,)}

DEEP_EP = (
    "void deep_ep::internode::notify_dispatch<false, 8>(int*)",
    "void deep_ep::internode::dispatch<true, 8>(int4*)",
)


def trace_of_parts(
    timeline: Timeline,
    rank: int,
    parts: Mapping[int, Iterable[Part]],
    *,
    kernels: Mapping[str, tuple[str, ...]] = KERNELS,
) -> str:
    """One rank's trace with the parts of each op, by its position, each as its kernels with a microsecond between two.

    A message follows every op: launched inside its annotation on even positions, outside on odd ones.
    """
    schedule = timeline.schedule
    writer = GpuRank()
    first, stop = schedule.offsets[rank], schedule.offsets[rank + 1]
    positions = [position for position in range(first, stop) if not schedule.joined[position]]
    for position, cell in zip(positions, format_cells(schedule[rank]), strict=True):
        at, begin, end = 100.0 * position, timeline.start[position] * 1e3, timeline.end[position] * 1e3
        writer.annotate(f"PP:{cell}", at, 90.0)
        for number, (lane, start, stop_) in enumerate(parts[position]):
            names = kernels[lane]
            length = (stop_ - start) * 1e3 / len(names)
            for turn, name in enumerate(names):
                starts = begin + start * 1e3 + turn * length
                stream = COMPUTE if lane == "compute" else EXPERTS
                ends = starts + length - (turn + 1 < len(names))
                writer.launch(at + 1 + 0.5 * number + 0.1 * turn, AUTOGRAD, name, stream, starts, ends)
        writer.launch(at + (95.0 if position % 2 else 80.0), MAIN, SEND_RECV, MESSAGES, end - 10, end + 700)
    return _document(writer, timeline, rank)


def _received(timeline: Timeline, position: int) -> float | None:
    """When an op's message had come, in microseconds; None where it needs none."""
    source = int(dependencies(timeline.schedule).arrival[position])
    if source < 0 or timeline.schedule.columns.kind[source] not in RECEIVE_KINDS:
        return None
    return float(timeline.end[source]) * 1e3


def gpu_traces(timeline: Timeline, **options: Any) -> dict[str, str]:
    """All ranks' traces by name."""
    return {f"rank{rank}.json": gpu_trace(timeline, rank, **options) for rank in range(timeline.schedule.ranks)}


def _event(category: str, name: str, start: float, duration: float, process: int, thread: int) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": duration}


def parts_of(timeline: Timeline, segments: Segments) -> dict[int, list[Part]]:
    """The parts of the ops of a simulation on these segments: one after the other; of a pair, where the model has them."""
    schedule = timeline.schedule
    parts: dict[int, list[Part]] = {}
    for position in range(len(schedule)):
        op = schedule.op(position)
        stage = segments.stages[op.stage]
        if schedule.begins_pair[position]:
            after = schedule.op(position + 1)
            pieces = segments.lanes(op.stage, after.stage, after.kind == Kind.I)
            parts[position] = [(piece.lane, piece.begin, piece.end) for piece in pieces]
        elif op.kind == Kind.B and segments.delayed_weights:
            parts[position] = [("compute", 0.0, timeline.end[position] - timeline.start[position])]
        elif not schedule.joined[position]:
            inputs, weights = stage.backward_input, stage.backward_weight
            full = backward(inputs, weights)
            alone = {Kind.F: stage.forward, Kind.B: full, Kind.I: inputs, Kind.W: weights}[op.kind]
            edges = pairwise(accumulate((time for _, time in alone), initial=0.0))
            lanes = ("compute" if lane == "weights" else lane for lane, _ in alone)
            parts[position] = [(lane, *times) for lane, times in zip(lanes, edges, strict=True)]
    return parts
