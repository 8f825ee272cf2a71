"""Record of the answer on one schedule: its figures, as JSON has them."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from pipeplan.answers.sharding import ShardingUsed
from pipeplan.foundation.records import Record
from pipeplan.model import Bubble, Need


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


class ResultRecord(Record, frozen=True, kw_only=True):
    """Figures of one schedule on one set of costs.

    ``headline`` is the answer in one sentence.

    ``needs`` is what the schedule needs of the model and the trainer beyond a plain pipeline. ``over`` is null if every rank
    is within its limit. ``gap`` is how far the makespan is above ``lower_bound``, as a share; null over the limit.
    ``bound_covers`` says for which schedules the bound holds. ``least_gap``, the same above the smallest bound of all
    compared placements, is in comparisons only; ``step`` is present if a step adds time after its last op, ``sharding`` if
    the schedule has collectives: the rule that placed them, or ``own``; ``peak_parameter_bytes`` if ranks gather sharded
    parameters (these bytes are part of ``peak_bytes``). Times are in ``time_unit``; lists have one number per rank.
    """

    headline: str
    name: str = msgspec.field(name="schedule")
    ranks: int
    chunks: int
    stages: int
    microbatches: int
    slices: int
    placement: list[int | list[int]]
    needs: tuple[Need, ...]
    ops: int
    time_unit: str
    makespan: float
    spans: list[float]
    work: list[float]
    idle: list[float]
    bubble: Bubble
    peak_activation: list[float]
    peak_bytes: list[float] | None
    fits: bool
    over: OverLimitRecord | None
    lower_bound: float
    bound_reason: str
    bound_covers: str
    gap: float | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    least_gap: float | UnsetType | None = UNSET
    step: StepRecord | UnsetType = UNSET
    sharding: ShardingUsed | UnsetType = UNSET
    peak_parameter_bytes: list[float] | UnsetType = UNSET
