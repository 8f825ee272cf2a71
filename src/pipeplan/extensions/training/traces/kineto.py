"""Traces of PyTorch's profiler (Kineto): reads the traces of a run's ranks, returns measured timelines.

``distributedInfo`` has the rank of a trace and its process groups. ``annotations`` determines which
annotations mark ops, and :mod:`pipeplan.extensions.training.traces.op_times` when an op worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from pipeplan.extensions.training.traces.activities import Activities, GpuWork, gpu_activities
from pipeplan.extensions.training.traces.annotations import AnnotatedOp, Span, marks_of
from pipeplan.extensions.training.traces.op_times import Recorded, moves_in
from pipeplan.extensions.training.traces.rank_trace import RankTrace, occurrences, rank_trace
from pipeplan.extensions.training.traces.traced_run import median_step, traced_run
from pipeplan.formats import Format
from pipeplan.foundation.errors import FormatError
from pipeplan.model import Floats, Timeline

_MESSAGES = ("c10d::", "gloo:", "nccl:", "record_param_comms")
"""Prefixes of the names of host operators and annotations that send or receive."""

_HOST_RECEIVES = "gloo:recv"
"""Prefix of the names of gloo's receives, which last until the message has arrived."""

_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of GPU activities."""

_LARGEST_CLOCK = 2**63
"""Limit of a clock in nanoseconds: 64-bit integers."""


class _Arguments(msgspec.Struct):
    correlation: int | str = -1
    collective: str = msgspec.field(default="", name="Collective name")


class _Event(msgspec.Struct):
    ph: str = ""
    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: int | str = 0
    tid: int | str = 0
    args: _Arguments | None = None

    @property
    def end(self) -> float:
        return self.ts + self.dur


class _Group(msgspec.Struct):
    ranks: list[int] = []


class _Distributed(msgspec.Struct):
    rank: int
    world_size: int
    pg_config: list[_Group] = []


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]  # noqa: N815 - Kineto's names
    baseTimeNanoseconds: int = 0  # noqa: N815
    distributedInfo: _Distributed | None = None  # noqa: N815
    host_name: str = ""


def parse_rank(name: str, text: str) -> RankTrace:
    """Return the pipeline ops in a trace. Without ``distributedInfo``, it is the trace of rank 0 of 1.

    Raises FormatError if the text is not a trace or is truncated, or its marks are invalid.
    """
    try:
        trace = msgspec.json.decode(text, type=_Trace)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(f"{name}: not a trace of PyTorch's profiler, or truncated: {error}") from None
    events = [event for event in trace.traceEvents if event.ph == "X"]
    host = [event for event in events if event.cat == "user_annotation"]
    marks = marks_of(name, (Span(event.name, event.ts, event.end, event.tid) for event in host))
    if abs(trace.baseTimeNanoseconds) >= _LARGEST_CLOCK:
        raise FormatError(f"{name}: baseTimeNanoseconds does not fit into 64 bits")
    process = trace.distributedInfo or _Distributed(0, 1)
    operators = [event for event in events if event.cat == "cpu_op"]
    return rank_trace(
        name,
        _recorded(marks, host, operators, events),
        rank=process.rank,
        world_size=process.world_size,
        host=trace.host_name,
        base=trace.baseTimeNanoseconds,
        groups=frozenset(tuple(group.ranks) for group in process.pg_config),
        receives=_times_of(operators, "c10d::recv"),
        sends=_times_of(operators, "c10d::send"),
    )


def _recorded(
    marks: Sequence[AnnotatedOp], host: Sequence[_Event], operators: Sequence[_Event], events: Sequence[_Event]
) -> Recorded:
    threads = {thread: number for number, thread in enumerate(dict.fromkeys(event.tid for event in operators))}
    kernels, messages = gpu_activities(_gpu_work(events), marks)
    if not len(kernels):
        receives = (event for event in host if event.name.startswith(_HOST_RECEIVES))
        messages = Activities([(-1, event.ts, event.ts, event.end) for event in receives])
    working = (event for event in operators if not event.name.startswith(_MESSAGES))
    operated = [(threads[event.tid], event.ts, event.ts, event.end) for event in working]
    return Recorded(
        marks=marks,
        operators=Activities(operated),
        kernels=kernels,
        messages=messages,
        handovers=_times_of(operators, "c10d::"),
        threads=threads,
        moves=moves_in((event.name, event.ts, event.end) for event in host),
        annotated_work=_annotated_work(marks, events),
    )


def _times_of(events: Iterable[_Event], prefix: str) -> Floats:
    return np.sort(np.array([event.ts for event in events if event.name.startswith(prefix)], np.float64))


def _gpu_work(events: Sequence[_Event]) -> list[GpuWork]:
    """Return the kernels and copies of a GPU, each with the time of its launch, which its correlation identifies."""
    launched = {
        event.args.correlation: event.ts
        for event in events
        if event.args is not None and event.args.correlation != -1 and event.cat not in _ON_GPU
    }
    streams: dict[tuple[int | str, int | str], int] = {}
    return [
        GpuWork(
            stream=streams.setdefault((event.pid, event.tid), len(streams)),
            launched=launched[event.args.correlation],
            start=event.ts,
            end=event.end,
            name=event.name if event.cat == "kernel" else "",
            collective=event.args.collective,
        )
        for event in events
        if event.cat in _ON_GPU and event.args is not None and event.args.correlation in launched
    ]


def _annotated_work(marks: Sequence[AnnotatedOp], events: Iterable[_Event]) -> dict[int, tuple[float, float]]:
    """Return the start and end of each mark's annotation on the GPU over all streams, by the number of the mark."""
    number_of = {key: number for number, key in enumerate(occurrences([mark.span.name for mark in marks]))}
    names = {mark.span.name for mark in marks}
    times: dict[int, tuple[float, float]] = {}
    gpu = [event for event in events if event.cat == "gpu_user_annotation" and event.name in names]
    gpu.sort(key=lambda event: event.ts)
    for stream in {event.tid for event in gpu}:
        mine = [event for event in gpu if event.tid == stream]
        for event, key in zip(mine, occurrences([event.name for event in mine]), strict=True):
            if (number := number_of.get(key)) is not None:
                before = times.get(number, (event.ts, event.ts))
                times[number] = (min(before[0], event.ts), max(before[1], event.end))
    return times


def parse_kineto(traces: Mapping[str, str]) -> tuple[Timeline, ...]:
    """Return the measured timelines of a run, one per step and replica, in milliseconds from its first start."""
    return traced_run([parse_rank(name, text) for name, text in traces.items()]).timelines


def _median_step(text: str, name: str, keep_duplicates: bool) -> Timeline:
    return median_step(parse_kineto({name: text}))


FORMATS = (
    Format(
        name="kineto",
        title="PyTorch profiler trace",
        help="Trace of one rank, read as its step of median length; for several ranks, name a folder of traces.",
        ending=".json",
        media="application/json",
        read=_median_step,
        recognises=lambda text: '"traceEvents"' in text,
    ),
)
