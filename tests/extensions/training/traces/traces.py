"""Traces as PyTorch's profiler writes them, made from a timeline."""

import json
from typing import Any

from pipeplan.extensions.training.traces.annotations import RESOLUTION
from pipeplan.model import Kind, Timeline, format_cells

Event = dict[str, Any]

BASE = 1790857026000000000


def rank_trace(timeline: Timeline, rank: int, *, waits: float = 0.0, on_gpu: bool = False, **changes: Any) -> str:
    """One rank's trace: an annotation a cell; its first operator comes ``waits`` milliseconds in where the rank had so much
    time, or a GPU works for it."""
    document = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": timeline.schedule.ranks, "pg_count": 1},
        "host_name": "one",
        "baseTimeNanoseconds": BASE,
        "displayTimeUnit": "ms",
        "traceEvents": [_meta(rank), *annotations(timeline, rank, waits=waits, on_gpu=on_gpu)],
    }
    document |= changes
    return json.dumps({key: value for key, value in document.items() if value is not None})


def annotations(timeline: Timeline, rank: int, *, waits: float = 0.0, on_gpu: bool = False) -> list[Event]:
    schedule = timeline.schedule
    events = []
    before = 0.0
    first, stop = schedule.offsets[rank], schedule.offsets[rank + 1]
    positions = [position for position in range(first, stop) if not schedule.joined[position]]
    for position, cell in zip(positions, format_cells(schedule[rank]), strict=True):
        start, end = timeline.start[position] * 1e3, timeline.end[position] * 1e3
        computes = schedule.columns.kind[position] <= Kind.W
        name = f"PP:{cell}"
        if on_gpu:
            # The host runs ahead: it is at the op long before the GPU works for it.
            events.append(_event("user_annotation", name, position * 1e-3, 1e-3, 100 + rank))
            if computes:
                events.append(_event("gpu_user_annotation", name, start, (end - start) / 2, 7))
                events.append(_event("gpu_user_annotation", name, (start + end) / 2, (end - start) / 2, 8))
            continue
        wait = min(waits * 1e3, start - before) if computes else 0.0
        before = end
        # The next op's first operator starts after this annotation, by the resolution of the clock.
        events.append(_event("user_annotation", name, start - wait, end - start + wait - RESOLUTION, 100 + rank))
        if computes:
            events.append(_event("cpu_op", "c10d::wait", start - wait, wait, 100 + rank))
            events.append(_event("cpu_op", "aten::linear", start, (end - start) / 2, 100 + rank))
            events.append(_event("cpu_op", "aten::add", start - wait, 1.0, 999))
    return events[::-1]


def _event(category: str, name: str, start: float, duration: float, thread: int) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": duration, "args": {}}


def _meta(rank: int) -> Event:
    return {"ph": "M", "name": "process_name", "ts": 0.0, "pid": rank, "tid": "Spans", "args": {"name": "python"}}


def traces(timeline: Timeline, **options: Any) -> dict[str, str]:
    """All ranks' traces by name."""
    return {f"rank{rank}.json": rank_trace(timeline, rank, **options) for rank in range(timeline.schedule.ranks)}
