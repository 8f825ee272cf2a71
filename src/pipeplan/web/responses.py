"""What the web app answers, for its description; the bytes themselves are made by :mod:`pipeplan.web.replies`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from pipeplan.web.faults import Fault


class ScheduleOut(BaseModel):
    """A schedule that can be asked for."""

    name: str
    title: str
    placement: str
    chunks: int = Field(description="Chunks a rank where nobody says.")
    takes_chunks: bool = Field(description="Whether it can have another number of them.")
    accepts: str
    bubble: str
    memory: str
    paper: str
    variants: list[str]


class FormatOut(BaseModel):
    """A file format."""

    name: str
    title: str
    ending: str
    written: bool = Field(description="Whether a file of it can be downloaded.")
    read: bool = Field(description="Whether a file of it can be a schedule in a question.")
    several: bool = Field(description="Whether a file of it can hold more than one schedule.")


class BubbleOut(BaseModel):
    """Idle time as three ratios."""

    idle_over_total: float
    over_ideal: float
    span: float


class ResultOut(BaseModel):
    """The figures of one schedule: what ``pipeplan simulate --json`` prints, and what a table beside it shows."""

    schedule: str
    ranks: int
    chunks: int
    stages: int
    microbatches: int
    slices: int
    placement: list[int | list[int]]
    makespan: float
    spans: list[float]
    work: list[float]
    idle: list[float]
    bubble: BubbleOut
    peak_activation: list[float]
    peak_bytes: list[float] | None
    lower_bound: float
    gap: float | None = Field(description="None over the memory limit: the bound is for schedules within it.")
    warnings: list[str]
    fits: bool = Field(description="Whether every rank stays within its memory limit.")
    ops: int
    bound_reason: str
    time_unit: str


class OverOut(BaseModel):
    """The rank that is furthest over its memory limit."""

    rank: int
    peak: float = Field(description="What it holds.")
    limit: float = Field(description="What it may hold.")
    unit: Literal["bytes", "activations"]


class LeastBoundOut(BaseModel):
    """The least of the lower bounds: no schedule of any of these placements is shorter."""

    value: float
    reason: str
    placement: str
    chunks: int = Field(description="Chunks a rank of that placement.")
    slices: int
    recomputing: bool = Field(description="Whether it holds for schedules that recompute the same stages alone.")


class ComparedOut(ResultOut):
    """One schedule of a comparison."""

    least_gap: float | None = Field(description="How far above the least bound; None over the memory limit.")

    over: OverOut | None = Field(description="None where every rank is within its limit.")


class RefusedOut(Fault):
    """A schedule that cannot be had, and why."""

    schedule: str


class CompareOut(BaseModel):
    """Schedules side by side."""

    results: list[ComparedOut]
    refused: list[RefusedOut]
    warnings: list[str]
    least_bound: LeastBoundOut
    drawn: list[str] = Field(description="Whose timelines these are.")
    undrawn: list[str] = Field(description="Asked for, but too large to draw.")
    timeline: dict[str, Any] | None = Field(description="What mountTimeline takes.")


class ReasonOut(BaseModel):
    """Why ranks idle."""

    key: str
    title: str


class IdleOut(BaseModel):
    """Idle time of each rank by reason; the rows add up to the ranks' idle time."""

    reasons: list[ReasonOut]
    by_rank: list[list[float]]


class KindOut(BaseModel):
    """Time on the critical path of one kind of op."""

    kind: str
    title: str
    time: float


class PathOut(BaseModel):
    """What the critical path is made of."""

    ops: int
    by_kind: list[KindOut]
    transfer: float
    overhead: float
    by_stage: list[float]


class ChangeOut(BaseModel):
    """A change, and what the step becomes with it."""

    change: str
    kind: str = Field(description="What is changed: costs, schedule, chunks, microbatches, memory, recomputation.")
    makespan: float
    microbatches: int
    per_microbatch: float
    peak_activation: float
    peak_bytes: float | None
    fits: bool = Field(description="Whether every rank is then within its memory limit.")
    helps: bool = Field(description="Whether a microbatch takes less time; over the limit, whether it fits.")


class PeakOut(BaseModel):
    """What the fullest rank holds."""

    value: float
    unit: Literal["bytes", "activations"]


class ExplainOut(BaseModel):
    """Why one schedule takes as long as it does."""

    schedule: str
    makespan: float
    time_unit: str
    idle: IdleOut
    critical_path: PathOut
    sentences: list[str] = Field(description="The whole in a sentence, then one for each rank that says most.")
    advice: str = Field(description="What to do next; empty where nothing could be tried.")
    per_microbatch: float
    peak: PeakOut
    what_ifs: list[ChangeOut] = Field(description="The best first.")


class PresetOut(BaseModel):
    """Costs that come with pipeplan."""

    name: str
    origin: Literal["measured", "planned"]
    about: str = Field(description="What was measured or is planned, and who published it.")


class ConfigOut(BaseModel):
    """What a config file says."""

    settings: dict[str, Any] = Field(description="By the names of the settings of a request.")
    schedules: list[str]
    notes: list[str] = Field(description="What it says that cannot be taken over.")


class ComparableOut(BaseModel):
    """What compares schedules on a configuration's costs."""

    settings: dict[str, Any] = Field(description="By the names of the settings of a request.")
    schedule: str


class ChosenOut(BaseModel):
    """One configuration."""

    estimate: dict[str, Any] = Field(description="As a row of `pipeplan estimate --json`, with `flags` by trainer.")
    timeline: dict[str, Any] | None = Field(description="What mountTimeline takes; null where it is too large.")
    idle: float = Field(description="Idle time of all ranks in the timeline, as a share of all their time.")
    compare: ComparableOut
