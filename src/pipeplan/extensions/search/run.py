"""State of a search that its engines share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from pipeplan.checking import check_memory
from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.exchange import Exchange
from pipeplan.extensions.search.problem import Problem
from pipeplan.extensions.search.result import Improvement, Published, SearchProgress, is_as_published
from pipeplan.foundation.errors import DeadlockError
from pipeplan.foundation.kernels import is_native
from pipeplan.foundation.records import replaced
from pipeplan.model import HOST_KINDS, Kind, Schedule, tolerances
from pipeplan.passes import without_collectives
from pipeplan.simulation import Bound

REPORT_EVERY = 0.5
"""Maximum seconds between two reports."""

DOUBLINGS = 11
"""Number of rounds that are followed by one twice as long."""

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """A start and the best schedule made of it.

    Attributes
    ----------
    name, found_by
        The start, and the engines that made this of it.
    candidate
        The candidate that engines go on with.
    value
        The objective.
    schedule
        The schedule itself where the candidate does not describe all of it: its weight backwards have their own order, or
        it holds messages.
    judged
        The objective that the search minimizes: the value, or that of the schedule with its messages and collectives.
    exchange
        Times at which its results are sent and places of its collectives, if these were decided.
    """

    name: str
    found_by: str
    candidate: Candidate
    value: float
    schedule: Schedule | None = None
    judged: float = np.inf
    exchange: Exchange | None = None


class Run:
    """The best candidates so far, the bound, the budget, and workers; engines offer what they find.

    Attributes
    ----------
    problem, encoder, budget, seed
        The problem, its form for the kernels, the budget, and the seed of the random numbers.
    bound
        The best lower bound known.
    best
        The best lineage, as it is judged; None before anything feasible was found.
    history
        Every improvement.
    published, tried, every_published
        The best published schedule that fits, of those tried so far; their names; whether these are all.
    whole
        The search that this one is a part of, which judges what is found here and reports; itself if it is no part of
        another.
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        *,
        seed: int = 0,
        workers: int = 1,
        report: Callable[[SearchProgress], None] | None = None,
        part_of: Run | None = None,
    ) -> None:
        self.problem = problem
        self.whole = self if part_of is None else part_of
        self.encoder = Encoder(problem)
        self.budget = budget
        self.seed = seed
        self.workers = workers
        self.bound: Bound = problem.bound
        self.best: Lineage | None = None
        self.history: list[Improvement] = []
        self.published: Published | None = None
        self.every_published = False
        self.tried: set[str] = set()
        self._lineages: dict[str, Lineage] = {}
        self._judged: dict[str, Lineage] = {}
        self._report = report
        self._reported = 0.0
        self._share = 0.0

    @property
    def is_over(self) -> bool:
        """True if the budget is spent, or the best schedule is optimal, here or as the whole search judges it."""
        return self.budget.is_spent or self.is_optimal or (self._is_part and self.whole.is_over)

    @property
    def _is_part(self) -> bool:
        return self.whole is not self

    @property
    def original(self) -> Problem:
        """Problem as it was posed, from which strategies that depend on costs make their schedules."""
        return self.whole.problem

    @property
    def is_optimal(self) -> bool:
        """True if the judged value of the best schedule meets the bound."""
        return self.best is not None and self.best.judged <= self.bound.value * (1 + tolerances.ROUNDING)

    @property
    def needs_no_start(self) -> bool:
        """True if no schedule can be judged better than the best one: starts need not be tried."""
        return self.whole.is_optimal

    @property
    def lineages(self) -> list[Lineage]:
        """All lineages by value; of equals the older one first."""
        return sorted(self._lineages.values(), key=lambda lineage: lineage.value)

    @property
    def finalists(self) -> list[Lineage]:
        """Best schedule of each lineage by judged value."""
        return sorted(self._judged.values(), key=lambda lineage: lineage.judged)

    def offer(self, candidate: Candidate, lineage: str, found_by: str) -> None:
        """Take a candidate if it is the best of its lineage; infeasible ones are ignored."""
        if np.isfinite(candidate.value):
            self.take(Lineage(lineage, found_by, candidate, candidate.value))

    def offer_in_turns(self, candidate: Candidate, lineage: str, found_by: str) -> None:
        """Offer a candidate; if microbatches differ, also with them in other orders."""
        self.offer(candidate, lineage, found_by)
        for name, microbatches in self.encoder.orders.items():
            if self.is_over:
                return
            self.budget.evaluations += 1
            self.offer(self.encoder.in_turn(candidate, microbatches), lineage, f"{found_by}, {name}")

    def take(self, lineage: Lineage) -> None:
        """Take a lineage if it is the best of its name."""
        before = self._lineages.get(lineage.name)
        if before is None or lineage.value < before.value:
            taken = self._lineages[lineage.name] = replace(lineage, candidate=lineage.candidate.copy())
            self.take_judged(self.judged(taken))
        if self._is_part:
            self.whole.take(lineage)

    def judged(self, lineage: Lineage) -> Lineage:
        """Return the lineage as it is judged."""
        if not self.problem.is_judged:
            return replace(lineage, judged=lineage.value)
        schedule = self.problem.completed(self.schedule(lineage))
        return replace(lineage, schedule=schedule, judged=self.problem.judge(schedule))

    def take_as_it_is(self, schedule: Schedule, name: str, candidate: Candidate) -> None:
        """Take a schedule that fits unchanged, messages included, if its candidate does not describe all of it."""
        problem = self.whole.problem
        if not problem.is_judged:
            return
        try:
            judged = problem.judge(schedule)
        except DeadlockError:  # its own messages never meet
            return
        self.whole.take_judged(
            Lineage(name, name, candidate.copy(), candidate.value, problem.sharded(schedule), judged)
        )

    def take_judged(self, lineage: Lineage) -> None:
        """Take a judged lineage if it is the best of its name; one that does not fit with its collectives is ignored."""
        if not np.isfinite(lineage.judged):
            return
        before = self._judged.get(lineage.name)
        if before is None or lineage.judged < before.judged:
            self._judged[lineage.name] = lineage
            if self.best is None or lineage.judged < self.best.judged:
                self.best = lineage
                self.history.append(
                    Improvement(lineage.judged, lineage.found_by, self.budget.evaluations, self.budget.seconds)
                )
                self.report_progress()

    def offer_published(self, schedule: Schedule, name: str) -> None:
        """Take a published schedule as :meth:`offer_schedule` does; the search has to beat the best with its defaults."""
        self.tried.add(name)
        value = self.offer_schedule(schedule, name)
        if np.isfinite(value) and is_as_published(name):
            self.take_published(schedule, Published(name, value))
        self.report_meanwhile()

    def take_published(self, schedule: Schedule, rival: Published) -> None:
        """Take a published schedule as the one to beat if it is the best by judged value."""
        own = replaced(rival, value=self.problem.judge(schedule)) if self.problem.is_judged else rival
        if np.isfinite(own.value) and own.beats(self.published, self.problem.placement.chunks):
            self.published = own
            self.report_progress()
        if self._is_part:
            self.whole.take_published(schedule, rival)

    def offer_schedule(self, schedule: Schedule, name: str) -> float:
        """Take a valid schedule of this placement and number of microbatches as a separate lineage, if it fits.

        Where its candidate is not as good, the schedule is kept unchanged: one that runs weight backwards in an order
        that the problem does not decide on. Where schedules are judged, it is judged unchanged, too. Of one that does not
        fit, some is recomputed or offloaded if that may be.

        Returns the objective of the unchanged schedule; infinite where it does not fit.
        """
        self.budget.evaluations += 1
        candidate = self.encoder.encode(without_collectives(schedule))
        value = value_as_is(schedule, self.problem)
        if self.encoder.decides_mode and not np.isfinite(candidate.value) and not np.isfinite(value):
            self.offer(self.encoder.fitted(candidate.decisions), name, f"{name}, not all of it kept")
            return value
        if np.isfinite(value):
            # It fits, but not in the form of a candidate: engines then anneal from the order that always fits.
            if not np.isfinite(candidate.value):
                candidate = self.encoder.from_order(self.encoder.one_by_one())
            self.take_as_it_is(schedule, name, candidate)
        if candidate.value <= value * (1 + tolerances.ROUNDING):
            self.offer_in_turns(candidate, name, name)
        elif np.isfinite(value):
            self.take(Lineage(name, name, candidate, value, schedule))
        return value

    def offer_with_collectives(self, schedule: Schedule, name: str) -> None:
        """Take a schedule as it is, with the collectives that it has or gets, if it fits.

        Orders without collectives must leave room for them, which this schedule may do without.
        """
        if np.isfinite(value_as_is(schedule, self.problem)):
            candidate = self.encoder.encode(without_collectives(schedule))
            if not np.isfinite(candidate.value):
                candidate = self.encoder.from_order(self.encoder.one_by_one())
            self.take_as_it_is(schedule, name, candidate)

    def schedule(self, lineage: Lineage) -> Schedule:
        """Return the schedule of a lineage."""
        return self.encoder.decode(lineage.candidate) if lineage.schedule is None else lineage.schedule

    def raise_bound(self, bound: Bound) -> None:
        """Take a lower bound if it is better than the best one so far; that of a plan also holds for judged values."""
        if bound.value > self.bound.value:
            self.bound = bound
            self.report_progress()
        # Within limits, the plan reserves memory of collectives that another schedule may do without.
        if self._is_part and (self.original.sharding is None or self.problem.limits is None):
            self.whole.raise_bound(bound)

    def report_progress(self) -> None:
        """Report the progress of the whole search."""
        if self._is_part:
            self.whole.report_progress()
            return
        best = self.best
        if self._report is None or best is None:
            return
        self._reported = self.budget.seconds
        # Work in progress is estimated and may turn out to be less: the reported share never falls.
        self._share = max(self._share, self.budget.share)
        self._report(
            SearchProgress(
                value=best.judged,
                bound=self.bound.value,
                found_by=best.found_by,
                evaluations=self.budget.evaluations,
                seconds=self.budget.seconds,
                share=self._share,
                best=lambda: self.problem.completed(self.schedule(best)),
                published=self.published,
            )
        )

    def report_meanwhile(self) -> None:
        """Report the progress if there was no report for a while."""
        if self.budget.seconds - self.whole._reported >= REPORT_EVERY:
            self.report_progress()

    def map(self, work: Callable[[Task], Outcome], tasks: Sequence[Task]) -> list[Outcome]:
        """Return ``work`` of every task, in the order of the tasks, on the workers, reporting meanwhile.

        Compiled kernels run without the GIL. If the user stops the search, the budget says so, tasks end early, and what
        they have found until then is returned.
        """
        # Plain Python holds the GIL: more threads would only wait for each other.
        with ThreadPoolExecutor(self.workers if is_native() else 1) as pool:
            futures = [pool.submit(work, task) for task in tasks]
            try:
                while wait(futures, timeout=REPORT_EVERY).not_done:
                    self.report_progress()
            except KeyboardInterrupt:
                self.budget.stopped.set()
            except BaseException:  # what ends the process does not wait until the budget is spent
                self.budget.stopped.set()
                raise
            return [future.result() for future in futures]

    def rounds(self, tasks: int, first: int, until: float = 1.0) -> Iterator[tuple[int, int]]:
        """Yield rounds of tasks until this share of the budget is spent: their numbers, and evaluations for each task.

        Each of the first ``DOUBLINGS`` rounds is followed by one twice as long; none is longer than the budget allows, from
        the second on also in seconds.
        """
        speed = 0.0
        turn = 0
        while not self.is_over and self.budget.share < until:
            length = max(first, 1) << min(turn, DOUBLINGS)
            evaluations_left = self.budget.evaluations_until(until)
            if evaluations_left is not None:
                length = min(length, -(-evaluations_left // tasks))
            seconds_left = self.budget.seconds_until(until)
            if speed and np.isfinite(seconds_left):
                length = min(length, int(1.05 * seconds_left * speed / tasks))
            before = self.budget.seconds
            yield turn, max(length, 1)
            speed = tasks * length / max(self.budget.seconds - before, 1e-9)
            turn += 1

    def random(self, *names: int) -> np.random.Generator:
        """Return a generator that depends on the search's seed and on these numbers alone."""
        return np.random.default_rng([self.seed, *names])


def value_as_is(schedule: Schedule, problem: Problem) -> float:
    """Return the objective of an unchanged schedule; infinite if it does not fit or the problem excludes it."""
    choices = problem.choices
    split = schedule.has(Kind.I) and not choices.split
    again = schedule.has(Kind.R) and not choices.recompute
    pairs = problem.costs.has_pair_times and not choices.overlap and bool(schedule.joined.any())
    away = not (choices.offload or schedule.kinds.isdisjoint(HOST_KINDS))
    if split or pairs or again or away:
        return np.inf
    schedule, rule = (
        problem.sharded(schedule),
        problem.memory_limit if problem.sharding is None else problem.memory_rule,
    )
    return np.inf if any(check_memory(schedule, rule)) else problem.value(problem.simulated(schedule).timeline)


class Engine(Protocol):
    """A method that finds schedules or bounds, and offers them to the run until it is done or the run is over."""

    def __call__(self, run: Run) -> None:
        """Search."""
        ...
