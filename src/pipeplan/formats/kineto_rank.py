"""One rank's trace of PyTorch's profiler (Kineto): the pipeline ops that it ran, and when.

PyTorch's pipeline runtime annotates every op with its name, ``PP:2F0``, ``PP:1RECV_B3``; its schedules with one stage a rank
(``ScheduleGPipe``, ``Schedule1F1B``) run without it and annotate nothing. An annotation says when the host was at an op. The
op's own times are

* where a GPU worked for it (``gpu_user_annotation``), from its first kernel's start to its last one's end;
* else, for compute, from the first operator inside the annotation, because the runtime waits there for the op's message;
* else those of the annotation itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from pipeplan.errors import FormatError
from pipeplan.model import Floats

PREFIX = "PP:"
"""Of the names of a pipeline's annotations."""

_NO_WORK = ("c10d::", "gloo:", "nccl:", "record_param_comms")
"""How the names of host operators start that move messages."""

_NO_COMPUTE = ("SEND", "RECV", "SHARD", "REDUCE")
"""What the names of ops that do not compute have in them."""

_LARGEST_CLOCK = 2**63
"""Nanoseconds that no clock shows."""


class _Event(msgspec.Struct):
    ph: str = ""
    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    tid: int | str = 0


class _Distributed(msgspec.Struct):
    rank: int
    world_size: int


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]  # noqa: N815 - Kineto's names
    baseTimeNanoseconds: int = 0  # noqa: N815
    distributedInfo: _Distributed | None = None  # noqa: N815
    host_name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class RankTrace:
    """The pipeline ops of one rank, in order.

    Attributes
    ----------
    name
        Of the trace, for messages.
    rank, world_size
        Of the process that wrote it.
    host
        On which it ran.
    base
        The zero of its times, in nanoseconds of that host's clock.
    cells
        The ops in the text notation; an overlapped pair is one cell.
    start, end
        Of each cell, in microseconds since ``base``.
    """

    name: str
    rank: int
    world_size: int
    host: str
    base: int
    cells: list[str]
    start: Floats
    end: Floats


def parse_rank(name: str, text: str) -> RankTrace:
    """What the text of a trace holds of a pipeline; without ``distributedInfo`` it is of rank 0 of 1.

    Raises
    ------
    FormatError
        For text that is no trace or is cut off, and for a trace without annotations of a pipeline, or with impossible times.
    """
    try:
        trace = msgspec.json.decode(text, type=_Trace)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(f"{name}: this is no trace of PyTorch's profiler: {error}") from None
    events = [event for event in trace.traceEvents if event.ph == "X"]
    host = sorted((event for event in events if _is_op(event, "user_annotation")), key=lambda event: event.ts)
    if not host:
        raise FormatError(
            f"{name}: no annotation of a pipeline ('{PREFIX}2F0') in it; PyTorch's runtime for schedules with several "
            "stages a rank, or with a CSV, writes them, and so does a run of pipeplan"
        )
    if abs(trace.baseTimeNanoseconds) >= _LARGEST_CLOCK:
        raise FormatError(f"{name}: baseTimeNanoseconds does not fit into 64 bits")
    whose = trace.distributedInfo or _Distributed(0, 1)
    start, end = _times(name, host, events)
    return RankTrace(
        name=name,
        rank=whose.rank,
        world_size=whose.world_size,
        host=trace.host_name,
        base=trace.baseTimeNanoseconds,
        cells=[event.name.removeprefix(PREFIX) for event in host],
        start=start,
        end=end,
    )


def _is_op(event: _Event, category: str) -> bool:
    return event.cat == category and event.name.startswith(PREFIX)


def _times(name: str, host: list[_Event], events: list[_Event]) -> tuple[Floats, Floats]:
    """Start and end of the ops whose annotations ``host`` are."""
    start = np.array([event.ts for event in host])
    end = start + np.array([event.dur for event in host])
    if (wrong := np.flatnonzero(~((np.abs(start) < np.inf) & (start <= end) & (end < np.inf)))).size:
        raise FormatError(f"{name}: {host[int(wrong[0])].name} has no time, or ends before it starts")
    work = _first_work(host, start, end, events)
    on_gpu = _on_gpu(host, events)
    for number, times in on_gpu.items():
        work[number], end[number] = times
    return work, end


def _first_work(host: list[_Event], start: Floats, end: Floats, events: list[_Event]) -> Floats:
    """The start of each annotation, or for compute of the first operator inside it on its thread."""
    thread = host[0].tid
    operators = np.sort(
        np.array(
            [
                event.ts
                for event in events
                if event.cat == "cpu_op" and event.tid == thread and not event.name.startswith(_NO_WORK)
            ]
        )
    )
    following = np.searchsorted(operators, start)
    first = np.append(operators, np.inf)[following]
    inside = np.array([_computes(event.name) for event in host]) & (first <= end)
    return np.where(inside, first, start)


def _computes(name: str) -> bool:
    return not any(word in name for word in _NO_COMPUTE)


def _on_gpu(host: list[_Event], events: list[_Event]) -> dict[int, tuple[float, float]]:
    """By the number of an annotation: start and end of its work on the GPU, over all streams."""
    numbers = occurrences([event.name for event in host])
    number_of = {key: number for number, key in enumerate(numbers)}
    times: dict[int, tuple[float, float]] = {}
    gpu = sorted((event for event in events if _is_op(event, "gpu_user_annotation")), key=lambda event: event.ts)
    for stream in {event.tid for event in gpu}:
        mine = [event for event in gpu if event.tid == stream]
        for event, key in zip(mine, occurrences([event.name for event in mine]), strict=True):
            if (number := number_of.get(key)) is not None:
                before = times.get(number, (event.ts, event.ts))
                times[number] = (min(before[0], event.ts), max(before[1], event.ts + event.dur))
    return times


def occurrences(names: Sequence[str]) -> list[tuple[str, int]]:
    """Each name with the number of times that it came before."""
    seen: dict[str, int] = {}
    keys = []
    for name in names:
        keys.append((name, seen.get(name, 0)))
        seen[name] = seen.get(name, 0) + 1
    return keys
