"""What the commands about schedules answer under ``--json``: the ``to_dict()`` of each answer, key by key."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from pipeplan.api.catalogue import Timing
from pipeplan.api.differing.departure import Departure
from pipeplan.api.differing.op_differences import OpDifference, RankDifference, WholeKind
from pipeplan.api.resimulation import KindDifference
from pipeplan.formats import ResultRecord


class _Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Has the keys of its fields and no others."""


class LeastBoundRecord(_Record):
    """The least bound of all placements that were compared."""

    value: float
    reason: str
    placement: str
    chunks: int
    slices: int
    recomputing: bool


class LeadRecord(_Record):
    """From which transfer time or memory limit on another schedule leads."""

    change: Literal["transfer", "memory"]
    leader: str
    at: float
    schedule: str | None
    makespan: float | None


class ComparisonRecord(_Record):
    """``pipeplan compare --json``: the results, the best first; ``refused`` says by name why others were left out.

    ``leads`` is empty without ``--leads``.
    """

    results: list[ResultRecord]
    refused: dict[str, str]
    warnings: list[str]
    notes: list[str]
    least_bound: LeastBoundRecord
    leads: list[LeadRecord]


class WaitRecord(_Record):
    """A rank's longest wait: before which op, and for which rank."""

    rank: int
    start: float
    end: float
    op: str
    from_rank: int | None


class CriticalPathRecord(_Record):
    """What the longest chain of ops is made of."""

    by_kind: dict[str, float]
    by_stage: list[float]
    overhead: float
    transfer: float
    ops: int


class WindowRecord(_Record):
    """A stretch of time in which a memory limit keeps round trips apart."""

    rank: int | None
    kind: str
    start: float
    end: float
    idle: float
    least_length: float
    least_idle: float


class WhatIfRecord(_Record):
    """What a change would bring."""

    change: str
    kind: str
    makespan: float
    microbatches: int
    per_microbatch: float
    peak_activation: float
    peak_bytes: float | None
    fits: bool
    gain: float


class ReasonsRecord(_Record):
    """Why ranks idle, and how long each: a list by rank for each reason."""

    reasons: dict[str, list[float]]
    longest_waits: list[WaitRecord | None]
    per_microbatch: float
    critical_path: CriticalPathRecord
    windows: list[WindowRecord]
    what_ifs: list[WhatIfRecord]


class ExplanationRecord(ResultRecord, kw_only=True, forbid_unknown_fields=True):
    """``pipeplan explain --json``: a result and why its ranks idle."""

    explain: ReasonsRecord


class ProblemRecord(_Record):
    """What is wrong with a schedule: the rule, the place, a sentence."""

    rule: str
    where: str
    message: str


class VerdictRecord(_Record):
    """``pipeplan check --json``; without the shape where the file holds no schedule at all."""

    valid: bool
    problems: list[ProblemRecord]
    notes: list[ProblemRecord] | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    ranks: int | UnsetType = UNSET
    stages: int | UnsetType = UNSET
    microbatches: int | UnsetType = UNSET
    ops: int | UnsetType = UNSET


class DiffRecord(_Record):
    """``pipeplan diff --json``: planned against measured."""

    schedule: str
    unit: str
    planned_makespan: float
    measured_makespan: float
    error: float
    relative_error: float
    change: float
    sentences: list[str]
    from_costs: float
    from_waiting: float
    path_messages: float
    path_gaps: float
    planned_path_messages: float
    planned_path_gaps: float
    measured_of: str
    notes: list[str]
    kinds: list[KindDifference]
    whole_kinds: list[WholeKind]
    ranks: list[RankDifference]
    slowest: list[OpDifference]
    departure: Departure | None


class FrontPointRecord(_Record):
    """A point of a front: its limit (none where null), peak, objective, and the result."""

    limit: float | None
    peak: float
    value: float
    result: ResultRecord


class MarkRecord(_Record):
    """A published schedule beside a front."""

    schedule: str
    peak: float
    value: float


class FrontRecord(_Record):
    """``pipeplan search --pareto --json``: memory against time."""

    memory: Literal["bytes", "activations"]
    points: list[FrontPointRecord]
    published: list[MarkRecord]


class PatternRecord(_Record):
    """A schedule that repeats: a row of ops a rank, and after how long."""

    microbatches: int
    period: float
    per_microbatch: float
    rows: list[list[str]]


class PeriodRecord(_Record):
    """What is known of periods of so many microbatches."""

    microbatches: int
    per_microbatch: float | None
    bound: float


class SteadyStatesRecord(_Record):
    """``pipeplan search --steady-state --json``: what each further microbatch costs."""

    unit: str
    per_microbatch: float | None
    bound: float
    gap: float | None
    pattern: PatternRecord | None
    periods: list[PeriodRecord]


class StrategyRecord(_Record):
    """A strategy: what it takes, what its authors promise, and who they are."""

    name: str
    title: str
    placement: str
    chunks: int | None
    accepts: str
    bubble: str
    memory: str
    paper: str
    aliases: list[str]
    variants: list[str]
    timings: list[Timing] | UnsetType = UNSET


class CatalogueRecord(_Record):
    """``pipeplan schedules --json``; one alone has its timings."""

    schedules: list[StrategyRecord]


class MachineRecord(_Record):
    """What runs on a machine were fitted to."""

    name: str
    title: str
    time_unit: str
    op_gap: float
    message_time: float
    step_time: float
    source: str


class MachinesRecord(_Record):
    """``pipeplan schedules --machines --json``."""

    machines: list[MachineRecord]


class StepSecondsRecord(_Record):
    """Seconds of a step: the median, each, and their spread over the median."""

    median: float
    steps: list[float]
    spread: float


class TrainingRunRecord(ResultRecord, kw_only=True, forbid_unknown_fields=True):
    """``pipeplan run --json``: the measured timeline's figures, steps, prediction, gradients; null where not asked for."""

    step_seconds: StepSecondsRecord
    noise: str | None
    predicted_seconds: float
    predicted_on: str
    max_gradient_difference: float | None
    gradients_equal: bool | None
    tolerance: float
    losses: list[float | None]
    model: str
    device: str
    dtype: str
    threads: int
    torch: str
