"""One rank's trace of PyTorch's profiler (Kineto): the pipeline ops that it ran, and when.

``distributedInfo`` says whose trace it is and which process groups it is in. Which annotations mark ops is told in
:mod:`pipeplan.formats.annotations`, when an op worked in :mod:`pipeplan.formats.op_times`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from pipeplan.errors import FormatError
from pipeplan.formats.annotations import Mark, Span, marks_of
from pipeplan.formats.op_times import Activities, Activity, Recorded, is_message, moves_data
from pipeplan.formats.rank_trace import RankTrace, occurrences, rank_trace
from pipeplan.model import Floats

_MESSAGES = ("c10d::", "gloo:", "nccl:", "record_param_comms")
"""How the names of the host's operators and annotations start that move messages."""

_HOST_RECEIVES = "gloo:recv"
"""How the names of gloo's receives start: they last until the host has waited for them."""

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
    """What the text of a trace holds of a pipeline; without ``distributedInfo`` it is of rank 0 of 1.

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
    marks: Sequence[Mark], host: Sequence[_Event], operators: Sequence[_Event], events: Sequence[_Event]
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
    """The sorted starts of the events whose names start so."""
    return np.sort(np.array([event.ts for event in events if event.name.startswith(prefix)], np.float64))


def _gpu_activities(events: Sequence[_Event]) -> tuple[list[Activity], list[Activity]]:
    """What a GPU computed, and the messages that it moved; each with the launch that its correlation leads to.

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


def _annotated_work(marks: Sequence[Mark], events: Iterable[_Event]) -> dict[int, tuple[float, float]]:
    """By the number of a mark: start and end of its annotation on the GPU, over all streams."""
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
