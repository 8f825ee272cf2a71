"""Answers of the planner: the estimate of one configuration, and the plan that chooses among many."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from pipeplan.model import Schedule
from pipeplan.planner.configuration import Configuration

CostsFrom = Literal["measured", "calibrated", "analytic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """What one pipeline rank's GPU holds at its peak; bytes.

    Attributes
    ----------
    weights, gradients, optimizer
        Of its parameters.
    activations
        Kept for backwards, at the schedule's peak.
    transient
        What an op holds besides, at most (logits, workspace, gathered layers).
    buffers
        Of communication.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    transient: float = 0.0
    buffers: float = 0.0

    @property
    def total(self) -> float:
        """All of it: what the framework has allocated."""
        return float(sum(getattr(self, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Where the step's time goes on the rank that decides it; seconds, whose sum is the step.

    Attributes
    ----------
    compute
        Kernels of F, I and W.
    recompute
        Of them, what is run again.
    tensor, context, expert
        Exposed communication inside layers.
    bubble
        Idle, transfers between stages with it.
    overhead
        Lost between ops.
    data
        Exposed reduction of gradients and gathering of weights.
    optimizer
        The step's end.
    """

    compute: float
    recompute: float = 0.0
    tensor: float = 0.0
    context: float = 0.0
    expert: float = 0.0
    bubble: float = 0.0
    overhead: float = 0.0
    data: float = 0.0
    optimizer: float = 0.0

    @property
    def total(self) -> float:
        """The step; seconds."""
        return float(sum(getattr(self, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBar:
    """How far predictions were off on the nearest published runs.

    Attributes
    ----------
    low, high
        Factors on the prediction between which most of the nearest runs were measured.
    runs
        Ids of those runs, the nearest first.
    """

    low: float
    high: float
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A prediction of one configuration.

    Attributes
    ----------
    configuration
        What is predicted; its layout is filled in.
    time
        The step, by what spends it.
    memory
        Of every pipeline rank.
    flops
        Of the model in one step, all GPUs together: causal attention counted half, no recomputation.
    mfu
        ``flops`` over GPUs, step time and 16-bit dense peak; the format's own peak where products run in 8 or 4 bits.
    tokens_per_second
        Of the whole cluster.
    stage_forward, stage_backward_input, stage_backward_weight
        Of every stage for one microbatch; seconds. Recomputation is in I.
    transfer
        Of one message between stages; seconds.
    costs_from
        By kind of work, where its time is from.
    assumed
        What had to be assumed, a sentence each.
    error_bar
        From the nearest published runs; None where there is none near.
    """

    configuration: Configuration
    time: StepTime
    memory: tuple[GpuMemory, ...]
    flops: float
    mfu: float
    tokens_per_second: float
    stage_forward: tuple[float, ...]
    stage_backward_input: tuple[float, ...]
    stage_backward_weight: tuple[float, ...]
    transfer: float
    costs_from: dict[str, CostsFrom]
    assumed: tuple[str, ...] = ()
    error_bar: ErrorBar | None = None

    @property
    def step_time(self) -> float:
        """Seconds."""
        return self.time.total

    @property
    def peak_bytes(self) -> float:
        """Of the fullest rank."""
        return max(rank.total for rank in self.memory)


Objective = Literal["step-time", "tokens", "cost", "gpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerUp:
    """A configuration that was not chosen, and why, in one sentence."""

    estimate: Estimate
    lost_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What becomes of the choice where an input is not as assumed.

    Attributes
    ----------
    input
        Such as ``bandwidth between nodes``.
    factor
        On that input; 1 where the input says its value.
    step_time
        Of the configuration chosen for the plan, with it; seconds.
    changes
        Whether another configuration is then better.
    instead
        That one, in a few words; empty where the choice stays.
    """

    input: str
    factor: float
    step_time: float
    changes: bool
    instead: str = ""

    @property
    def what(self) -> str:
        """The input and its factor in words."""
        return self.input if self.factor == 1 else f"{self.input} x {self.factor:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosestMiss:
    """Where nothing fits: what comes nearest, and the cheapest change that would fit.

    Attributes
    ----------
    estimate
        Of the configuration with the lowest peak.
    over_by
        Bytes above the limit.
    change
        What would make something fit, in one sentence.
    """

    estimate: Estimate
    over_by: float
    change: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchedOrder:
    """An order of ops that is better than every published one for a finalist; no trainer's flags can say it.

    Attributes
    ----------
    estimate
        Of the finalist with it.
    instead_of
        The step with the finalist's own schedule; seconds.
    schedule
        The order, of a whole step; it can be exported for PyTorch's runtime, and run by pipeplan's.
    found_by
        The engine that found it, and what it started from.
    optimality_gap
        How much longer than the best conceivable order of these stages the pipeline takes at most.
    """

    estimate: Estimate
    instead_of: float
    schedule: Schedule
    found_by: str
    optimality_gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many configurations there were.

    Attributes
    ----------
    legal
        All that the rules allow.
    over_memory, too_slow
        Dropped by a bound without being simulated.
    estimated
        Simulated.
    """

    legal: int
    over_memory: int
    too_slow: int
    estimated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The answer of the planner.

    Attributes
    ----------
    objective
        What was optimised.
    memory_limit
        Of a GPU; bytes.
    best
        None where nothing fits.
    runners_up
        The best first.
    front
        Step time against peak memory: no configuration is better in both; sorted by step time.
    sensitivity
        What would change the choice.
    closest_miss
        Where nothing fits.
    counts
        How many there were.
    seconds
        That it took.
    complete
        Whether every legal configuration was estimated or ruled out by a bound; False where the budget ended.
    searched
        A better order for a finalist, where a part of the budget found one.
    interrupted
        Whether somebody ended it before its budget did.
    optimality_gap
        How far the choice is at most above the best of all legal configurations but those left out, by their bounds;
        0 where it is complete.
    left_out
        Legal values that are tried only where they are fixed, in words.
    """

    objective: Objective
    memory_limit: float
    best: Estimate | None
    runners_up: tuple[RunnerUp, ...]
    front: tuple[Estimate, ...]
    sensitivity: tuple[Sensitivity, ...]
    closest_miss: ClosestMiss | None
    counts: Counts
    seconds: float
    complete: bool
    searched: SearchedOrder | None = None
    interrupted: bool = False
    optimality_gap: float = 0.0
    left_out: tuple[str, ...] = ()
