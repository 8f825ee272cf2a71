"""What PyTorch's profiler (Kineto) recorded of a pipeline run: traces of its ranks in, measured timelines out.

``distributedInfo`` names the rank of a trace and the process groups that it is in. :mod:`pipeplan.formats.annotations` tells
which annotations mark ops, and :mod:`pipeplan.formats.op_times` when an op worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from pipeplan.errors import FormatError
from pipeplan.formats.annotations import AnnotatedOp, Span, marks_of
from pipeplan.formats.format import Format
from pipeplan.formats.op_times import Activities, Activity, Recorded, is_message, moves_data
from pipeplan.formats.rank_trace import RankTrace, occurrences, rank_trace
from pipeplan.formats.traced_run import median_step, traced_run
from pipeplan.model import Floats, Timeline

_MESSAGES = ("c10d::", "gloo:", "nccl:", "record_param_comms")
"""Prefixes of the names of the host's operators and annotations that move messages."""

_HOST_RECEIVES = "gloo:recv"
"""Prefix of the names of gloo's receives, which last until the host has waited for them."""

_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of what a GPU does."""

_LARGEST_CLOCK = 2**63
"""Nanoseconds that no clock shows."""


class _Arguments(msgspec.Struct):
    correlation: int | str = -1


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
    """Return the pipeline ops in the text of a trace; without ``distributedInfo`` it is of rank 0 of 1.

    Raises
    ------
    FormatError
        For text that is no trace or is cut off, and for what :func:`~pipeplan.formats.annotations.marks_of` and
        :func:`~pipeplan.formats.rank_trace.rank_trace` raise it.
    """
    try:
        trace = msgspec.json.decode(text, type=_Trace)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(f"{name}: this is no trace of PyTorch's profiler, or it is cut off: {error}") from None
    events = [event for event in trace.traceEvents if event.ph == "X"]
    host = [event for event in events if event.cat == "user_annotation"]
    marks = marks_of(name, (Span(event.name, event.ts, event.end, event.tid) for event in host))
    if abs(trace.baseTimeNanoseconds) >= _LARGEST_CLOCK:
        raise FormatError(f"{name}: baseTimeNanoseconds does not fit into 64 bits")
    whose = trace.distributedInfo or _Distributed(0, 1)
    operators = [event for event in events if event.cat == "cpu_op"]
    return rank_trace(
        name,
        _recorded(marks, host, operators, events),
        rank=whose.rank,
        world_size=whose.world_size,
        host=trace.host_name,
        base=trace.baseTimeNanoseconds,
        groups=frozenset(tuple(group.ranks) for group in whose.pg_config),
        receives=_times_of(operators, "c10d::recv"),
        sends=_times_of(operators, "c10d::send"),
    )


def _recorded(
    marks: Sequence[AnnotatedOp], host: Sequence[_Event], operators: Sequence[_Event], events: Sequence[_Event]
) -> Recorded:
    threads = {thread: number for number, thread in enumerate(dict.fromkeys(event.tid for event in operators))}
    kernels, messages = _gpu_activities(events)
    if not kernels:
        messages = [
            Activity(-1, event.ts, event.ts, event.end) for event in host if event.name.startswith(_HOST_RECEIVES)
        ]
    moves = sorted((event.ts, event.end) for event in host if moves_data(event.name))
    return Recorded(
        marks=marks,
        operators=Activities(
            Activity(threads[event.tid], event.ts, event.ts, event.end)
            for event in operators
            if not event.name.startswith(_MESSAGES)
        ),
        kernels=Activities(kernels),
        messages=Activities(messages),
        handovers=_times_of(operators, "c10d::"),
        threads=threads,
        moves=np.array(moves, np.float64).reshape(-1, 2).T,
        annotated_work=_annotated_work(marks, events),
    )


def _times_of(events: Iterable[_Event], prefix: str) -> Floats:
    return np.sort(np.array([event.ts for event in events if event.name.startswith(prefix)], np.float64))


def _gpu_activities(events: Sequence[_Event]) -> tuple[list[Activity], list[Activity]]:
    """Return the kernels and the messages of a GPU, each with the launch that its correlation leads to.

    Copies count where kernels compute: a stream that only copies moves data.
    """
    launched = {
        event.args.correlation: event.ts
        for event in events
        if event.args is not None and event.args.correlation != -1 and event.cat not in _ON_GPU
    }
    worked = [event for event in events if event.cat in _ON_GPU and event.args is not None]
    worked = [event for event in worked if event.args is not None and event.args.correlation in launched]
    streams = {(event.pid, event.tid): number for number, event in enumerate(worked)}
    computing = {(event.pid, event.tid) for event in worked if event.cat == "kernel" and not is_message(event.name)}
    kernels: list[Activity] = []
    messages: list[Activity] = []
    for event in worked:
        assert event.args is not None
        stream = (event.pid, event.tid)
        found = Activity(streams[stream], launched[event.args.correlation], event.ts, event.end)
        if is_message(event.name):
            messages.append(found)
        elif stream in computing:
            kernels.append(found)
    return kernels, messages


def _annotated_work(marks: Sequence[AnnotatedOp], events: Iterable[_Event]) -> dict[int, tuple[float, float]]:
    """Return start and end of the annotation of each mark on the GPU over all streams, by the number of the mark."""
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
    """The measured timelines that the traces hold, one a step and replica, in milliseconds from its first start.

    Parameters
    ----------
    traces
        The traces' text by their names, which are used in messages: of every rank, each of one step or of several.

    Raises
    ------
    FormatError
        For text that is no trace or is cut off, a trace without pipeline annotations or with a part of a step, and for what
        :func:`~pipeplan.formats.traced_run.traced_run` raises it.
    """
    return traced_run([parse_rank(name, text) for name, text in traces.items()]).timelines


def _median_step(text: str, name: str, keep_duplicates: bool) -> Timeline:
    return median_step(parse_kineto({name: text}))


FORMATS = (
    Format(
        name="kineto",
        title="PyTorch profiler trace",
        help="What PyTorch's profiler recorded of a run of one rank: its step of median length. Of more ranks, a folder.",
        ending=".json",
        media="application/json",
        read=_median_step,
        recognises=lambda text: '"traceEvents"' in text,
    ),
)
