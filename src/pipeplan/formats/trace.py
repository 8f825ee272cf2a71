"""The Chrome trace format (JSON), which Perfetto and ``chrome://tracing`` show.

A track a rank with an event an op, a second track for its sends and receives, an arrow for each transfer between ranks,
and a counter of each rank's memory. Google, "Trace Event Format", 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeplan.formats.format import Format
from pipeplan.model import (
    COMPUTE_KINDS,
    TIME_UNITS,
    Kind,
    MemoryUse,
    Timeline,
    among,
    crosses_ranks,
    dependencies,
    units_in,
)
from pipeplan.strict_json import json_text

Event = dict[str, Any]

_MOMENT = 1e-3
"""Microseconds by which an arrow's end lies inside its event: the resolution of the format."""


def chrome_trace(timeline: Timeline, memory: MemoryUse | None = None) -> str:
    """A timeline as Chrome trace JSON.

    Parameters
    ----------
    timeline
        Simulated or measured.
    memory
        What each rank holds after each op of the same schedule; gives the counters.
    """
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
    communicates = not among(timeline.schedule.columns.kind, COMPUTE_KINDS).all()
    yield {"ph": "M", "pid": 0, "name": "process_name", "args": {"name": timeline.schedule.name or "pipeline"}}
    for rank in range(timeline.schedule.ranks):
        yield from _track(2 * rank, f"rank {rank}")
        if communicates:
            yield from _track(2 * rank + 1, f"rank {rank} communication")


def _track(number: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "pid": 0, "tid": number, "name": "thread_name", "args": {"name": name}}
    yield {"ph": "M", "pid": 0, "tid": number, "name": "thread_sort_index", "args": {"sort_index": number}}


def _track_of(timeline: Timeline) -> list[int]:
    """The track of each op: communication may lie beside compute, so it has its own."""
    schedule = timeline.schedule
    tracks: list[int] = (2 * schedule.rank + ~among(schedule.columns.kind, COMPUTE_KINDS)).tolist()
    return tracks


def _ops(timeline: Timeline, scale: float) -> Iterator[Event]:
    starts, durations = (timeline.start * scale).tolist(), ((timeline.end - timeline.start) * scale).tolist()
    for op, track, start, duration in zip(
        timeline.schedule.columns, _track_of(timeline), starts, durations, strict=True
    ):
        arguments = {"stage": op.stage, "microbatch": op.microbatch, "slice": op.slice}
        yield {
            "ph": "X", "pid": 0, "tid": track, "ts": start, "dur": duration,
            "name": str(op), "cat": op.kind.name, "args": arguments,
        }  # fmt: skip


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
    """The level after each op, from the moment at which it changes: a forward's start, any other op's end."""
    schedule = timeline.schedule
    kind = schedule.columns.kind
    moments = np.where(among(kind, (Kind.F, Kind.R)), timeline.start, timeline.end) * scale
    if memory.bytes is None:
        unit, levels = "activations", memory.activations
    else:
        unit, levels = "bytes", memory.bytes + memory.static[schedule.rank]
    compute = np.flatnonzero(among(kind, COMPUTE_KINDS))
    for rank, moment, level in zip(
        schedule.rank[compute].tolist(), moments[compute].tolist(), levels[compute].tolist(), strict=True
    ):
        yield {
            "ph": "C", "pid": 0, "name": f"memory of rank {rank:>3}", "ts": moment, "args": {unit: level},
        }  # fmt: skip


FORMATS = (
    Format(
        name="trace",
        title="Trace for Perfetto",
        help="Every op as an event, transfers as arrows and memory as counters, for Perfetto and chrome://tracing.",
        ending=".trace.json",
        media="application/json",
        write_timeline=lambda outcome: chrome_trace(outcome.timeline, outcome.memory),
    ),
)
