"""The estimate of a reviewed configuration: its settings in the planner's terms, and what the planner predicts."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

from msgspec.structs import asdict
from msgspec.structs import replace as changed

from pipeplan.extensions.planning import (
    Configuration,
    Estimate,
    Fit,
    costs_of,
    default_limit,
    estimate,
    fit_of,
    placed,
    schedule_of,
    stage_costs,
    widest_limit,
)
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.results import GpuMemory
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.extensions.review.conversion import Configured, configured
from pipeplan.extensions.review.facts import NotSet, ReviewFacts
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE


@dataclass(frozen=True, eq=False)
class Estimated(Configured):
    """Estimate of a configuration."""

    @cached_property
    def estimate(self) -> Estimate:
        """The prediction. Raises NotSet if the configuration cannot be estimated."""
        try:
            whole = estimate(self.model, self.cluster, self.configuration, with_error_bar=False)
            if self.recomputed < 1:
                plain = replace(self.configuration, recompute=())
                whole = between(estimate(self.model, self.cluster, plain, with_error_bar=False), whole, self.recomputed)
        except PipeplanError as error:
            raise NotSet(str(error)) from None
        return without_states(whole, self.host_states) if self.host_states else whole

    @property
    def gpu(self) -> str:
        """Name of the GPU."""
        return self.cluster.gpu.name

    @property
    def peak_gib(self) -> float:
        """Predicted peak memory of the fullest rank in GiB."""
        return self.estimate.peak_memory_gib

    @property
    def limit_gib(self) -> float:
        """Memory that a framework can use in comfort, in GiB."""
        return default_limit(self.cluster) / GIBIBYTE

    @property
    def fit(self) -> Fit:
        """Comparison of the predicted peak with the memory of a GPU."""
        return fit_of(self.estimate.peak_bytes, default_limit(self.cluster), widest_limit(self.cluster))

    @property
    def fit_of_many(self) -> Fit:
        """The same with so many replicas that their shares of the states are nothing, where the GPUs are unknown."""
        if self.shared is None:
            return self.fit
        shared = ("optimizer", "gradients", "weights")[: self.shared]
        peak = max(rank.total - sum(getattr(rank, part) for part in shared) for rank in self.estimate.memory)
        return fit_of(peak * GIBIBYTE, default_limit(self.cluster), widest_limit(self.cluster))

    @cached_property
    def stage_times(self) -> tuple[float, ...]:
        """Seconds of each stage for one microbatch, forward and backward."""
        try:
            stages = stage_costs(self.model, self.cluster, self.configuration)
        except PipeplanError as error:
            raise NotSet(str(error)) from None
        return tuple((stages.forward + stages.backward_input + stages.backward_weight).tolist())

    @cached_property
    def rank_times(self) -> tuple[float, ...]:
        """Seconds of work of each rank for one microbatch, forward and backward."""
        try:
            placement = placed(self.configuration)
        except PipeplanError as error:
            raise NotSet(str(error)) from None
        ranks = [0.0] * self.configuration.pipeline
        for copy in placement.table:
            for rank, time in zip(copy.tolist(), self.stage_times, strict=True):
                ranks[rank] += time
        return tuple(ranks)

    @property
    def heaviest(self) -> int:
        """Rank with the most work."""
        return max(range(len(self.rank_times)), key=self.rank_times.__getitem__)

    @property
    def imbalance(self) -> float:
        """Work of the heaviest rank over the mean of all ranks, less 1."""
        return max(self.rank_times) * len(self.rank_times) / sum(self.rank_times) - 1

    @property
    def best(self) -> BestSplit | None:
        """Best layout that the planner finds with the other settings; None if there is none."""
        return best_split(self.model, self.cluster, replace(self.configuration, layers=None))

    @property
    def gain(self) -> float:
        """Share of the step time that the best layout saves; 0 if this layout is as good, or there is none."""
        best = self.best
        return 0.0 if best is None else max(0.0, 1 - best.step_time / self.estimate.step_time)

    @property
    def stage_imbalance(self) -> float:
        """Time of the slowest stage over the mean of all stages, less 1."""
        return max(self.stage_times) * len(self.stage_times) / sum(self.stage_times) - 1

    @property
    def bubble(self) -> float:
        """Idle time of all ranks over their number and the step."""
        return self.estimate.time.bubble / self.estimate.step_time


def between(first: Estimate, second: Estimate, share: float) -> Estimate:
    """Return the estimate of a step of which a share is as in the second estimate, and the rest as in the first."""

    def mixed(one: float, other: float) -> float:
        return (1 - share) * one + share * other

    def parts(one: Any, other: Any) -> Any:
        return type(one)(**{name: mixed(value, getattr(other, name)) for name, value in asdict(one).items()})

    memory = tuple(map(parts, first.memory, second.memory))
    step_time = mixed(first.step_time, second.step_time)
    faster = first.step_time / step_time
    return changed(
        second,
        step_time=step_time,
        time=parts(first.time, second.time),
        tokens_per_second=first.tokens_per_second * faster,
        mfu=first.mfu * faster,
        **_peaks(memory),
    )


def without_states(made: Estimate, share: float) -> Estimate:
    """Return an estimate with a share of the optimizer's states on the host."""
    memory = tuple(changed(rank, optimizer=(1 - share) * rank.optimizer) for rank in made.memory)
    return changed(made, **_peaks(memory))


def _peaks(memory: tuple[GpuMemory, ...]) -> dict[str, Any]:
    peaks = tuple(rank.total for rank in memory)
    return {"memory": memory, "peak_memory_by_rank_gib": peaks, "peak_memory_gib": max(peaks)}


@dataclass(frozen=True, slots=True)
class BestSplit:
    """Best layout that the planner finds, and the step time with it in seconds."""

    layout: tuple[int, ...]
    step_time: float


_FEW = 2
"""Microbatches per rank on which layouts are compared; more hardly change which is best."""

_SECONDS = 0.1
"""Nominal seconds of a search for a layout; a clock of work makes it independent of the machine."""


@lru_cache(maxsize=64)
def best_split(model: ModelShape, cluster: Cluster, configuration: Configuration) -> BestSplit | None:
    """Return the best layout of a configuration, whatever its own; None if the planner finds none."""
    count = min(configuration.microbatches, _FEW * configuration.pipeline)
    few = replace(configuration, global_batch=count * configuration.data * configuration.microbatch_size)
    from pipeplan.extensions.planning import best_layout_of  # loads the search
    from pipeplan.extensions.search.layouts import WorkClock

    try:
        schedule = schedule_of(few, costs_of(stage_costs(model, cluster, few), few))
        best = best_layout_of(model, cluster, configuration, schedule, seconds=_SECONDS, clock=WorkClock())
        bare = model.mtp_layers or configuration.chunks > 1
        layout = tuple(best.layout) if bare else with_last_layer(tuple(best.layout))
        filled = replace(configuration, layers=layout)
        return BestSplit(layout, estimate(model, cluster, filled, with_error_bar=False).step_time)
    except PipeplanError:
        return None


def with_last_layer(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return a layout with a layer on the last stage: a rank with the loss alone is a fault of its own."""
    if counts[-1]:
        return counts
    fullest = max(range(len(counts) - 1), key=lambda stage: (counts[stage], stage))
    return tuple(count - (stage == fullest) + (stage == len(counts) - 1) for stage, count in enumerate(counts))


def estimated(c: ReviewFacts) -> Estimated:
    """Return the estimate of a configuration. Raises NotSet if it does not say enough, or cannot be."""
    made = _estimated_or_missing(c)
    if isinstance(made, str):
        raise NotSet(made)
    return made


@lru_cache(maxsize=128)
def _estimated_or_missing(c: ReviewFacts) -> Estimated | str:
    """Return the estimate of a configuration, or what it misses: most rules of estimates ask again."""
    try:
        made = configured(c)
    except NotSet as missing:
        return str(missing)
    return Estimated(**{field.name: getattr(made, field.name) for field in fields(made)})
