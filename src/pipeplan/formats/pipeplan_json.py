"""pipeplan's own JSON: a schedule, or a timeline, with everything that is needed to have it back.

::

    {"format": "pipeplan-schedule", "version": 1, "schedule": "1f1b", "ranks": 2, "chunks": 1, "stages": 2,
     "microbatches": 1, "slices": 1, "placement": [0, 1], "rows": [["0F0", "0B0"], ["1F0", "1B0"]]}

A timeline is the same with ``"format": "pipeplan-timeline"``, the times of every op of every row, and the figures of the
result that it belongs to, if to any (the keys of ``pipeplan simulate --json`` and ``search --json``). ``placement`` is the
rank of each stage, or one such list for each copy of the model. Unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from pipeplan.documents import json_text, require_unique_keys
from pipeplan.errors import CostError, FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.formats.format import Format, other_version
from pipeplan.model import Placement, Schedule, Timeline, format_cells, schedule_from_cells
from pipeplan.records import VERSION, Record, optional_fields


class ScheduleRecord(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="format", tag="pipeplan-schedule"
):
    """A schedule as JSON holds it; ``rows`` are cells of the text notation."""

    version: int
    schedule: str
    ranks: int
    chunks: int
    stages: int
    microbatches: int
    slices: int = 1
    placement: list[int | list[int]]
    rows: list[list[str]]


class BubbleRecord(Record, frozen=True, kw_only=True):
    """Idle time as three ratios; see :class:`~pipeplan.model.timeline.Bubble`."""

    idle_over_total: float
    over_ideal: float
    span: float


class StepRecord(Record, frozen=True, kw_only=True):
    """Time of a step with what it adds behind its last op: with a barrier at its end, and without one."""

    with_barrier: float
    without_barrier: float


class OverLimitRecord(Record, frozen=True, kw_only=True):
    """Rank that is furthest over its memory limit: its peak and its limit; and how many other ranks are over theirs."""

    rank: int
    peak: float
    limit: float
    unit: Literal["bytes", "activations"]
    others: int


class ObjectiveRecord(Record, frozen=True, kw_only=True):
    """What a search minimised, and its lower bound."""

    name: Literal["makespan", "span"]
    of: Literal["plan", "p95", "worst"]
    value: float
    lower_bound: float
    bound_reason: str
    gap: float


class JitterRecord(Record, frozen=True, kw_only=True):
    """The objective when op times vary, and that of the best published schedule."""

    deviation: float
    mean: float
    p95: float
    published_p95: float | None


class SlowRankRecord(Record, frozen=True, kw_only=True):
    """The objective when one rank is slower by a share, each in turn, and that of the best published schedule."""

    share: float
    mean: float
    worst: float
    published_worst: float | None


class Price(Record, frozen=True, kw_only=True):
    """By which share recomputing or offloading makes the step longer, and what it saves on the rank that saves the most.

    Both are against the same order with everything kept.
    """

    time: float
    memory: float
    rank: int
    in_bytes: bool = False


class Decided(Record, frozen=True, kw_only=True):
    """What a search was free to decide and what it decided; ``recomputed`` and ``offloaded`` count microbatches by stage.

    There are ``microbatches`` in the step.
    """

    choices: tuple[Literal["split", "overlap", "weight-order", "recompute", "offload"], ...]
    recomputed: tuple[int, ...]
    offloaded: tuple[int, ...]
    full_backwards: int
    split_backwards: int
    overlapped_pairs: int
    prices: dict[Literal["recompute", "offload"], Price]
    microbatches: int = 0

    @property
    def frees_memory(self) -> bool:
        """Whether the search was free to hold less than all that backwards need."""
        return "recompute" in self.choices or "offload" in self.choices


class PublishedSchedule(Record, frozen=True, kw_only=True):
    """A published schedule that a search has to beat: its name, that of its placement, and its objective.

    The name has the schedule's variant or group where that is not its own.
    """

    name: str = msgspec.field(name="schedule")
    placement: str
    value: float


class PlacementRecord(Record, frozen=True, kw_only=True):
    """What a search knows of a placement: the best proven bound, and the best value found; null where it cannot win."""

    placement: str
    chunks: int
    lower_bound: float
    value: float | None


class SearchFigures(Record, frozen=True, kw_only=True):
    """How a search came to a schedule, what it has proven, and what it gained: what it adds to the JSON of its result.

    Attributes
    ----------
    found_by
        The engine that found it, and what it started from.
    optimal
        Whether the bound proves that no schedule of the placement has a smaller objective; of spans, none whose ops start
        as soon as they can.
    evaluations, seconds
        What the search spent.
    interrupted
        Whether the user stopped it before its budget was spent.
    compiled_after
        Seconds of the budget after which it ran on compiled kernels, 0 from its start; None: some were never ready.
    tried
        Bound and best value of each placement that could have won.
    minimized
        The objective, its value, and its lower bound.
    under_jitter, with_slow_rank
        The objective in the runs that the search judges by, and that of the best published schedule; None where op times do
        not vary, and no rank is slower.
    communication
        How transfers behave.
    decided
        What the schedule decided beside its order, and what the search was free to decide.
    best_published
        The best published schedule of the search's placement within the limit; None where none fits.
    best_published_anywhere
        The best one of any placement; None where none fits, and for shapes too large to try the others.
    gain, gain_anywhere
        By what share the objective is smaller than theirs; below 0: larger.
    """

    found_by: str
    optimal: bool
    evaluations: int
    seconds: float
    interrupted: bool
    compiled_after: float | None
    tried: tuple[PlacementRecord, ...] = msgspec.field(name="placements")
    minimized: ObjectiveRecord = msgspec.field(name="objective")
    under_jitter: JitterRecord | None = msgspec.field(name="jitter")
    with_slow_rank: SlowRankRecord | None = msgspec.field(name="slow_rank")
    communication: Literal["edge", "contended", "blocking"]
    decided: Decided
    best_published: PublishedSchedule | None
    gain: float | None
    best_published_anywhere: PublishedSchedule | None
    gain_anywhere: float | None


class ResultFigures(Record, frozen=True, kw_only=True):
    """Figures of one schedule on one set of costs.

    ``over`` is null where every rank is within its limit. ``least_gap``, the gap to the least bound of all schedules, is
    there in a comparison, ``step`` where a step adds anything behind its last op, and what follows from ``found_by`` on in a
    search. Times are in ``time_unit``; lists have a number per rank.
    """

    name: str = msgspec.field(name="schedule")
    ranks: int
    chunks: int
    stages: int
    microbatches: int
    slices: int
    placement: list[int | list[int]]
    ops: int
    time_unit: str
    makespan: float
    spans: list[float]
    work: list[float]
    idle_by_rank: list[float] = msgspec.field(name="idle")
    bubble: BubbleRecord
    peak_activation: list[float]
    peak_bytes: list[float] | None
    fits: bool
    over: OverLimitRecord | None
    lower_bound: float
    bound_reason: str
    gap: float | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    least_gap: float | UnsetType | None = UNSET
    step: StepRecord | UnsetType = UNSET


if TYPE_CHECKING:
    ResultRecord = ResultFigures
else:
    # A result that was searched for has the figures of its search as well.
    ResultRecord = msgspec.defstruct(
        "ResultRecord",
        optional_fields(SearchFigures),
        bases=(ResultFigures,),
        namespace={"__doc__": ResultFigures.__doc__},
        frozen=True,
        kw_only=True,
    )


class TimesRecord(ScheduleRecord, kw_only=True):
    """A schedule with times; ``start`` and ``end`` have a number for every op of every row, pairs counting two."""

    unit: str = ""
    source: Literal["simulated", "measured"] = "simulated"
    start: list[list[float]]
    end: list[list[float]]


def _timeline_record() -> Any:
    """Times, and any figures of the result that they belong to."""
    doc = f"{TimesRecord.__doc__}\n\n    The figures are those of its result, if it belongs to one; see ResultRecord."
    return msgspec.defstruct(
        "TimelineRecord",
        optional_fields(ResultRecord, without=ScheduleRecord.__struct_fields__),
        bases=(TimesRecord,),
        namespace={"__doc__": doc},
        tag="pipeplan-timeline",
        kw_only=True,
    )


TimelineRecord: Any = _timeline_record()
"""A timeline as JSON holds it."""


def placement_record(placement: Placement) -> list[int | list[int]]:
    """The rank of each stage; with several copies of the model, a list for each."""
    if placement.copies == 1:
        return list(placement.rank_of[0])
    return [list(copy) for copy in placement.rank_of]


def schedule_json(schedule: Schedule) -> str:
    """A schedule as JSON."""
    return _encode(ScheduleRecord(**_fields(schedule)))


def timeline_json(timeline: Timeline, figures: Mapping[str, Any] | None = None) -> str:
    """A timeline as JSON; ``figures`` is the record of its result."""
    offsets = timeline.schedule.offsets[1:-1]
    times = {
        "unit": timeline.unit,
        "source": timeline.source,
        "start": [row.tolist() for row in np.split(timeline.start, offsets)],
        "end": [row.tolist() for row in np.split(timeline.end, offsets)],
    }
    return _encode(msgspec.convert(_fields(timeline.schedule) | dict(figures or {}) | times, TimelineRecord))


def _fields(schedule: Schedule) -> dict[str, Any]:
    return {
        "version": VERSION,
        "schedule": schedule.name,
        "ranks": schedule.ranks,
        "chunks": schedule.placement.chunks,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
        "slices": schedule.slices,
        "placement": placement_record(schedule.placement),
        "rows": [format_cells(row) for row in schedule],
    }


def _encode(record: ScheduleRecord) -> str:
    return json_text(record, compact=True) + "\n"


def parse_json(text: str, *, name: str = "", keep_duplicates: bool = False) -> Schedule | Timeline:
    """The schedule or the timeline that JSON holds.

    Parameters
    ----------
    text
        What :func:`schedule_json` or :func:`timeline_json` wrote.
    name
        Where it comes from, for messages.
    keep_duplicates
        Whether an op that stands twice is left for the checker to report.

    Raises
    ------
    FormatError
        For text that is not JSON or is cut off, an unknown key or version, a key that stands twice, shapes that contradict
        each other, a cell that is no op, times that are no times.
    InvalidScheduleError
        For ranks or stages that hold nothing, ops out of range.
    """
    try:
        record = msgspec.json.decode(text, type=ScheduleRecord | TimelineRecord)
        if record.version != VERSION:
            raise FormatError(other_version(text, VERSION) or "its version is unknown")
        require_unique_keys(text)
        schedule = _schedule(record, keep_duplicates)
        return _timeline(record, schedule) if isinstance(record, TimesRecord) else schedule
    except msgspec.DecodeError as error:
        if "missing required field `format`" in str(error):
            raise FormatError(
                f"{name} holds no schedule: its key 'format' is missing; a file of settings is for --config"
            ) from None
        raise FormatError(f"{name}: {other_version(text, VERSION) or error}") from None
    except (NotationError, ShapeError, CostError, FormatError, RecursionError) as error:
        raise FormatError(f"{name}: {error}") from None
    except InvalidScheduleError as error:
        raise type(error)(f"{name}: {error}") from None


def _schedule(record: ScheduleRecord, keep_duplicates: bool) -> Schedule:
    placement = Placement.of(*_copies(record.placement))
    said = (record.ranks, record.chunks, record.stages)
    if said != (placement.ranks, placement.chunks, placement.stages):
        raise FormatError(
            f"it says {record.ranks} ranks, {record.chunks} chunks, {record.stages} stages, but its placement has "
            f"{placement.ranks}, {placement.chunks}, {placement.stages}"
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
        raise FormatError("placement is the rank of each stage, or one such list for each copy of the model, not both")
    return copies or [flat]


def _timeline(record: TimesRecord, schedule: Schedule) -> Timeline:
    start, end = (_times(times, schedule, what) for times, what in ((record.start, "start"), (record.end, "end")))
    if (late := np.flatnonzero(start > end)).size:
        raise FormatError(f"{schedule.place(int(late[0]))} ends before it starts")
    return Timeline(schedule, start, end, record.unit, record.source)


def _times(rows: list[list[float]], schedule: Schedule, what: str) -> NDArray[np.float64]:
    expected = np.diff(schedule.offsets).tolist()
    counts = [len(row) for row in rows]
    if counts != expected:
        raise FormatError(f"'{what}' has {counts} times a rank, and the rows have {expected} ops")
    times = np.array([time for row in rows for time in row], np.float64)
    if not bool(np.all(np.isfinite(times))):
        raise FormatError(f"'{what}' holds a time that is not finite")
    return times


FORMATS = (
    Format(
        name="json",
        title="Figures and times, JSON",
        help="pipeplan's own: a schedule, a timeline with its figures, or the record of any other answer.",
        ending=".json",
        media="application/json",
        write_schedule=schedule_json,
        write_timeline=lambda outcome: timeline_json(outcome.timeline, outcome.figures),
        write_record=lambda record: json_text(record, indent=1) + "\n",
        read=lambda text, name, keep: parse_json(text, name=name, keep_duplicates=keep),
    ),
)
