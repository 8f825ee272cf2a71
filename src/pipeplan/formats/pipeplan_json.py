"""pipeplan's own lossless JSON of schedules and timelines.

::

    {"format": "pipeplan-schedule", "version": 1, "schedule": "1f1b", "ranks": 2, "chunks": 1, "stages": 2,
     "microbatches": 1, "slices": 1, "placement": [0, 1], "rows": [["0F0", "0B0"], ["1F0", "1B0"]]}

A timeline has ``"format": "pipeplan-timeline"``, the same keys, the start and end of every op, and optionally the figures of
its result (the keys of ``pipeplan simulate --json`` and ``search --json``), which are not read back. A measured timeline is
the step of median length; ``steps`` optionally has the times of all steps on one clock. ``placement`` is the
rank of each stage, or one such list for each copy of the model. Unknown keys of a schedule are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from pipeplan.formats.decoding import decoded
from pipeplan.formats.format import Format
from pipeplan.foundation.documents import json_text, other_kind, read_json
from pipeplan.foundation.errors import CostError, FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.foundation.records import VERSION
from pipeplan.model import Placement, Schedule, Timeline, format_cells, schedule_from_cells


class ScheduleRecord(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="format", tag="pipeplan-schedule"
):
    """A schedule in JSON; ``rows`` are cells of the text notation."""

    version: int
    schedule: str
    ranks: int
    chunks: int
    stages: int
    microbatches: int
    slices: int = 1
    placement: list[int | list[int]]
    rows: list[list[str]]


class StepTimes(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Start and end of every op of one measured step; the clock is that of all steps."""

    start: list[list[float]]
    end: list[list[float]]


class TimelineRecord(ScheduleRecord, kw_only=True, forbid_unknown_fields=False, tag="pipeplan-timeline"):
    """A schedule with times; ``start`` and ``end`` have one number per op of every row, and two per overlapped pair."""

    unit: str = ""
    source: Literal["simulated", "measured"] = "simulated"
    start: list[list[float]]
    end: list[list[float]]
    steps: list[StepTimes] | UnsetType = UNSET


def schedule_json(schedule: Schedule) -> str:
    """Return a schedule as JSON."""
    return _encode(ScheduleRecord(**_fields(schedule)))


def timeline_json(timeline: Timeline, figures: Mapping[str, Any] | None = None, steps: Sequence[Timeline] = ()) -> str:
    """Return a timeline as JSON."""
    times = _times_of(timeline)
    record = msgspec.to_builtins(
        TimelineRecord(
            **_fields(timeline.schedule),
            unit=timeline.unit,
            source=timeline.source,
            start=times.start,
            end=times.end,
            steps=[_times_of(step) for step in steps] if steps else UNSET,
        )
    )
    return _encode(record | {key: value for key, value in (figures or {}).items() if key not in record})


def _times_of(timeline: Timeline) -> StepTimes:
    rows = timeline.schedule.offsets[1:-1]
    start, end = ([row.tolist() for row in np.split(times, rows)] for times in (timeline.start, timeline.end))
    return StepTimes(start=start, end=end)


def _fields(schedule: Schedule) -> dict[str, Any]:
    return {
        "version": VERSION,
        "schedule": schedule.name,
        "ranks": schedule.ranks,
        "chunks": schedule.placement.chunks,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
        "slices": schedule.slices,
        "placement": schedule.placement.listed,
        "rows": [format_cells(row) for row in schedule],
    }


def _encode(record: ScheduleRecord | dict[str, Any]) -> str:
    return json_text(record, compact=True) + "\n"


def parse_json(text: str, *, name: str = "", keep_duplicates: bool = False) -> Schedule | Timeline:
    """Return the schedule or timeline in a JSON text.

    Parameters
    ----------
    text
        Output of :func:`schedule_json` or :func:`timeline_json`.
    name
        Source of the text, for messages.
    keep_duplicates
        True to leave duplicate ops for the checker to report.
    """

    def content(record: ScheduleRecord) -> Schedule | Timeline:
        schedule = _schedule(record, keep_duplicates)
        return _timeline(record, record, schedule) if isinstance(record, TimelineRecord) else schedule

    return _read(text, name, content)


def parse_steps(text: str, *, name: str = "") -> tuple[Timeline, ...]:
    """Return the steps in the JSON text of a timeline on one clock, or the timeline alone; () for a schedule."""

    def steps(record: ScheduleRecord) -> tuple[Timeline, ...]:
        if not isinstance(record, TimelineRecord):
            return ()
        schedule = _schedule(record, False)
        return tuple(_timeline(record, times, schedule) for times in record.steps or (record,))

    return _read(text, name, steps)


Content = TypeVar("Content")


def _read(text: str, name: str, content: Callable[[ScheduleRecord], Content]) -> Content:
    """Return the content of a text's record. Errors name the source of the text."""
    try:
        return content(decoded(text, ScheduleRecord | TimelineRecord, VERSION))
    except (NotationError, ShapeError, CostError, FormatError) as error:
        other = _other_content(text)
        raise FormatError(f"{name} is not a schedule: {other}" if other else f"{name}: {error}") from None
    except InvalidScheduleError as error:
        raise type(error)(f"{name}: {error}") from None


def _other_content(text: str) -> str | None:
    """Return what a JSON text without the key of a format has instead, and where to pass it; None if it has that key."""
    if not text.lstrip().startswith("{"):
        return "expected a group of keys, as pipeplan writes it"
    try:
        content = read_json(text)
    except (ValueError, RecursionError):
        return None
    missing = "the key 'format' is missing; pass settings files with --config"
    return None if "format" in content else other_kind(content) or missing


def _schedule(record: ScheduleRecord, keep_duplicates: bool) -> Schedule:
    placement = Placement.of(*_copies(record.placement))
    declared = (record.ranks, record.chunks, record.stages)
    if declared != (placement.ranks, placement.chunks, placement.stages):
        raise FormatError(
            f"the file declares {record.ranks} ranks, {record.chunks} chunks, {record.stages} stages, but its placement "
            f"has {placement.ranks}, {placement.chunks}, {placement.stages}"
        )
    if min(record.microbatches, record.slices) < 1:
        raise FormatError(f"microbatches and slices must be at least 1, not {record.microbatches} and {record.slices}")
    return schedule_from_cells(
        record.rows,
        placement=placement,
        microbatches=record.microbatches,
        slices=record.slices,
        name=record.schedule,
        keep_duplicates=keep_duplicates,
    )


def _copies(placement: Sequence[int | list[int]]) -> list[tuple[int, ...]]:
    flat = tuple(value for value in placement if isinstance(value, int))
    copies = [tuple(value) for value in placement if isinstance(value, list)]
    if flat and copies:
        raise FormatError("placement must be the rank of each stage, or one such list for each copy of the model")
    return copies or [flat]


def _timeline(record: TimelineRecord, step: TimelineRecord | StepTimes, schedule: Schedule) -> Timeline:
    start, end = (_times(times, schedule, what) for times, what in ((step.start, "start"), (step.end, "end")))
    if (late := np.flatnonzero(start > end)).size:
        raise FormatError(f"{schedule.place(int(late[0]))} ends before it starts")
    return Timeline(schedule, start, end, record.unit, record.source)


def _times(rows: list[list[float]], schedule: Schedule, what: str) -> NDArray[np.float64]:
    expected = np.diff(schedule.offsets).tolist()
    counts = [len(row) for row in rows]
    if counts != expected:
        raise FormatError(f"'{what}' has {counts} times per rank, but the rows have {expected} ops")
    times = np.array([time for row in rows for time in row], np.float64)
    if not bool(np.all(np.isfinite(times))):
        raise FormatError(f"'{what}' contains a time that is not finite")
    return times


FORMATS = (
    Format(
        name="json",
        title="Figures and times, JSON",
        help="pipeplan's own format: a schedule, a timeline with its figures, or the record of any other answer.",
        ending=".json",
        media="application/json",
        write_schedule=schedule_json,
        write_timeline=lambda outcome: timeline_json(outcome.timeline, outcome.figures, outcome.steps),
        write_record=lambda record: json_text(record, indent=1) + "\n",
        read=lambda text, name, keep: parse_json(text, name=name, keep_duplicates=keep),
    ),
)
