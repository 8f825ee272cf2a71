"""What an estimate says: step time by what spends it, memory by what holds it, and what had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

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
