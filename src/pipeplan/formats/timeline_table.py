"""A timeline as a table with one line per op, for pandas and spreadsheets: CSV, or JSON with one list per column.

::

    schedule,rank,kind,stage,microbatch,slice,group,start,end,unit,source
    1f1b,0,F,0,0,0,-1,0.0,1.0,ms,simulated

``pandas.read_csv(path)`` or ``pandas.DataFrame(json.load(file))`` returns the data frame. ``group`` is the number of an
overlapped pair, -1 for none; ``microbatch`` is -1 for stage-wide ops. The table does not contain the placement and the
numbers of microbatches and slices; the reader infers them from the ops.
"""

from __future__ import annotations

import csv
import io
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeplan.formats.decoding import decoded
from pipeplan.formats.format import Format
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import CostError, FormatError, InvalidScheduleError, ShapeError
from pipeplan.foundation.syntax import type_fault
from pipeplan.model import Columns, Kind, Schedule, Timeline, infer_placement


class TimelineTable(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Columns of the table, each with one value per op; in the order of the CSV."""

    schedule: list[str]
    rank: list[int]
    kind: list[str]
    stage: list[int]
    microbatch: list[int]
    slice: list[int]
    group: list[int]
    start: list[float]
    end: list[float]
    unit: list[str]
    source: list[Literal["simulated", "measured"]]


COLUMNS = TimelineTable.__struct_fields__


def timeline_columns(timeline: Timeline) -> TimelineTable:
    """Return the columns of a timeline."""
    schedule, count = timeline.schedule, len(timeline.schedule)
    columns = schedule.columns
    return TimelineTable(
        schedule=[schedule.name] * count,
        rank=schedule.rank.tolist(),
        kind=[Kind(kind).name for kind in columns.kind.tolist()],
        stage=columns.stage.tolist(),
        microbatch=columns.microbatch.tolist(),
        slice=columns.slice.tolist(),
        group=columns.group.tolist(),
        start=timeline.start.tolist(),
        end=timeline.end.tolist(),
        unit=[timeline.unit] * count,
        source=[timeline.source] * count,
    )


def timeline_csv(timeline: Timeline) -> str:
    """Return a timeline as CSV with a header."""
    text = io.StringIO()
    # Python's csv writer leaves a lone carriage return unquoted, which its reader rejects.
    strange = "\r" in timeline.schedule.name + timeline.unit
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if strange else csv.QUOTE_MINIMAL)
    text.write(",".join(COLUMNS) + "\n")
    writer.writerows(zip(*msgspec.structs.astuple(timeline_columns(timeline)), strict=True))
    return text.getvalue()


def timeline_columns_json(timeline: Timeline) -> str:
    """Return a timeline as a JSON object with one list per column."""
    return json_text(timeline_columns(timeline), compact=True) + "\n"


def parse_timeline_csv(text: str, *, name: str = "") -> Timeline:
    """Return the timeline in the text of :func:`timeline_csv`.

    Raises FormatError if the header differs, a line has another number of cells, a value is invalid, or the ops are not a
    valid schedule.
    """
    try:
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise FormatError(f"{name}: {error}") from None
    if not lines or tuple(lines[0]) != COLUMNS:
        raise FormatError(f"{name}: the first line of a timeline must be {','.join(COLUMNS)}")
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(COLUMNS):
            raise FormatError(f"{name}: line {number} has {len(line)} cells, not {len(COLUMNS)}")
    columns = zip(*lines[1:], strict=True) if len(lines) > 1 else [()] * len(COLUMNS)
    return _parse(dict(zip(COLUMNS, map(list, columns), strict=True)), name)


def parse_timeline_columns_json(text: str, *, name: str = "") -> Timeline:
    """Return the timeline in the text of :func:`timeline_columns_json`."""
    try:
        return _timeline(decoded(text, TimelineTable))
    except (CostError, FormatError) as error:
        raise FormatError(f"{name}: {error}") from None


def _parse(columns: dict[str, list[str]], name: str) -> Timeline:
    try:
        return _timeline(msgspec.convert(columns, TimelineTable, strict=False))
    except msgspec.ValidationError as error:
        raise FormatError(f"{name}: {type_fault(error)}") from None
    except (CostError, FormatError) as error:
        raise FormatError(f"{name}: {error}") from None


def _timeline(table: TimelineTable) -> Timeline:
    if len({len(column) for column in msgspec.structs.astuple(table)}) > 1 or not table.rank:
        raise FormatError("a timeline's columns must have the same length, and at least one op")
    schedule = _schedule(table)
    start, end = np.array(table.start), np.array(table.end)
    if (wrong := np.flatnonzero(~((np.abs(start) < np.inf) & (start <= end) & (end < np.inf)))).size:
        raise FormatError(f"{schedule.place(int(wrong[0]))} has no finite time or ends before it starts")
    return Timeline(schedule, start, end, _only(table.unit, "unit"), _source(table))


def _schedule(table: TimelineTable) -> Schedule:
    rank = _small(table.rank, "rank", least=0)
    if (np.diff(rank) < 0).any():
        raise FormatError("ranks must be in ascending order, each with its ops in the order in which it runs them")
    if rank[-1] >= len(rank):
        raise FormatError(f"ranks 0 to {rank[-1]} must each have an op, but the table has only {len(rank)}")
    rows = np.split(np.arange(len(rank)), np.searchsorted(rank, np.arange(1, int(rank[-1]) + 1)))
    columns = _columns(table)
    try:
        by_rank = [columns[row] for row in rows]
        microbatches = 1 + max(0, int(columns.microbatch.max()))
        placement = infer_placement([list(row) for row in by_rank], microbatches)
        slices = 1 + int(columns.slice.max())
        return Schedule.from_rows(
            placement, microbatches, by_rank, slices=slices, name=_only(table.schedule, "schedule")
        )
    except (InvalidScheduleError, ShapeError) as error:
        raise FormatError(str(error)) from None


def _columns(table: TimelineTable) -> Columns:
    unknown = sorted(set(table.kind) - set(Kind.__members__))
    if unknown:
        raise FormatError(f"unknown kind {unknown[0]!r}")
    return Columns(
        kind=np.array([Kind[kind] for kind in table.kind], np.int8),
        stage=_small(table.stage, "stage", least=0).astype(np.int32),
        microbatch=_small(table.microbatch, "microbatch", least=-1).astype(np.int32),
        slice=_small(table.slice, "slice", least=0, most=2**15 - 1).astype(np.int16),
        group=_small(table.group, "group", least=-1).astype(np.int32),
    )


def _small(values: list[int], what: str, *, least: int, most: int = 10**9) -> NDArray[np.int64]:
    if min(values) < least or max(values) > most:
        raise FormatError(
            f"a {what} must be from {least} to {most}, not {min(values) if min(values) < least else max(values)}"
        )
    return np.array(values, np.int64)


def _only(values: list[str], what: str) -> str:
    """Return the value of a column that must be the same in every line."""
    if len(set(values)) > 1:
        raise FormatError(f"all lines must have the same {what}, not {', '.join(sorted(set(values))[:3])}")
    return values[0]


def _source(table: TimelineTable) -> Literal["simulated", "measured"]:
    return "measured" if _only(list(table.source), "source") == "measured" else "simulated"


FORMATS = (
    Format(
        name="timeline-csv",
        title="Times of every op, CSV",
        help="One line per op with its times, under a header, for pandas and spreadsheets.",
        ending=".timeline.csv",
        media="text/csv; charset=utf-8",
        write_timeline=lambda outcome: timeline_csv(outcome.timeline),
        read=lambda text, name, keep: parse_timeline_csv(text, name=name),
        recognises=lambda text: text.startswith(",".join(COLUMNS)),
    ),
    Format(
        name="timeline-columns",
        title="Times of every op, JSON columns",
        help="Object with one list per column and one value per op, for pandas.DataFrame.",
        ending=".columns.json",
        media="application/json",
        write_timeline=lambda outcome: timeline_columns_json(outcome.timeline),
        read=lambda text, name, keep: parse_timeline_columns_json(text, name=name),
        recognises=lambda text: text.lstrip().startswith('{"schedule":['),
    ),
)
