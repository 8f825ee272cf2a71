"""Estimate of one configuration: step time and memory, and what they are made of."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import astuple

from pipeplan.extensions.planning.configuration import Configuration, ConfigurationRecord
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.records import Record

CostsFrom = Literal["measured", "calibrated", "analytic"]

Fit = Literal["fits", "tight", "does not fit"]
"""``fits``: even at the upper end of the error bar of the peak; ``tight``: within the bar; ``does not fit``: beyond it."""


class GpuMemory(Record, frozen=True, kw_only=True):
    """Parts of the peak memory of a pipeline rank's GPU, in GiB, which add up to it.

    Attributes
    ----------
    activations
        Activations kept for the backward, at the schedule's peak.
    transient
        Additional peak within one op: copies of the logits, gradients of a layer, what is computed again.
    gathered
        Sharded weights that are gathered for products: both ends of the model, a layer and the next one.
    buffers
        Workspaces, messages, and what the allocator reserves if the trainer reports it.
    """

    weights: Annotated[float, Meta(title="weights")]
    gradients: Annotated[float, Meta(title="gradients")]
    optimizer: Annotated[float, Meta(title="optimizer state")]
    activations: Annotated[float, Meta(title="activations")]
    transient: Annotated[float, Meta(title="transient")]
    gathered: Annotated[float, Meta(title="gathered weights")] = 0.0
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
    compute, recompute
        Kernels of F, I and W, and kernels that are run a second time.
    tensor, context, expert, data
        Exposed communication of tensor, context and expert groups inside layers; exposed reduction of gradients and
        gathering of weights.
    bubble, overhead
        Idle time of all ranks over their number, including transfers between stages; overhead between ops.
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
    """Range of measured over predicted step time of published runs of the same kind.

    Attributes
    ----------
    low, high
        Factors on the prediction: most of these runs were measured between them.
    step_time_s
        Step times at these factors, in seconds.
    basis
        Which runs these are, and why the range is widened if it is.
    runs
        Id of one of these runs from each source.
    coverage
        Fraction of published runs that lie within such a range made of other sources' runs; 0: unknown.
    """

    low: float
    high: float
    step_time_s: tuple[float, float]
    basis: str
    runs: tuple[str, ...]
    coverage: float = 0.0


class Estimate(Record, frozen=True, kw_only=True):
    """Predicted step time and memory of one configuration; ``docs/how-to/planning.md`` explains them.

    Attributes
    ----------
    peak_memory_gib, peak_memory_by_rank_gib
        Peak memory of the fullest pipeline rank, and of every rank.
    time, memory
        Step time by what it is spent on, and peak memory of every rank by what holds it.
    flops
        FLOPs of the model in one step on all GPUs: causal attention counted half, recomputation not counted.
    mfu
        Model FLOPs utilization: ``flops`` divided by GPUs, step time and dense 16-bit peak; for products in 8 or 4 bits, by
        the peak of that format.
    costs_from, assumed
        Source of the times by kind of work, and assumptions, one sentence each.
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

    @property
    def gpu_seconds(self) -> float:
        """GPU seconds of a step, in which configurations on different numbers of GPUs are compared."""
        return self.step_time * self.configuration.gpus

    @cached_property
    def configuration(self) -> Configuration:
        """Configuration of the prediction, with its layout filled in."""
        return self.settings.configuration()
