"""Estimates of a planning run: those that fit in order, the best of them, and its comparison with the others."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from itertools import islice
from math import inf
from typing import Any

from pipeplan.extensions.planning.choice.candidates import unusual
from pipeplan.extensions.planning.choice.choice import simpler_because, simplest
from pipeplan.extensions.planning.choice.comparing import LIMITS, front, lost_because, of_limit, runners_up
from pipeplan.extensions.planning.choice.describing import described
from pipeplan.extensions.planning.choice.recipes import Recipe
from pipeplan.extensions.planning.choice.request import PlanRequest, Value
from pipeplan.extensions.planning.choice.sentences import with_step
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.fitting import fit_of
from pipeplan.extensions.planning.plan_records import PipelinedRecord, PlannedConfiguration, RunnerUpRecord, Sensitivity
from pipeplan.extensions.planning.results import Estimate, Fit

FAMILY = ("tensor", "pipeline", "context", "expert", "schedule", "zero")
"""Fields that distinguish families of configurations."""

PUBLISHED = ("tensor", "pipeline", "context", "expert", "expert_tensor", "chunks", "zero")
"""Fields that identify a recipe."""


class Pool:
    """Estimates so far.

    Parameters
    ----------
    requests
        Requests, one for each number of GPUs; the last one is for the whole cluster.
    value_of
        Objective to minimize.
    comfort
        Bytes per GPU that may be allocated in comfort; peaks between these and the requests' limit are tight.
    deadline
        Maximum seconds per step; None: any.

    Attributes
    ----------
    plain
        Estimates of configurations as they were tried.
    laid
        Estimates of finalists with the best layout for each.
    fitting
        Estimates that fit, the best value first; ties in the order of their settings.
    """

    def __init__(
        self, requests: Sequence[PlanRequest], value_of: Value, comfort: float, deadline: float | None = None
    ) -> None:
        self.requests = {request.gpus: request for request in requests}
        self.whole = requests[-1]
        self.comfort = comfort
        self.plain: dict[Configuration, Estimate] = {}
        self.laid: list[Estimate] = []
        self.fitting: list[Estimate] = []
        self._value_of, self._deadline = value_of, deadline
        self._sorted: set[Configuration] = set()
        self._best: Estimate | None = None
        self._recipes: dict[tuple[int, ...], Recipe] = {}

    @property
    def limit(self) -> float:
        """Memory limit per GPU in bytes."""
        return self.whole.memory_limit

    @property
    def best(self) -> Estimate | None:
        """Simplest of the estimates that predictions cannot tell from the fastest one; None if nothing fits so far."""
        # Progress asks after every estimate for the best of every trainer.
        if self._best is None:
            self._best = simplest(self.fitting, self.value, self.is_unusual, self.is_tight)
        return self._best

    @property
    def least(self) -> float:
        """Least value of an estimate that fits."""
        return self.value(self.fitting[0]) if self.fitting else inf

    def value(self, estimate: Estimate) -> float:
        """Return the objective value of an estimate."""
        return self._value_of(self.requests[estimate.configuration.gpus], estimate.step_time)

    def keep(self, configuration: Configuration, estimate: Estimate) -> None:
        """Add the estimate of a configuration."""
        self.plain[configuration] = estimate
        self._sort_in(estimate)

    def keep_laid(self, estimates: Sequence[Estimate]) -> None:
        """Add the estimates of finalists with their best layouts."""
        self.laid = list(estimates)
        for estimate in estimates:
            self._sort_in(estimate)

    def _sort_in(self, estimate: Estimate) -> None:
        # A layout that is written out is the same configuration as the default with these layers.
        if estimate.peak_bytes <= self.limit and estimate.configuration not in self._sorted:
            self._sorted.add(estimate.configuration)
            self._best = None
            insort(self.fitting, estimate, key=lambda other: (self.value(other), str(other.configuration)))

    def name_recipe(self, configuration: Configuration, recipe: Recipe) -> None:
        """Record that a recipe published the degrees of a configuration for the model."""
        scaled = (configuration.pipeline, configuration.chunks) != (recipe.pipeline, recipe.chunks)
        if recipe.is_for(self.whole) and not scaled:
            self._recipes.setdefault(_fields(configuration, PUBLISHED), recipe)

    def unusual(self, estimate: Estimate) -> tuple[str, ...]:
        """Return in words the choices of an estimate that hardly any published run makes, with the recipe that has them."""
        request, configuration = self.requests[estimate.configuration.gpus], estimate.configuration
        recipe = self._recipes.get(_fields(configuration, PUBLISHED))
        return tuple(
            rule.sentence(request) + ("" if recipe is None or not recipe.has(rule) else f", as in {recipe.source}")
            for rule in unusual(request, configuration)
        )

    def is_unusual(self, estimate: Estimate) -> bool:
        """Return True if a configuration has choices that hardly any published run makes."""
        return bool(self.unusual(estimate))

    def fit(self, estimate: Estimate) -> Fit:
        """Return the state of an estimate's memory."""
        return fit_of(estimate.peak_bytes, self.comfort, self.limit)

    def is_tight(self, estimate: Estimate) -> bool:
        """Return True if the peak of an estimate that fits is within the error bar of the limit."""
        return self.fit(estimate) != "fits"

    def finalists(self, most: int | None) -> list[Configuration]:
        """Return the best configurations of each family of degrees or schedule: in any memory, and in comfort."""
        best: dict[tuple[Any, ...], Configuration] = {}
        for configuration, plain in sorted(self.plain.items(), key=lambda pair: (self.value(pair[1]), str(pair[0]))):
            if plain.peak_bytes <= self.limit:
                best.setdefault((*_fields(configuration, FAMILY), self.is_tight(plain)), configuration)
        return list(islice(best.values(), most))

    def comparisons(self, best: Estimate, varied: Sequence[Sensitivity]) -> dict[str, Any]:
        """Return the fields of a plan's result that compare the best with other estimates."""
        estimates = [*self.plain.values(), *self.laid]
        limits = [of_limit(factor, factor * self.limit, best, estimates) for factor in LIMITS]
        fastest = self.fitting[0]
        simpler = fastest is not best
        others = [*([fastest] if simpler else []), *runners_up(estimates, best, self.value, self.limit)]
        return {
            "given_up": self._given_up(best, fastest),
            "simpler_because": self._simpler_because(best, fastest) if simpler else "",
            "fit": self.fit(best),
            "unusual": self.unusual(best),
            "pipelined": self._pipelined(best),
            "runners_up": tuple(
                RunnerUpRecord(**self.described(other), lost_because=self._lost_because(other, best))
                for other in others
            ),
            "front": tuple(
                PlannedConfiguration(**self.described(entry)) for entry in front(estimates, self.value, self.limit)
            ),
            "sensitivity": (*varied, *limits),
        }

    def described(self, estimate: Estimate) -> dict[str, Any]:
        """Return the fields of an estimate's planned configuration."""
        return described(self.whole.model, self.whole.cluster, estimate)

    def _given_up(self, best: Estimate, faster: Estimate) -> float:
        """Return the fraction by which the best is slower than a faster one; of another number of GPUs, how much worse."""
        same = best.configuration.gpus == faster.configuration.gpus
        return (best.step_time / faster.step_time if same else self.value(best) / self.value(faster)) - 1

    def _lost_because(self, other: Estimate, best: Estimate) -> str:
        """Return why another estimate lost: it does not fit, is slower, or is faster and less simple."""
        reason = self._simpler_because(best, other)
        if other.peak_bytes > self.limit or self.value(other) >= self.value(best):
            return lost_because(other, best, self.limit, self._deadline, complication=reason)
        better = "faster" if best.configuration.gpus == other.configuration.gpus else "better"
        return f"{self._given_up(best, other):.1%} {better}, but {reason}"

    def _simpler_because(self, best: Estimate, other: Estimate) -> str:
        """Return why the best is simpler than another estimate; empty if it is not."""
        if self.is_unusual(best) or not self.is_unusual(other):
            return simpler_because(best, other, self.is_unusual, self.is_tight)
        request = self.requests[other.configuration.gpus]
        return f"unusual: {', '.join(rule.sentence(request) for rule in unusual(request, other.configuration))}"

    def _pipelined(self, best: Estimate) -> PipelinedRecord | None:
        """Return the best configuration with a pipeline, and why it won or lost; None if none fits."""
        won = best.configuration.pipeline > 1
        other = next((fitting for fitting in self.fitting if (fitting.configuration.pipeline > 1) != won), None)
        if other is None:
            fixed = "pipeline" in self.whole.fixed
            because = "the pipeline is fixed" if fixed else "no estimated configuration without a pipeline fits"
        else:
            because = self._lost_because(other, best)
            because = f"the best without, {with_step(other)}; {because}" if won else because
        pipelined = best if won else other
        if pipelined is None:
            return None
        ahead = 0.0 if other is None else other.gpu_seconds / best.gpu_seconds - 1
        return PipelinedRecord(**self.described(pipelined), won=won, because=because, ahead=ahead)


def _fields(configuration: Configuration, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(configuration, name) for name in names)
