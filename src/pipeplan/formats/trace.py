"""The Chrome trace format (JSON) of Perfetto and ``chrome://tracing``.

Each rank has a track with one event per op, one for its sends and receives, one for copies in each direction between rank
and host, and one for collectives that take time. Arrows show transfers between ranks, and counters the memory of each
rank. Google, "Trace Event Format", 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeplan.formats.format import Format
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.readable import TIME_UNITS, units_in
from pipeplan.model import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    HOST_KINDS,
    Kind,
    MemoryUse,
    Timeline,
    among,
    crosses_ranks,
    dependencies,
)

Event = dict[str, Any]

_OUT, _BACK = (Kind.OFFLOAD,), (Kind.RELOAD,)
_BESIDE = frozenset(Kind) - {*COMPUTE_KINDS, *HOST_KINDS}

_MOMENT = 1e-3
"""Microseconds by which an arrow ends inside its event: the resolution of the format."""


def chrome_trace(timeline: Timeline, memory: MemoryUse | None = None) -> str:
    """Return a timeline as Chrome trace JSON, with counters of the memory of the same schedule if it is given."""
    # Times without a unit are shown as milliseconds.
    scale = units_in(timeline.unit if timeline.unit in TIME_UNITS else "ms", "us")
    events = [*_tracks(timeline), *_ops(timeline, scale), *_transfers(timeline, scale)]
    if memory is not None:
        events += _counters(timeline, memory, scale)
    document = {
        "displayTimeUnit": "ms",
        "otherData": {"schedule": timeline.schedule.name, "source": timeline.source, "unit": timeline.unit},
        "traceEvents": events,
    }
    return json_text(document, compact=True) + "\n"


def _tracks(timeline: Timeline) -> Iterator[Event]:
    kinds = timeline.schedule.kinds
    collectives = COLLECTIVE_KINDS if _times_collectives(timeline) else ()
    beside = [
        (track, name)
        for track, name, those in (
            (1, "communication", _BESIDE.difference(collectives)),
            (2, "to its host", _OUT),
            (3, "from its host", _BACK),
            (4, "collectives", collectives),
        )
        if not kinds.isdisjoint(those)
    ]
    yield {"ph": "M", "pid": 0, "name": "process_name", "args": {"name": timeline.schedule.name or "pipeline"}}
    per_rank = _tracks_per_rank(timeline)
    for rank in range(timeline.schedule.ranks):
        yield from _track(per_rank * rank, f"rank {rank}")
        for track, name in beside:
            yield from _track(per_rank * rank + track, f"rank {rank} {name}")


def _tracks_per_rank(timeline: Timeline) -> int:
    """Return the number of tracks per rank: compute, communication, two of host copies and one of collectives, if any."""
    if _times_collectives(timeline):
        return 5
    return 2 if timeline.schedule.kinds.isdisjoint(HOST_KINDS) else 4


def _times_collectives(timeline: Timeline) -> bool:
    return bool((timeline.timed & among(timeline.schedule.columns.kind, COLLECTIVE_KINDS)).any())


def _track(number: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "pid": 0, "tid": number, "name": "thread_name", "args": {"name": name}}
    yield {"ph": "M", "pid": 0, "tid": number, "name": "thread_sort_index", "args": {"sort_index": number}}


def _track_of(timeline: Timeline) -> list[int]:
    """Return the track of each op. Communication and copies have separate tracks because they may overlap computation."""
    schedule = timeline.schedule
    track = np.full(len(Kind), 1)
    track[list(COMPUTE_KINDS)], track[list(_OUT)], track[list(_BACK)] = 0, 2, 3
    if _times_collectives(timeline):
        track[list(COLLECTIVE_KINDS)] = 4
    tracks: list[int] = (_tracks_per_rank(timeline) * schedule.rank + track[schedule.columns.kind]).tolist()
    return tracks


def _ops(timeline: Timeline, scale: float) -> Iterator[Event]:
    starts, durations = (timeline.start * scale).tolist(), ((timeline.end - timeline.start) * scale).tolist()
    for op, track, start, duration in zip(
        timeline.schedule.columns, _track_of(timeline), starts, durations, strict=True
    ):
        arguments = {"stage": op.stage, "microbatch": op.microbatch, "slice": op.slice}
        yield {
            "ph": "X",
            "pid": 0,
            "tid": track,
            "ts": start,
            "dur": duration,
            "name": str(op),
            "cat": op.kind.name,
            "args": arguments,
        }


def _transfers(timeline: Timeline, scale: float) -> Iterator[Event]:
    schedule = timeline.schedule
    arrival = dependencies(schedule).arrival
    receivers = np.flatnonzero(crosses_ranks(schedule, arrival))
    track = _track_of(timeline)
    for number, receiver in enumerate(receivers.tolist()):
        sender = int(arrival[receiver])
        left = max(float(timeline.start[sender]) * scale, float(timeline.end[sender]) * scale - _MOMENT)
        arrow = {"pid": 0, "cat": "transfer", "name": "transfer", "id": number}
        yield arrow | {"ph": "s", "tid": track[sender], "ts": left}
        yield arrow | {"ph": "f", "bp": "e", "tid": track[receiver], "ts": float(timeline.start[receiver]) * scale}


def _counters(timeline: Timeline, memory: MemoryUse, scale: float) -> Iterator[Event]:
    """Yield the levels of the memory, at the times of their changes."""
    in_bytes = memory.bytes is not None
    unit, curve = "bytes" if in_bytes else "activations", memory.curve(timeline, in_bytes=in_bytes)
    levels = curve.level + memory.static[curve.rank] if in_bytes else curve.level
    parameters = curve.parameters
    gathered = np.zeros(len(levels)) if parameters is None else parameters
    columns = (curve.rank, curve.time * scale, levels, gathered)
    for rank, moment, level, part in zip(*(column.tolist() for column in columns), strict=True):
        held = {unit: level} if parameters is None else {"parameters": part, f"other {unit}": level - part}
        yield {
            "ph": "C",
            "pid": 0,
            "name": f"memory of rank {rank:>3}",
            "ts": moment,
            "args": held,
        }


FORMATS = (
    Format(
        name="trace",
        title="Trace for Perfetto",
        help="Ops as events, transfers as arrows and memory as counters, for Perfetto and chrome://tracing.",
        ending=".trace.json",
        media="application/json",
        write_timeline=lambda outcome: chrome_trace(outcome.timeline, outcome.memory),
    ),
)
