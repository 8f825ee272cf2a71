"""Search for the configuration to train with: its phases, the work that each may take, and the result."""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from pipeplan.errors import PipeplanError
from pipeplan.planner.answers import (
    Counts,
    Estimate,
    Objective,
    Pipelined,
    PlanResult,
    RunnerUp,
    SearchedOrder,
    Sensitivity,
    Totals,
)
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.error_bars import error_bar
from pipeplan.planner.fitting import comfortable, fit_of
from pipeplan.planner.selection.branching import SLACK, Branching, Space
from pipeplan.planner.selection.candidates import divisors, left_out, unusual
from pipeplan.planner.selection.choice import simpler_because, simplest
from pipeplan.planner.selection.comparing import (
    CHANGES,
    LIMITS,
    front,
    lost_because,
    neighbours,
    of_change,
    of_limit,
    runners_up,
)
from pipeplan.planner.selection.finalists import better_order
from pipeplan.planner.selection.nothing_fits import closest_miss, thriftiest
from pipeplan.planner.selection.recipes import Recipe, of_practice
from pipeplan.planner.selection.request import (
    PlanListener,
    PlanProgress,
    PlanRequest,
)
from pipeplan.planner.selection.trials import LayoutTask, Rounds, Trial, identity, tried
from pipeplan.sweeps import sweep

ROUND = 32
"""Configurations per round. All are estimated before the next are chosen, so the number of workers does not change the
result."""

STARTING = 5.0
"""Budget in seconds below which no worker process starts, because loading the planner would use it up."""

START_ROUND, START_ROUNDS = 8, 6
"""Configurations per round in the starting part of a space, and number of rounds, regardless of the budget: a
second or two."""

PRICED = 40
"""Families of frames that are bounded before each round: the likeliest are estimated while the others wait."""

FAMILY = ("tensor", "pipeline", "context", "expert", "schedule", "zero")
"""Fields that distinguish families of configurations."""

FINALISTS = 8
"""Number of configurations, each of another family, that get a layout search."""

PRICED_LATE = 300
"""Families of frames that are bounded after the budget has ended, so that the gap does not refer to the GPUs' peak."""

LAYOUT_SHARE, LAYOUT_SECONDS = 0.01, 0.3
"""Fraction of the budget for one layout search, and its maximum in nominal seconds: longer searches mostly prove
optimality."""

VARIED = 12
"""Number of configurations that are estimated again for the sensitivity."""

LEVELS = (0.9, 0.75, 0.6, 0.45, 0.3)
"""Fractions of the memory limit at which points of the front are searched."""

LEVEL_ROUNDS = 2
"""Maximum number of rounds of branch and bound at each of these levels."""

RIVAL_ROUNDS, MOST_RIVAL_ROUNDS = 4, 16
"""Number of rounds for the best configuration with a pipeline, if the best one has none, and vice versa; and its maximum if
nothing fits so far."""

OUTERMOST = 3.0
"""Maximum time as a multiple of the budget. The budget is an amount of work; a loaded machine takes longer for it, up to
this limit, so that the answer is the same."""

FAR = 1.25
"""Value of the best over the lower bound from which on the search goes on beyond its budget, up to the outermost limit."""

ROUNDS_A_SECOND = 1.0
"""Rounds of branch and bound per second of the budget. Counting work instead of time gives the same answer on a loaded
machine; on two idle cores, a round takes a quarter of a second or less."""

AFTERWARDS = 8.0
"""Minimum number of seconds for the closest miss if nothing fits, even if the budget has ended."""

ORDER_SHARE = 0.15
"""Fraction of the budget for the order search, in nominal seconds."""


class Planning:
    """Run of one planning request.

    It starts with a small sensible part of the space, continues with branch and bound over all configurations, and then
    estimates neighbors, points of the front, layouts of the finalists, changed inputs, and better orders.
    """

    def __init__(
        self,
        requests: Sequence[PlanRequest],
        value: Callable[[PlanRequest, float], float],
        seconds: float,
        progress: PlanListener | None,
        *,
        tokens: float,
        deadline: float | None = None,
        comfort: float | None = None,
    ) -> None:
        self._begin = time.monotonic()
        self._seconds = seconds
        self._requests = {request.gpus: request for request in requests}
        self._whole = requests[-1]
        self._value = value
        self._progress = progress
        self._tokens = tokens
        self._deadline = deadline
        self._comfort = self._whole.memory_limit if comfort is None else comfort
        self._phase = "choosing"
        self._spaces = [space for request in requests for space in Space.by_software(request)]
        self._branchings = [
            Branching(spaces, value, self.limit, comfort=comfortable(self._comfort))
            for spaces in self._by_software(self._spaces)
        ]
        self._known: dict[str, Estimate | None] = {}
        self._plain: dict[Configuration, Estimate] = {}
        self._laid: list[Estimate] = []
        self.fitting: list[Estimate] = []
        self._sorted: set[Configuration] = set()
        self._recipes: dict[tuple[int, ...], Recipe] = {}
        self._varied: list[Sensitivity] = []
        self._searched: SearchedOrder | None = None
        self.stopped = False
        self.refused = ""

    @property
    def limit(self) -> float:
        """Memory limit per GPU in bytes."""
        return self._whole.memory_limit

    @property
    def _any_schedule(self) -> bool:
        """True if the answer may be something that no trainer runs."""
        return "any-schedule" in self._whole.allowed and not {"trainer", "schedule"} & self._whole.fixed.keys()

    @property
    def _late(self) -> bool:
        """True from the outermost limit on."""
        return self.spent > OUTERMOST * self._seconds

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begin

    def value(self, estimate: Estimate) -> float:
        """Return the objective value of an estimate."""
        return self._value(self._requests[estimate.configuration.gpus], estimate.step_time)

    def _keep(self, configuration: Configuration, estimate: Estimate) -> None:
        self._plain[configuration] = estimate
        self._sort_in(estimate)

    def _sort_in(self, estimate: Estimate) -> None:
        # A layout that is written out is the same configuration as the default with these layers.
        if estimate.peak_bytes <= self.limit and estimate.configuration not in self._sorted:
            self._sorted.add(estimate.configuration)
            insort(self.fitting, estimate, key=lambda other: (self.value(other), str(other.configuration)))

    @property
    def _exhausted(self) -> bool:
        """True if every valid configuration was estimated or ruled out."""
        return all(branching.exhausted for branching in self._branchings)

    @property
    def estimated(self) -> bool:
        """True if anything was estimated."""
        return bool(self._plain)

    @property
    def best(self) -> Estimate | None:
        """Simplest of the estimates that predictions cannot tell from the fastest one; None if nothing fits so far."""
        return simplest(self.fitting, self.value, self.is_unusual, self.is_tight)

    def unusual(self, estimate: Estimate) -> tuple[str, ...]:
        """Return in words the choices of an estimate that hardly any published run makes, with the recipe that has them."""
        request, configuration = self._requests[estimate.configuration.gpus], estimate.configuration
        recipe = self._recipes.get(_degrees(configuration))
        return tuple(
            rule.sentence(request) + ("" if recipe is None or not recipe.has(rule) else f", as in {recipe.source}")
            for rule in unusual(request, configuration)
        )

    def is_unusual(self, estimate: Estimate) -> bool:
        """Return True if a configuration has choices that hardly any published run makes."""
        return bool(self.unusual(estimate))

    def is_tight(self, estimate: Estimate) -> bool:
        """Return True if the peak of an estimate that fits is within the error bar of the limit."""
        return fit_of(estimate.peak_bytes, self._comfort, self.limit) != "fits"

    def run(self, *, workers: int, dask: str | None, store: Path | None) -> None:
        """Run all phases but the order search; Ctrl-C ends them early."""
        model, cluster = self._whole.model, self._whole.cluster
        rounds = Rounds(self._rounds())
        finished = sweep(
            partial(tried, model=model, cluster=cluster, calibration=self._whole.calibration),
            rounds,
            answer=Estimate,
            asked=identity(model, cluster, self._whole.calibration),
            workers=workers if self._seconds >= STARTING else 1,
            dask=dask,
            store=store,
            seconds=OUTERMOST * self._seconds,
        )
        try:
            self._start()
            with closing(finished):
                for result in finished:
                    if result.failure is not None and result.failure.kind != "refused":
                        result.required()
                    elif result.failure is not None:
                        self.refused = result.failure.message
                    self._known[result.key] = result.answer
                    rounds.finished()
                    self._tell()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.stopped = True

    def _start(self) -> None:
        """Estimate recipes and the best of the sensible parts: an answer for short budgets, and a value to prune by.

        This takes the same work regardless of the budget and runs in this process, so the load of the machine does not
        change it.
        """
        for bound, space, configuration in sorted(self._of_practice(), key=lambda candidate: candidate[0]):
            if bound > SLACK * self._least:
                break
            self._estimate_here(space.request, configuration)
        for spaces in self._by_software([space.sensible_part() for space in self._spaces]):
            starting = Branching(spaces, self._value, self.limit, slack=1.0, best=self._least)
            starting.price(10**9)
            for _ in range(START_ROUNDS):
                for group in starting.round(START_ROUND):
                    self._estimate_here(group.space.request, group.configuration)
                    starting.learn(group, self._plain.get(group.configuration))
                if starting.exhausted:
                    break

    def _of_practice(self) -> Iterator[tuple[float, Space, Configuration]]:
        """Yield recipes that may fit, as published and with shorter ends, with lower bounds on their values."""
        spaces = {space.software: space for space in self._spaces if space.request.gpus == self._whole.gpus}
        for published, recipe in of_practice(self._whole):
            if recipe.is_for(self._whole) and (published.pipeline, published.chunks) == (
                recipe.pipeline,
                recipe.chunks,
            ):
                self._recipes.setdefault(_degrees(published), recipe)
            space = spaces[published.software]
            for configuration in space.layouts(published):
                least = space.bound(configuration)
                if least.bytes <= self.limit:
                    yield self._value(space.request, least.seconds), space, configuration

    @property
    def _least(self) -> float:
        """Least value of an estimate that fits."""
        return self.value(self.fitting[0]) if self.fitting else inf

    @staticmethod
    def _by_software(spaces: Sequence[Space]) -> list[list[Space]]:
        """Return the spaces by software; each is searched by itself, so that the answer is as good as in any of them."""
        names = dict.fromkeys(space.software for space in spaces)
        return [[space for space in spaces if space.software == name] for name in names]

    def _estimate_here(self, request: PlanRequest, configuration: Configuration) -> None:
        if configuration not in self._plain:
            try:
                self._keep(configuration, request.estimate(configuration))
            except PipeplanError as error:
                self.refused = str(error)
            self._tell()

    def fall_back(self) -> None:
        """Estimate the configuration with the least memory if the budget ended before anything was found that fits."""
        if self.best is not None or self._exhausted:
            return
        estimate = thriftiest(self._whole)
        if estimate is not None:
            self._keep(estimate.configuration, estimate)

    def search_orders(self, seconds: float, workers: int) -> None:
        """Search better orders for the finalists, if the user allows what no trainer runs."""
        best = self.best
        if best is None or self.stopped or not self._any_schedule or seconds <= 0 or self._late:
            return
        self._phase = "orders"
        self._tell()
        same = [estimate for estimate in self.fitting if estimate.configuration.gpus == best.configuration.gpus]
        request, left = self._requests[best.configuration.gpus], OUTERMOST * self._seconds - self.spent
        self._searched = better_order(request, same, seconds=seconds, at_most=left, workers=workers)

    def _tell(self) -> None:
        if self._progress is not None:
            share = min(self.spent / self._seconds, 1.0)
            self._progress(PlanProgress(phase=self._phase, share=share, estimated=len(self._known), best=self.best))

    def _rounds(self) -> Iterator[list[Trial]]:
        """Yield the trials round by round; the answers of a round are known when the next is drawn."""
        for branching in self._branchings:
            branching.best = self._least
            yield from self._choose(branching, max(1, round(ROUNDS_A_SECOND * self._seconds)))
        for branching in self._branchings:
            while self.best is None and not branching.exhausted:
                yield from self._choose(branching, 1, overtime=True)
            while self._least > FAR * branching.least and not (branching.exhausted or self._late):
                yield from self._choose(branching, 1)
        best = self.best
        if best is None or self._late:
            return
        self._phase = "comparing"
        spaces = [space for space in self._spaces if space.request.gpus == best.configuration.gpus]
        own = next(space for space in spaces if space.software == best.configuration.software)
        yield from self._estimates(list(neighbours(own, best.configuration, self.limit)))
        yield from self._of_other_kind(own, best)
        self._phase = "front"
        for level in (LIMITS[1], *LEVELS):
            limit = level * self.limit
            values = [self.value(estimate) for estimate in self._plain.values() if estimate.peak_bytes <= limit]
            branching = Branching(spaces, self._value, limit, slack=1.0, best=min(values, default=inf))
            yield from self._choose(branching, LEVEL_ROUNDS)
        self._phase = "layout"
        yield from self._lay_out()
        self._phase = "varying"
        yield from self._vary()

    def _of_other_kind(self, space: Space, best: Estimate) -> Iterator[list[Trial]]:
        """Yield trials for the best configuration with a pipeline if the best one has none, and vice versa."""
        has_none = best.configuration.pipeline == 1
        every = space.request.fixed.get("pipeline") or divisors(space.request.gpus)
        degrees = tuple(degree for degree in every if (degree > 1) == has_none)
        if not degrees:
            return
        of_kind = (self.value(other) for other in self.fitting if other.configuration.pipeline in degrees)
        least = min(of_kind, default=inf)
        branching = Branching([space.restricted(pipeline=degrees)], self._value, self.limit, slack=1.0, best=least)
        for _ in range(MOST_RIVAL_ROUNDS // RIVAL_ROUNDS):
            yield from self._choose(branching, RIVAL_ROUNDS)
            if branching.best < inf:
                return

    def _choose(self, branching: Branching, rounds: int, *, overtime: bool = False) -> Iterator[list[Trial]]:
        """Yield rounds of branch and bound until it is exhausted, their number is reached, or the time is up."""
        priced = PRICED if branching in self._branchings else 10**9
        for _ in range(rounds):
            if self._late and not overtime:
                return
            branching.price(priced)
            groups = branching.round(ROUND)
            if branching.exhausted:
                return
            yield from self._estimates([group.configuration for group in groups])
            for group in groups:
                branching.learn(group, self._plain.get(group.configuration))

    def _estimates(self, configurations: Sequence[Configuration]) -> Iterator[list[Trial]]:
        new = [configuration for configuration in dict.fromkeys(configurations) if configuration not in self._plain]
        trials = [self._trial(configuration) for configuration in new]
        yield [trial for trial in trials if trial.key not in self._known]
        for configuration, trial in zip(new, trials, strict=True):
            estimate = self._known.get(trial.key)
            if estimate is not None:
                self._keep(configuration, estimate)

    def _trial(self, configuration: Configuration, **more: Any) -> Trial:
        cluster = self._requests[configuration.gpus].cluster
        return Trial(configuration, cluster.nodes, cluster.per_node, **more)

    def _finalists(self, most: int | None) -> list[Configuration]:
        """Return the best configurations of each family of degrees or schedule: in any memory, and in comfort."""
        best: dict[tuple[Any, ...], Configuration] = {}
        for configuration, plain in sorted(self._plain.items(), key=lambda pair: (self.value(pair[1]), str(pair[0]))):
            if plain.peak_bytes <= self.limit:
                family = tuple(getattr(configuration, name) for name in FAMILY)
                best.setdefault((*family, self.is_tight(plain)), configuration)
        return list(islice(best.values(), most))

    def _lay_out(self) -> Iterator[list[Trial]]:
        fixed = self._whole.fixed
        finalists = [finalist for finalist in self._finalists(FINALISTS) if finalist.pipeline > 1]
        if not finalists or "layers" in fixed:
            return
        by_stage = self._any_schedule and "recompute" not in fixed
        layout = LayoutTask(self.limit, min(LAYOUT_SHARE * self._seconds, LAYOUT_SECONDS), by_stage)
        trials = [self._trial(finalist, layout=layout) for finalist in finalists]
        yield trials
        self._laid = [estimate for trial in trials if (estimate := self._known.get(trial.key)) is not None]
        for estimate in self._laid:
            self._sort_in(estimate)

    def _vary(self) -> Iterator[list[Trial]]:
        best = self.best
        assert best is not None
        others = [other for other in self._finalists(VARIED) if other != best.configuration]
        others += [other.configuration for other in self._laid if other is not best]
        for change in CHANGES:
            if self._late:
                return
            trials = [self._trial(other, change=change) for other in (best.configuration, *others)]
            yield trials
            estimates = [self._known.get(trial.key) for trial in trials]
            if estimates[0] is not None:
                self._varied.append(
                    of_change(change, estimates[0], [other for other in estimates[1:] if other is not None])
                )

    def result(self, objective: Objective) -> PlanResult:
        """Return the best configuration with its comparisons, or the closest miss if nothing fits."""
        answer = self._closest_miss() if self.best is None else self._comparisons(self.best)
        # Counted last, because either of them bounds further configurations.
        return PlanResult(
            objective=objective,
            memory_limit=self._comfort,
            counts=self._counts(),
            seconds=self.spent,
            complete=self._exhausted or answer.get("optimality_gap") == 0,
            left_out=left_out(self._whole),
            interrupted=self.stopped,
            **answer,
        )

    def _closest_miss(self) -> dict[str, Any]:
        miss = closest_miss(self._whole, max(self._seconds - self.spent, AFTERWARDS))
        # The search also tried what could fit within the error of predictions.
        return {"closest_miss": miss and replace(miss, over_by=miss.estimate.peak_bytes - self._comfort)}

    def _comparisons(self, best: Estimate) -> dict[str, Any]:
        cluster = self._requests[best.configuration.gpus].cluster
        interval = error_bar(self._whole.model, cluster, best.configuration, best.step_time)
        estimates = [*self._plain.values(), *self._laid]
        limits = [of_limit(factor, factor * self.limit, best, estimates) for factor in LIMITS]
        fastest = self.fitting[0]
        given_up = self._given_up(best, fastest)
        reason = "" if fastest is best else simpler_because(best, fastest, self.is_unusual, self.is_tight)
        faster = RunnerUp(estimate=fastest, lost_because=self._lost_because(fastest, best))
        return {
            "best": best.replaced(error_bar=interval),
            "given_up": given_up,
            "simpler_because": reason,
            "fit": fit_of(best.peak_bytes, self._comfort, self.limit),
            "unusual": self.unusual(best),
            "pipelined": self._pipelined(best),
            "runners_up": (
                *((faster,) if reason else ()),
                *runners_up(estimates, best, self.value, self.limit, self._deadline),
            ),
            "front": front(estimates, self.value, self.limit),
            "sensitivity": (*self._varied, *limits),
            "optimality_gap": self._gap(best),
            "totals": Totals.of(best, self._tokens, cluster.gpu.price),
            "searched": self._searched,
        }

    def _given_up(self, best: Estimate, faster: Estimate) -> float:
        """Return the fraction by which the best is slower than a faster one; of another number of GPUs, how much worse."""
        same = best.configuration.gpus == faster.configuration.gpus
        return (best.step_time / faster.step_time if same else self.value(best) / self.value(faster)) - 1

    def _lost_because(self, other: Estimate, best: Estimate) -> str:
        """Return why an estimate that fits lost against the best: it is slower, or faster and less simple."""
        if self.value(other) >= self.value(best):
            return lost_because(other, best, self.limit, self._deadline)
        reason = simpler_because(best, other, self.is_unusual, self.is_tight)
        return f"{self._given_up(best, other):.1%} faster, but {reason}"

    def _pipelined(self, best: Estimate) -> Pipelined | None:
        """Return the best configuration with a pipeline, and why it won or lost; None if none fits."""
        has_none = best.configuration.pipeline == 1
        other = next((each for each in self.fitting if (each.configuration.pipeline > 1) == has_none), None)
        pipelined, rival = (other, best) if has_none else (best, other)
        if pipelined is None:
            return None
        if other is not None:
            because = self._lost_because(other, best)
        else:
            fixed = "pipeline" in self._whole.fixed
            because = "the pipeline is fixed" if fixed else "no estimated configuration without a pipeline fits"
        return Pipelined(estimate=pipelined, rival=rival, lost_because=because)

    def _gap(self, best: Estimate) -> float:
        """Return the maximum distance of the best from any configuration, as a fraction."""
        for branching in self._branchings:
            if not branching.exhausted:
                branching.price(PRICED_LATE)
        return max(0.0, self.value(best) / min(branching.least for branching in self._branchings) - 1)

    def _counts(self) -> Counts:
        legal = sum(branching.legal for branching in self._branchings)
        over = sum(branching.over_memory for branching in self._branchings)
        estimated = sum(branching.estimated for branching in self._branchings)
        return Counts(
            legal=legal,
            over_memory=over,
            too_slow=max(0, legal - over - estimated),
            estimated=len(self._known)
            + sum(self._trial(configuration).key not in self._known for configuration in self._plain),
        )


def _degrees(configuration: Configuration) -> tuple[int, ...]:
    """Return what identifies a recipe: degrees, chunks and sharding."""
    names = ("tensor", "pipeline", "context", "expert", "expert_tensor", "chunks", "zero")
    return tuple(getattr(configuration, name) for name in names)
