"""pipeplan's own lossless JSON of schedules and timelines.

::

    {"format": "pipeplan-schedule", "version": 1, "schedule": "1f1b", "ranks": 2, "chunks": 1, "stages": 2,
     "microbatches": 1, "slices": 1, "placement": [0, 1], "rows": [["0F0", "0B0"], ["1F0", "1B0"]]}

A timeline has ``"format": "pipeplan-timeline"``, the same keys, the start and end of every op, and optionally the figures of
its result (the keys of ``pipeplan simulate --json`` and ``search --json``). ``placement`` is the rank of each stage, or one
such list for each copy of the model. Unknown keys are errors.
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


class BubbleRecord(Record, frozen=True, kw_only=True):
    """Idle time as three ratios; see :class:`~pipeplan.model.timeline.Bubble`."""

    idle_over_total: float
    over_ideal: float
    span: float


class StepRecord(Record, frozen=True, kw_only=True):
    """Time of a step including the time added after its last op, with a barrier at its end and without one."""

    with_barrier: float
    without_barrier: float


class OverLimitRecord(Record, frozen=True, kw_only=True):
    """Rank that exceeds its memory limit the most, its peak and its limit, and the number of other ranks over theirs."""

    rank: int
    peak: float
    limit: float
    unit: Literal["bytes", "activations"]
    others: int


class ObjectiveRecord(Record, frozen=True, kw_only=True):
    """Objective of a search, and its lower bound."""

    name: Literal["makespan", "span"]
    of: Literal["plan", "p95", "worst"]
    value: float
    lower_bound: float
    bound_reason: str
    gap: float


class JitterRecord(Record, frozen=True, kw_only=True):
    """Objective with varying op times, and that of the best published schedule."""

    deviation: float
    mean: float
    p95: float
    published_p95: float | None


class SlowRankRecord(Record, frozen=True, kw_only=True):
    """Objective if one rank is slower by a share, each in turn, and that of the best published schedule."""

    share: float
    mean: float
    worst: float
    published_worst: float | None


class Price(Record, frozen=True, kw_only=True):
    """Relative increase of the step time by recomputation or offloading, and the largest saving of memory on a rank.

    Both are relative to the same order without recomputation and offloading.
    """

    time: float
    memory: float
    rank: int
    in_bytes: bool = False


class Decided(Record, frozen=True, kw_only=True):
    """Choices that a search was free to make, and the choices in its schedule.

    ``recomputed`` and ``offloaded`` count microbatches per stage, of ``microbatches`` in the step.
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
        """True if the search was free to recompute or offload."""
        return "recompute" in self.choices or "offload" in self.choices


class PublishedSchedule(Record, frozen=True, kw_only=True):
    """A published schedule to compare with: its name, its placement, and its objective.

    The name includes the variant or the group size if it is not the default.
    """

    name: str = msgspec.field(name="schedule")
    placement: str
    value: float


class PlacementRecord(Record, frozen=True, kw_only=True):
    """A placement in a search: its best lower bound, and the best value found; null if it cannot win."""

    placement: str
    chunks: int
    lower_bound: float
    value: float | None


class SearchFigures(Record, frozen=True, kw_only=True):
    """Course of a search, its proof and its gain: the keys that it adds to the JSON of its result.

    Attributes
    ----------
    found_by
        Engine that found the schedule, and its starting point.
    optimal
        True if the bound proves that no schedule of the placement has a smaller objective; for spans, no schedule whose
        ops start as early as possible.
    evaluations, seconds
        Evaluated schedules and elapsed time.
    interrupted
        True if the user stopped the search before its budget was spent.
    compiled_after
        Seconds after which the search ran on compiled kernels, 0 from the start; None: never on all of them.
    tried
        Bound and best value of each placement that could have won.
    minimized
        Objective, its value, and its lower bound.
    under_jitter, with_slow_rank
        Objective under variation by which the search judges, and that of the best published schedule; None without
        variation.
    communication
        Model of transfers.
    decided
        Choices in the schedule besides its order, and those that the search was free to make.
    best_published
        Best published schedule of the search's placement within the limit; None if none fits.
    best_published_anywhere
        Best published schedule of any placement; None if none fits, or the shape is too large to try the others.
    gain, gain_anywhere
        Relative reduction of the objective compared with theirs; negative for an increase.
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

    ``over`` is null if every rank is within its limit. ``least_gap``, the gap to the smallest bound of all schedules,
    is in comparisons only; ``step`` is present if a step adds time after its last op, and the keys from ``found_by`` on
    in searches. Times are in ``time_unit``; lists have one number per rank.
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
    # The result of a search also has the figures of the search.
    ResultRecord = msgspec.defstruct(
        "ResultRecord",
        optional_fields(SearchFigures),
        bases=(ResultFigures,),
        namespace={"__doc__": ResultFigures.__doc__},
        frozen=True,
        kw_only=True,
    )


class TimesRecord(ScheduleRecord, kw_only=True):
    """A schedule with times; ``start`` and ``end`` have one number per op of every row, and two per overlapped pair."""

    unit: str = ""
    source: Literal["simulated", "measured"] = "simulated"
    start: list[list[float]]
    end: list[list[float]]


def _timeline_record() -> Any:
    doc = f"{TimesRecord.__doc__}\n\n    The optional figures are those of its result; see ResultRecord."
    return msgspec.defstruct(
        "TimelineRecord",
        optional_fields(ResultRecord, without=ScheduleRecord.__struct_fields__),
        bases=(TimesRecord,),
        namespace={"__doc__": doc},
        tag="pipeplan-timeline",
        kw_only=True,
    )


TimelineRecord: Any = _timeline_record()
"""A timeline in JSON."""


def placement_record(placement: Placement) -> list[int | list[int]]:
    """Return the rank of each stage; for several copies of the model, one list per copy."""
    if placement.copies == 1:
        return list(placement.rank_of[0])
    return [list(copy) for copy in placement.rank_of]


def schedule_json(schedule: Schedule) -> str:
    """Return a schedule as JSON."""
    return _encode(ScheduleRecord(**_fields(schedule)))


def timeline_json(timeline: Timeline, figures: Mapping[str, Any] | None = None) -> str:
    """Return a timeline as JSON; ``figures`` is the record of its result."""
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
    """Return the schedule or timeline in a JSON text.

    Parameters
    ----------
    text
        Output of :func:`schedule_json` or :func:`timeline_json`.
    name
        Source of the text, for messages.
    keep_duplicates
        True to leave duplicate ops for the checker to report.

    Raises
    ------
    FormatError
        If the text is not JSON or is truncated, a key or version is unknown, a key occurs twice, shapes contradict each
        other, a cell is not an op, or times are invalid.
    InvalidScheduleError
        If a rank or stage holds nothing, or an op is out of range.
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
                f"{name} is not a schedule: the key 'format' is missing; pass settings files with --config"
            ) from None
        raise FormatError(f"{name}: {other_version(text, VERSION) or error}") from None
    except (NotationError, ShapeError, CostError, FormatError, RecursionError) as error:
        raise FormatError(f"{name}: {error}") from None
    except InvalidScheduleError as error:
        raise type(error)(f"{name}: {error}") from None


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


def _timeline(record: TimesRecord, schedule: Schedule) -> Timeline:
    start, end = (_times(times, schedule, what) for times, what in ((record.start, "start"), (record.end, "end")))
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
        write_timeline=lambda outcome: timeline_json(outcome.timeline, outcome.figures),
        write_record=lambda record: json_text(record, indent=1) + "\n",
        read=lambda text, name, keep: parse_json(text, name=name, keep_duplicates=keep),
    ),
)
