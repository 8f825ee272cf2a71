"""Plan: the best configuration and its comparison with the others, as the planner makes it and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec

from pipeplan.extensions.planning.hardware import Cluster, Link
from pipeplan.extensions.planning.results import Estimate, Fit
from pipeplan.extensions.planning.workload import ModelShape, parameter_counts
from pipeplan.foundation.records import Evidence, Record
from pipeplan.model import Schedule

Objective = Literal["step-time", "cost", "gpus"]


class FlagsRecord(Record, frozen=True, kw_only=True):
    """Flags of one trainer, the files that they name, and warnings on what they cannot express.

    Attributes
    ----------
    release
        Release of the trainer; empty if flags do not depend on it.
    configuration, software
        Configuration that they train, in words, and the trainer's software in its prediction.
    step_time_s, peak_memory_gib, fit
        Prediction for this configuration with this trainer; null if the trainer does not run its schedule.
    """

    text: str
    files: dict[str, str]
    warnings: tuple[str, ...]
    release: str
    configuration: str
    software: str
    step_time_s: float | None
    peak_memory_gib: float | None
    fit: Fit | None


class PlannedConfiguration(Estimate, frozen=True, kw_only=True):
    """A configuration in a plan: its predictions, its description, and its representation in files.

    ``document`` is what :func:`pipeplan.estimate` takes.
    """

    words: str
    layout: str
    recompute: str
    document: dict[str, Any]


class BestConfiguration(PlannedConfiguration, frozen=True, kw_only=True):
    """Best configuration, and flags by trainer: each trainer's are those of its own plan, with the prediction for it."""

    flags: dict[str, FlagsRecord]


class TrainerPlanRecord(Record, frozen=True, kw_only=True):
    """Own plan of a trainer among which the best was chosen; ``reason`` says why there is none."""

    trainer: str
    configuration: str
    software: str
    step_time_s: float | None
    peak_memory_gib: float | None
    fit: Fit | None
    reason: str

    estimate = Evidence[Estimate | None]()
    """Estimate of its best configuration, with its own software; None if no configuration fits."""


class RunnerUpRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """Another configuration, and why it is not the best."""

    lost_because: str


class PipelinedRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """Best configuration with a pipeline, and why it won against the best one without, or lost.

    ``ahead`` is the fraction by which the best configuration of the other kind takes more GPU time; 0 if none fits.
    """

    won: bool
    because: str
    ahead: float


class MissRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """Closest configuration if none fits: how far it is over the memory limit, and a remedy."""

    over_by_gib: float
    change: str


class SearchedRecord(PlannedConfiguration, frozen=True, kw_only=True):
    """A finalist with a better order of ops than the published ones."""

    # No trainer flag can express the order. The gap is the makespan over a bound for any order of these stages, minus 1.
    instead_of_s: float
    found_by: str
    optimality_gap: float

    schedule = Evidence[Schedule]()
    """The order of a whole step; it can be exported for PyTorch's runtime and run by pipeplan."""


class Assumption(Record, frozen=True, kw_only=True):
    """Assumption that a prediction rests on, and the prediction of the same configuration with its opposite.

    Attributes
    ----------
    assumed, instead
        The assumption and its opposite in words.
    setting
        What says the opposite: a setting of ``--fix`` and of a configuration's file, or an option; empty if nothing does.
    step_time_s, peak_memory_gib
        Prediction with the opposite.
    slower, more_memory_gib
        Fraction by which the step is longer then, and GiB by which the peak is higher; negative if it is less.
    """

    assumed: str
    instead: str
    setting: str
    step_time_s: float
    peak_memory_gib: float
    slower: float
    more_memory_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Effect of one changed input on the chosen plan.

    ``factor`` is the factor on the input (1 if its name contains the value), ``step_time`` the chosen configuration's step
    in seconds then, ``instead`` the configuration that is better then, in a few words, if the choice ``changes``, and
    ``gain`` the fraction by which its step is shorter (negative: longer, because the chosen one does not fit then).
    """

    input: str
    factor: float
    step_time: float
    changes: bool
    instead: str = ""
    gain: float = 0.0

    @property
    def what(self) -> str:
        """Input and its change in words, such as ``bandwidth between nodes -50%``."""
        return self.input if self.factor == 1 else f"{self.input} {self.factor - 1:+.0%}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of valid configurations, of those that bounds on memory or time ruled out, and of those simulated."""

    legal: int
    over_memory: int
    too_slow: int
    estimated: int


DAY, HOUR = 86_400, 3_600
"""Seconds of a day and of an hour."""


class Totals(Record, frozen=True, kw_only=True):
    """Duration and price of a whole training run at the predicted step time, without interruptions; no price: no dollars."""

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


class GpuRecord(Record, frozen=True, kw_only=True):
    """A GPU as its data sheet has it; FLOP/s by format, bytes, bytes/s."""

    name: str
    peak: dict[str, float]
    memory_bytes: float
    memory_bandwidth: float
    host_bandwidth: float
    price: float | None
    source: str
    generation: str
    multiprocessors: int
    sustained: float


class ClusterRecord(Record, frozen=True, kw_only=True):
    """GPUs, nodes, and the links inside of a node and between them; ``joined`` GPUs have the fast links."""

    per_node: int
    nodes: int
    gpus: int
    joined: int
    inside: Link
    between: Link
    gpu: GpuRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedModel(ModelShape):
    """Model of a plan with the numbers of its parameters: all, and those that a token uses, both without MTP layers."""

    parameters: int
    active_parameters: int

    @classmethod
    def of(cls, shape: ModelShape) -> PlannedModel:
        """Return a shape with its numbers of parameters."""
        counts = parameter_counts(shape)
        sizes = {field.name: getattr(shape, field.name) for field in fields(shape)}
        return cls(**sizes, parameters=counts.total, active_parameters=counts.active)


class PlanResult(Record, frozen=True, kw_only=True):
    """Result of the planner: the best configuration and its comparison with the others.

    Attributes
    ----------
    headline
        The answer in a sentence: what to train with, its step time and memory, how sure that is, and what it gains; or why
        nothing fits.
    heading
        Model, cluster and batch in words.
    trainer, by_trainer
        Trainer that the best is for (empty if nothing fits), and the own plans of all trainers in question, in their order.
    miss, closest_miss
        Why nothing fits and the nearest request that would, and the nearest configuration; empty and None if something fits.
    model_record, cluster_record
        Model with its numbers of parameters, and cluster.
    memory_limit_gib
        GiB per GPU that may be allocated in comfort; the peak of a tight plan may be above.
    best
        Estimate of the best configuration; None if no configuration fits.
    given_up, simpler_because
        Fraction by which the best is slower than the fastest configuration that fits, and in what it is simpler; empty if
        it is the fastest.
    fit
        Whether its peak fits at the upper end of its error bar, too; None if no configuration fits.
    unusual
        Choices of the best that hardly any published run makes, in words; they are made only if nothing else fits, or if
        the user allowed or fixed them.
    pipelined
        Best configuration with a pipeline, and why it won or lost; None if none fits.
    runners_up, front
        Other configurations, the best first; Pareto front of step time and peak memory, sorted by step time.
    assumptions, sensitivity
        Assumptions whose opposite changes the best's step time or peak memory by 3% or more, the largest effect first;
        effects of changed inputs on the plan.
    seconds, complete
        Planning time, and whether every valid configuration was estimated or ruled out before the budget ended.
    searched
        Better order for a finalist, if the order search found one.
    optimality_gap, left_out
        Upper bound on the distance of the plan from the best configuration, as a fraction; 0 if the search is complete. It
        does not cover the valid values that are tried only if the user fixes them: ``left_out``, in words.
    totals
        Duration and cost of the whole training with the best; None if no configuration fits.
    remarks
        Sentences on the choice.
    """

    headline: str
    heading: str
    trainer: str
    by_trainer: tuple[TrainerPlanRecord, ...]
    miss: str
    model_record: PlannedModel = msgspec.field(name="model")
    cluster_record: ClusterRecord = msgspec.field(name="cluster")
    objective: str
    memory_limit_gib: float
    best: BestConfiguration | None
    given_up: float
    simpler_because: str
    fit: Fit | None
    unusual: tuple[str, ...]
    pipelined: PipelinedRecord | None
    runners_up: tuple[RunnerUpRecord, ...]
    front: tuple[PlannedConfiguration, ...]
    assumptions: tuple[Assumption, ...]
    sensitivity: tuple[Sensitivity, ...]
    closest_miss: MissRecord | None
    searched: SearchedRecord | None
    counts: Counts
    seconds: float
    complete: bool
    optimality_gap: float | None
    left_out: tuple[str, ...]
    totals: Totals | None
    remarks: tuple[str, ...]

    model = Evidence[ModelShape]()
    """Model of the plan."""

    cluster = Evidence[Cluster]()
    """Cluster of the plan."""

    interrupted = Evidence[bool]()
    """True if the user interrupted the planner before its budget ended."""
