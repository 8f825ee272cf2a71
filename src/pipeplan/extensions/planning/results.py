"""Answers of the planner: the estimate of one configuration, and the plan that chooses among many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import astuple

from pipeplan.extensions.planning.configuration import Configuration, ConfigurationRecord
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.records import Record
from pipeplan.model import Schedule

CostsFrom = Literal["measured", "calibrated", "analytic"]

Fit = Literal["fits", "tight", "does not fit"]
"""``fits``: even at the upper end of the error bar of the peak; ``tight``: within the bar; ``does not fit``: beyond it."""


class GpuMemory(Record, frozen=True, kw_only=True):
    """Parts of the peak memory of a pipeline rank's GPU, in GiB, which add up to it.

    Attributes
    ----------
    weights, gradients, optimizer
        Weights, gradients and optimizer state.
    activations
        Activations kept for the backward, at the schedule's peak.
    transient
        Additional peak within one op: logits, workspace, gathered layers.
    buffers
        Communication buffers.
    """

    weights: Annotated[float, Meta(title="weights")]
    gradients: Annotated[float, Meta(title="gradients")]
    optimizer: Annotated[float, Meta(title="optimizer state")]
    activations: Annotated[float, Meta(title="activations")]
    transient: Annotated[float, Meta(title="transient")]
    buffers: Annotated[float, Meta(title="buffers")]

    @classmethod
    def from_bytes(cls, **parts: float) -> GpuMemory:
        """Return the memory of parts in bytes."""
        # Division by a power of two is exact, so that comparisons with a limit in bytes do not depend on the unit.
        return cls(**{name: size / GIBIBYTE for name, size in parts.items()})

    @property
    def total(self) -> float:
        """Memory that the framework has allocated, in GiB."""
        return float(sum(astuple(self)))


class StepTime(Record, frozen=True, kw_only=True, rename=lambda name: f"{name}_s"):
    """Parts of the step time, each as the mean of all ranks, in seconds; they add up to the step.

    Attributes
    ----------
    compute
        Kernels of F, I and W, without recomputation.
    recompute
        Kernels that are run a second time.
    tensor, context, expert
        Exposed communication of tensor, context and expert groups inside layers.
    bubble
        Idle time of all ranks over their number, including transfers between stages.
    overhead
        Overhead between ops.
    data
        Exposed reduction of gradients and gathering of weights.
    optimizer
        Optimizer step.
    """

    compute: Annotated[float, Meta(title="compute")]
    recompute: Annotated[float, Meta(title="recomputation")]
    tensor: Annotated[float, Meta(title="exposed TP communication")]
    context: Annotated[float, Meta(title="exposed CP communication")]
    expert: Annotated[float, Meta(title="exposed EP communication")]
    bubble: Annotated[float, Meta(title="bubble")]
    overhead: Annotated[float, Meta(title="overhead between ops")]
    data: Annotated[float, Meta(title="exposed DP communication")]
    optimizer: Annotated[float, Meta(title="optimizer")]

    @property
    def total(self) -> float:
        """Step time in seconds."""
        return float(sum(astuple(self)))


class ErrorBar(Record, frozen=True, kw_only=True):
    """Range of measured over predicted step time on the nearest published runs.

    Attributes
    ----------
    low, high
        Factors on the prediction: most of the nearest runs were measured between them.
    step_time_s
        Step times at these factors, in seconds.
    runs
        Ids of these runs, the nearest first.
    coverage
        Fraction of all published runs that lie within such a bar of other sources' runs; 0: unknown.
    """

    low: float
    high: float
    step_time_s: tuple[float, float]
    runs: tuple[str, ...]
    coverage: float = 0.0


class Estimate(Record, frozen=True, kw_only=True):
    """Predicted step time and memory of one configuration; ``docs/how-to/planning.md`` explains them.

    Attributes
    ----------
    step_time
        Step time in seconds.
    peak_memory_gib, peak_memory_by_rank_gib
        Peak memory of the fullest pipeline rank, and of every rank.
    time
        Step time, by what it is spent on.
    memory
        Peak memory of every rank, by what holds it.
    tokens_per_second
        Tokens per second of the whole cluster.
    flops
        FLOPs of the model in one step on all GPUs: causal attention counted half, recomputation not counted.
    mfu
        Model FLOPs utilization: ``flops`` divided by GPUs, step time and dense 16-bit peak; for products in 8 or 4 bits, by
        the peak of that format.
    error_bar
        Error bar from the nearest published runs; None if no run is near.
    costs_from
        Source of the times, by kind of work.
    assumed
        Assumptions, one sentence each.
    settings
        Configuration of the prediction, with its layout filled in.
    """

    step_time: float = field(name="step_time_s")
    peak_memory_gib: float
    peak_memory_by_rank_gib: tuple[float, ...]
    time: StepTime = field(name="breakdown")
    memory: tuple[GpuMemory, ...] = field(name="memory_breakdown_by_rank_gib")
    tokens_per_second: float = field(name="tokens_per_s")
    flops: float
    mfu: float
    error_bar: ErrorBar | None
    costs_from: dict[str, CostsFrom]
    assumed: tuple[str, ...]
    settings: ConfigurationRecord = field(name="configuration")

    @property
    def peak_bytes(self) -> float:
        """Peak memory of the fullest rank, in bytes."""
        return self.peak_memory_gib * GIBIBYTE

    @cached_property
    def configuration(self) -> Configuration:
        """Configuration of the prediction, with its layout filled in."""
        return self.settings.configuration()


Objective = Literal["step-time", "cost", "gpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerUp:
    """Configuration that was not chosen, with the reason in one sentence."""

    estimate: Estimate
    lost_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelined:
    """Comparison of the best configuration with a pipeline and the best one without; the better of the two is the plan.

    Attributes
    ----------
    estimate
        Estimate of the best configuration with a pipeline.
    rival
        Estimate of the best configuration without one; None if none fits.
    lost_because
        Why the worse of the two lost, or why there is no rival, in one sentence.
    """

    estimate: Estimate
    rival: Estimate | None
    lost_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Effect of one changed input on the chosen plan.

    Attributes
    ----------
    input
        Name of the input, such as ``bandwidth between nodes``.
    factor
        Factor on the input; 1 if the name already contains the value.
    step_time
        Step time of the chosen configuration with the changed input, in seconds.
    changes
        Whether another configuration is better with the changed input.
    instead
        That configuration in a few words; empty if the plan stays the best.
    """

    input: str
    factor: float
    step_time: float
    changes: bool
    instead: str = ""

    @property
    def what(self) -> str:
        """Input and factor in words, such as ``bandwidth between nodes x 0.5``."""
        return self.input if self.factor == 1 else f"{self.input} x {self.factor:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosestMiss:
    """Configuration nearest to fitting when none fits, and the cheapest changes that would fit.

    Attributes
    ----------
    estimate
        Estimate of the configuration with the lowest peak memory.
    over_by
        Bytes above the memory limit.
    change
        Changes with which a configuration fits, in one sentence.
    """

    estimate: Estimate
    over_by: float
    change: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchedOrder:
    """Order of ops that beats every published schedule for a finalist; no trainer flag can express it.

    Attributes
    ----------
    estimate
        Estimate of the finalist with this order.
    instead_of
        Step time with the finalist's own schedule, in seconds.
    schedule
        The order of a whole step; it can be exported for PyTorch's runtime and run by pipeplan.
    found_by
        Search engine that found the order, and its starting point.
    optimality_gap
        Makespan over the lower bound of any order of these stages, minus 1.
    """

    estimate: Estimate
    instead_of: float
    schedule: Schedule
    found_by: str
    optimality_gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of configurations that the planner considered.

    Attributes
    ----------
    legal
        Configurations that satisfy all rules.
    over_memory, too_slow
        Configurations ruled out by a bound on memory or on time, without a simulation.
    estimated
        Configurations that were simulated.
    """

    legal: int
    over_memory: int
    too_slow: int
    estimated: int


DAY, HOUR = 86_400, 3_600
"""Seconds of a day and of an hour."""


class Totals(Record, frozen=True, kw_only=True):
    """Duration and price of a whole training run at the predicted step time, without interruptions.

    Attributes
    ----------
    tokens, steps
        Tokens to train on, and steps of the global batch.
    days, gpu_hours
        Time, and time of all GPUs together.
    dollars
        Cost at the price of a GPU hour; None without a price.
    """

    tokens: float
    steps: float
    days: float
    gpu_hours: float
    dollars: float | None

    @classmethod
    def of(cls, estimate: Estimate, tokens: float, price: float | None) -> Totals:
        """Return the totals of a configuration for a number of tokens; ``price`` in dollars per GPU hour."""
        chosen = estimate.configuration
        steps = tokens / (chosen.global_batch * chosen.sequence)
        seconds = steps * estimate.step_time
        hours = seconds * chosen.gpus / HOUR
        dollars = None if price is None else hours * price
        return cls(tokens=tokens, steps=steps, days=seconds / DAY, gpu_hours=hours, dollars=dollars)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerPlan:
    """Best configuration for one trainer, estimated with its own software.

    Attributes
    ----------
    trainer
        Name of the trainer.
    estimate
        Estimate of its best configuration; None if no configuration fits.
    fit
        Whether its peak fits.
    reason
        Why there is no configuration; empty if there is one.
    """

    trainer: str
    estimate: Estimate | None = None
    fit: Fit | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """Result of the planner: the best configuration and its comparison with the others.

    Attributes
    ----------
    trainer
        Trainer that the best is for; empty if it is for none.
    by_trainer
        Own plans of the trainers among which the best was chosen, in their order; the best is one of them.
    objective
        Objective that was minimized.
    memory_limit
        Bytes per GPU that may be allocated in comfort; the peak of a tight plan may be above.
    best
        Estimate of the best configuration; None if no configuration fits.
    given_up
        Fraction by which the best is slower than the fastest configuration that fits: it is the simplest of those that
        predictions cannot tell apart.
    simpler_because
        Why it is preferred to the fastest one, in a few words; empty if it is the fastest.
    fit
        Whether its peak fits at the upper end of its error bar, too; None if no configuration fits.
    unusual
        Choices of the best that hardly any published run makes, in words; they are made only if nothing else fits, or if
        the user allowed or fixed them.
    pipelined
        Best configuration with a pipeline, and why it won or lost; None if none fits.
    runners_up
        Other configurations, the best first.
    front
        Pareto front of step time and peak memory, sorted by step time.
    sensitivity
        Effects of changed inputs on the plan.
    closest_miss
        Nearest configuration if none fits.
    counts
        Numbers of configurations considered.
    seconds
        Planning time.
    complete
        Whether every valid configuration was estimated or ruled out by a bound; False if the budget ended first.
    searched
        Better order for a finalist, if the order search found one.
    interrupted
        Whether the user interrupted the planner before its budget ended.
    optimality_gap
        Upper bound on the distance of the plan from the best configuration, as a fraction; 0 if the search is complete. The
        values of ``left_out`` are not covered.
    left_out
        Valid values that are tried only if the user fixes them, in words.
    totals
        Duration and cost of the whole training with the best; None if no configuration fits.
    """

    objective: Objective
    memory_limit: float
    trainer: str = ""
    by_trainer: tuple[TrainerPlan, ...] = ()
    best: Estimate | None = None
    given_up: float = 0.0
    simpler_because: str = ""
    fit: Fit | None = None
    unusual: tuple[str, ...] = ()
    pipelined: Pipelined | None = None
    runners_up: tuple[RunnerUp, ...] = ()
    front: tuple[Estimate, ...] = ()
    sensitivity: tuple[Sensitivity, ...] = ()
    closest_miss: ClosestMiss | None = None
    counts: Counts
    seconds: float
    complete: bool
    searched: SearchedOrder | None = None
    interrupted: bool = False
    optimality_gap: float = 0.0
    left_out: tuple[str, ...] = ()
    totals: Totals | None = None
