"""Search for the configuration to train with: its phases, the work that each may take, and the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from pipeplan.extensions.planning.choice.branching import SLACK, Branching, Space
from pipeplan.extensions.planning.choice.candidates import divisors, left_out
from pipeplan.extensions.planning.choice.comparing import (
    CHANGES,
    LIMITS,
    neighbours,
    of_change,
)
from pipeplan.extensions.planning.choice.finalists import better_order
from pipeplan.extensions.planning.choice.nothing_fits import closest_miss, thriftiest
from pipeplan.extensions.planning.choice.pool import Pool
from pipeplan.extensions.planning.choice.recipes import of_practice
from pipeplan.extensions.planning.choice.request import (
    PlanListener,
    PlanProgress,
    PlanRequest,
)
from pipeplan.extensions.planning.choice.trials import LayoutTask, Rounds, Trial, identity, tried
from pipeplan.extensions.planning.choice.work import BOUNDED, Work
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.error_bars import error_bar
from pipeplan.extensions.planning.fitting import comfortable
from pipeplan.extensions.planning.plan_records import (
    BestConfiguration,
    Counts,
    SearchedRecord,
    Sensitivity,
    Totals,
)
from pipeplan.extensions.planning.results import Estimate, Fit
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.records import replaced
from pipeplan.foundation.sweeps import sweep

ROUND = 32
"""Configurations per round. All are estimated before the next are chosen, so the number of workers does not change the
result."""

STARTING = 5.0
"""Budget in seconds below which no worker process starts, because loading the planner would use it up."""

START_ROUND, START_ROUNDS = 8, 6
"""Configurations per round in the starting part of a space, and number of rounds, regardless of the budget: a
second or two."""

PRICED = 40
"""Families of frames that are bounded, and then opened, between two looks at the budget."""

FINALISTS = 8
"""Number of configurations, each of another family, that get a layout search."""

BOUNDING = 5.0
"""Nominal seconds of bounding the rest after the budget has ended, so that the gap does not refer to the GPUs' peak."""

LAYOUT_SHARE, LAYOUT_SECONDS = 0.01, 0.15
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
"""Maximum work as a multiple of the budget: for a best that is far from its bound, and for comparisons with the best."""

FAR = 1.1
"""Value of the best over the lower bound from which on the search goes on beyond its budget, up to the outermost limit."""

AFTERWARDS = 8.0
"""Minimum number of nominal seconds until something fits, and for the closest miss, even if the budget has ended."""

ORDER_SHARE = 0.15
"""Fraction of the budget for the order search, in nominal seconds."""


class Planning:
    """Run of one planning request.

    It starts with recipes, continues with branch and bound over all configurations (over a small sensible part of them if
    the budget ends before), and then estimates neighbors, points of the front, layouts of the finalists, changed inputs, and
    better orders. A plan has one for each trainer (:mod:`~pipeplan.extensions.planning.choice.trainers`). The budget is
    counted in work: neither time nor the number of workers decides what is estimated.

    Parameters
    ----------
    requests, value
        Requests, one for each number of GPUs with the whole cluster last, and the objective.
    seconds
        Budget in nominal seconds.
    progress
        Called after each estimate.
    tokens, deadline, comfort
        Tokens of the training, longest step in seconds, and bytes per GPU that may be allocated in comfort.
    known
        Estimates of other runs by key, which are reused.
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
        known: dict[str, Estimate | None] | None = None,
    ) -> None:
        self._begin = time.monotonic()
        self._seconds = seconds
        self._work = Work(OUTERMOST * seconds)
        self._whole = requests[-1]
        self._value = value
        self._progress = progress
        self._tokens = tokens
        self._phase = "choosing"
        comfort = self._whole.memory_limit if comfort is None else comfort
        self._pool = Pool(requests, value, comfort, deadline)
        self._spaces = [space for request in requests for space in Space.by_software(request)]
        self._branchings = [
            Branching(spaces, value, self._pool.limit, comfort=comfortable(comfort))
            for spaces in self._by_software(self._spaces)
        ]
        self._known: dict[str, Estimate | None] = {} if known is None else known
        self._tried: set[str] = set()
        self._varied: list[Sensitivity] = []
        self.searched: SearchedRecord | None = None
        self.stopped = False
        self.refused = ""

    @property
    def _any_schedule(self) -> bool:
        """True if the answer may be something that no trainer runs."""
        return "any-schedule" in self._whole.allowed and not {"trainer", "schedule"} & self._whole.fixed.keys()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begin

    @property
    def exhausted(self) -> bool:
        """True if every valid configuration was estimated or ruled out."""
        return all(branching.exhausted for branching in self._branchings)

    @property
    def estimated(self) -> bool:
        """True if any estimate succeeded."""
        return bool(self._pool.plain)

    @property
    def best(self) -> Estimate | None:
        """Best of the estimates so far; None if nothing fits."""
        return self._pool.best

    def run(self, *, workers: int, store: Path | None) -> None:
        """Run all phases that choose; Ctrl-C ends them early."""
        self._sweep(self._chosen(), workers=workers, store=store)

    def vary(self, *, workers: int, store: Path | None) -> None:
        """Estimate the effects of changed inputs on the best."""
        if self.best is not None and not self.stopped:
            self._phase = "varying"
            self._sweep(self._vary(), workers=workers, store=store)

    def _sweep(self, trials: Iterator[list[Trial]], *, workers: int, store: Path | None) -> None:
        model, cluster = self._whole.model, self._whole.cluster
        rounds = Rounds(trials)
        try:
            finished = sweep(
                partial(tried, model=model, cluster=cluster, calibration=self._whole.calibration),
                rounds,
                answer=Estimate,
                asked=identity(model, cluster, self._whole.calibration),
                workers=workers if self._seconds >= STARTING else 1,
                store=store,
            )
            with closing(finished):
                for result in finished:
                    if result.failure is not None and result.failure.kind != "refused":
                        result.required()
                    elif result.failure is not None:
                        # Any of the messages, but not that of the worker which finished last.
                        self.refused = min(filter(None, (self.refused, result.failure.message)))
                    self._known[result.key] = result.answer
                    self._tried.add(result.key)
                    rounds.finished()
                    self._tell()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.stopped = True

    def _recipes(self) -> Iterator[list[Trial]]:
        """Yield trials of recipes: a value to prune by."""
        ordered = sorted(self._of_practice(), key=lambda candidate: candidate[0])
        for start in range(0, len(ordered), START_ROUND):
            some = ordered[start : start + START_ROUND]
            yield from self._estimates([entry for bound, entry in some if bound <= SLACK * self._pool.least])

    def _sensible(self) -> Iterator[list[Trial]]:
        """Yield trials of the best of the sensible parts, with the same work regardless of the budget."""
        for spaces in self._by_software([space.sensible_part() for space in self._spaces]):
            starting = Branching(spaces, self._value, self._pool.limit, slack=1.0, best=self._pool.least)
            yield from self._choose(starting, START_ROUNDS, START_ROUND)

    def _of_practice(self) -> Iterator[tuple[float, Configuration]]:
        """Yield recipes that may fit, as published and with shorter ends, with lower bounds on their values."""
        spaces = {space.software: space for space in self._spaces if space.request.gpus == self._whole.gpus}
        for published, recipe in of_practice(self._whole):
            self._pool.name_recipe(published, recipe)
            space = spaces[published.software]
            for configuration in space.layouts(published):
                least = space.bound(configuration)
                if least.bytes <= self._pool.limit:
                    yield self._value(space.request, least.seconds), configuration

    @staticmethod
    def _by_software(spaces: Sequence[Space]) -> list[list[Space]]:
        """Return the spaces by software; each is searched by itself, so that the answer is as good as in any of them."""
        names = dict.fromkeys(space.software for space in spaces)
        return [[space for space in spaces if space.software == name] for name in names]

    def fall_back(self) -> None:
        """Estimate the configuration with the least memory if the budget ended before anything was found that fits."""
        if self.best is not None or self.exhausted:
            return
        estimate = thriftiest(self._whole)
        if estimate is not None:
            self._pool.keep(estimate.configuration, estimate)
            self._tried.add(self._trial(estimate.configuration).key)

    def search_orders(self, seconds: float, workers: int) -> None:
        """Search better orders for the finalists, if the user allows what no trainer runs."""
        best = self.best
        if best is None or self.stopped or not self._any_schedule or seconds <= 0 or self._work.over:
            return
        self._phase = "orders"
        self._tell()
        same = [estimate for estimate in self._pool.fitting if estimate.configuration.gpus == best.configuration.gpus]
        request = self._pool.requests[best.configuration.gpus]
        self.searched = better_order(request, same, seconds=seconds, workers=workers)

    def _tell(self) -> None:
        if self._progress is not None:
            share = min(self.spent / self._seconds, 1.0)
            self._progress(PlanProgress(phase=self._phase, share=share, estimated=len(self._tried), best=self.best))

    def _chosen(self) -> Iterator[list[Trial]]:
        """Yield the trials that choose, round by round; the answers of a round are known when the next is drawn."""
        yield from self._recipes()
        for number, branching in enumerate(self._branchings, start=1):
            branching.best = self._pool.least
            share = self._seconds * number / len(self._branchings)
            while self._work.done < share and not branching.exhausted:
                yield from self._choose(branching, 1)
        if not self.exhausted:
            yield from self._sensible()
        for branching in self._branchings:
            branching.best = min(branching.best, self._pool.least)
            while not branching.exhausted:
                far = self._pool.least > FAR * branching.least and not self._work.over
                if not far and (self.best is not None or self._work.done >= AFTERWARDS):
                    break
                yield from self._choose(branching, 1)
        best = self.best
        if best is None or self._work.over:
            return
        self._phase = "comparing"
        spaces = [space for space in self._spaces if space.request.gpus == best.configuration.gpus]
        own = next(space for space in spaces if space.software == best.configuration.software)
        yield from self._estimates(list(neighbours(own, best.configuration, self._pool.limit)))
        yield from self._of_other_kind(own, best)
        self._phase = "front"
        for level in (LIMITS[1], *LEVELS):
            limit = level * self._pool.limit
            values = [
                self._pool.value(estimate) for estimate in self._pool.plain.values() if estimate.peak_bytes <= limit
            ]
            branching = Branching(spaces, self._value, limit, slack=1.0, best=min(values, default=inf))
            yield from self._choose(branching, LEVEL_ROUNDS)
        self._phase = "layout"
        yield from self._lay_out()

    def _of_other_kind(self, space: Space, best: Estimate) -> Iterator[list[Trial]]:
        """Yield trials for the best configuration with a pipeline if the best one has none, and vice versa."""
        has_none = best.configuration.pipeline == 1
        every = space.request.fixed.get("pipeline") or divisors(space.request.gpus)
        degrees = tuple(degree for degree in every if (degree > 1) == has_none)
        if not degrees:
            return
        of_kind = (self._pool.value(other) for other in self._pool.fitting if other.configuration.pipeline in degrees)
        least = min(of_kind, default=inf)
        branching = Branching(
            [space.restricted(pipeline=degrees)], self._value, self._pool.limit, slack=1.0, best=least
        )
        for _ in range(MOST_RIVAL_ROUNDS // RIVAL_ROUNDS):
            yield from self._choose(branching, RIVAL_ROUNDS)
            if branching.best < inf:
                return

    def _choose(self, branching: Branching, rounds: int, size: int = ROUND) -> Iterator[list[Trial]]:
        """Yield rounds of branch and bound until it is exhausted or their number is reached.

        First everything is bounded, so that the most promising are estimated first; that may take several rounds of the
        search over all configurations.
        """
        for _ in range(rounds):
            most, before = (PRICED if branching in self._branchings else 10**9), branching.priced
            left = branching.price(most)
            groups = [] if left else branching.round(size, most)
            self._work.add(bounded=branching.priced - before)
            if left:
                continue
            if branching.exhausted:
                return
            yield from self._estimates([group.configuration for group in groups])
            for group in groups:
                branching.learn(group, self._pool.plain.get(group.configuration))

    def _estimates(self, configurations: Sequence[Configuration]) -> Iterator[list[Trial]]:
        new = [
            configuration for configuration in dict.fromkeys(configurations) if configuration not in self._pool.plain
        ]
        trials = [self._trial(configuration) for configuration in new]
        self._tried.update(trial.key for trial in trials)
        self._work.add(estimated=len(trials))
        yield [trial for trial in trials if trial.key not in self._known]
        for configuration, trial in zip(new, trials, strict=True):
            estimate = self._known.get(trial.key)
            if estimate is not None:
                self._pool.keep(configuration, estimate)

    def _trial(self, configuration: Configuration, **more: Any) -> Trial:
        cluster = self._pool.requests[configuration.gpus].cluster
        return Trial(configuration, cluster.nodes, cluster.per_node, **more)

    def _lay_out(self) -> Iterator[list[Trial]]:
        fixed = self._whole.fixed
        finalists = [finalist for finalist in self._pool.finalists(FINALISTS) if finalist.pipeline > 1]
        if not finalists or "layers" in fixed:
            return
        by_stage = self._any_schedule and "recompute" not in fixed
        layout = LayoutTask(self._pool.limit, min(LAYOUT_SHARE * self._seconds, LAYOUT_SECONDS), by_stage)
        trials = [self._trial(finalist, layout=layout) for finalist in finalists]
        yield trials
        laid = (self._known.get(trial.key) for trial in trials)
        self._pool.keep_laid([estimate for estimate in laid if estimate is not None])

    def _vary(self) -> Iterator[list[Trial]]:
        best = self.best
        assert best is not None
        others = [other for other in self._pool.finalists(VARIED) if other != best.configuration]
        others += [other.configuration for other in self._pool.laid if other is not best]
        for change in CHANGES:
            if self._work.over:
                return
            trials = [self._trial(other, change=change) for other in (best.configuration, *others)]
            self._work.add(estimated=len(trials))
            yield trials
            estimates = [self._known.get(trial.key) for trial in trials]
            if estimates[0] is not None:
                self._varied.append(
                    of_change(change, estimates[0], [other for other in estimates[1:] if other is not None])
                )

    @property
    def value(self) -> float:
        """Value of the best; infinite if nothing fits."""
        return inf if self.best is None else self._pool.value(self.best)

    @property
    def fit(self) -> Fit | None:
        """Fit of the best configuration into memory; None if nothing fits."""
        return None if self.best is None else self._pool.fit(self.best)

    def result(self, others: Sequence[Planning] = ()) -> dict[str, Any]:
        """Return the fields of a plan: the best configuration with its comparisons, or the closest miss if nothing fits.

        ``others`` are the runs for other trainers: they count, and the best is at most as far from theirs as the gap says.
        """
        plannings = [self, *(other for other in others if other is not self)]
        best, comfort = self.best, self._pool.comfort
        answer: dict[str, Any]
        if best is None:
            seconds = max(self._seconds - self._work.done, AFTERWARDS)
            answer = {"closest_miss": closest_miss(self._whole, comfort, seconds), "optimality_gap": None}
        else:
            cluster = self._pool.requests[best.configuration.gpus].cluster
            bar = error_bar(self._whole.model, cluster, best.configuration, best.step_time)
            least = min(planning.least() for planning in plannings)
            answer = {
                **self._pool.comparisons(best, self._varied),
                "best": BestConfiguration(**self._pool.described(replaced(best, error_bar=bar)), flags={}),
                "optimality_gap": max(0.0, self._pool.value(best) / least - 1),
                "totals": Totals.of(best, self._tokens, cluster.gpu.price),
            }
        # Counted last, because either of them bounds further configurations.
        counts = [astuple(planning.counts()) for planning in plannings]
        return {
            **answer,
            "memory_limit_gib": comfort / GIBIBYTE,
            "counts": Counts(**dict(zip(Counts.__slots__, map(sum, zip(*counts, strict=True)), strict=True))),
            "seconds": max(planning.spent for planning in plannings),
            "complete": all(planning.exhausted for planning in plannings) or answer["optimality_gap"] == 0,
            "left_out": left_out(self._whole),
            "interrupted": any(planning.stopped for planning in plannings),
        }

    def least(self) -> float:
        """Return a lower bound on the value of every configuration, which is tightened with some more work."""
        for branching in self._branchings:
            most = branching.priced + BOUNDING / BOUNDED
            while not branching.exhausted and branching.priced < most and branching.price(PRICED):
                pass
        return min(branching.least for branching in self._branchings)

    def counts(self) -> Counts:
        """Return the numbers of configurations that were considered."""
        legal = sum(branching.legal for branching in self._branchings)
        over = sum(branching.over_memory for branching in self._branchings)
        estimated = sum(branching.estimated for branching in self._branchings)
        return Counts(
            legal=legal,
            over_memory=over,
            too_slow=max(0, legal - over - estimated),
            estimated=len(self._tried),
        )
