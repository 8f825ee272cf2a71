"""Jobs of a problem that a model keeps: all of them, or those of a few ranks, with the way through the others as delays.

A model of a few ranks asks of all others only that a microbatch takes its time there: it drops the rules that others run
one job at a time and stay within their memory. Every schedule keeps to what is left, so what such a model proves that no
schedule can do, none can. Where a stage between two kept ones is slower than both, its jobs stay too, one microbatch after
the other: they hold up the flow. All others can stay as well; then what limits force on their ranks holds it up, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from pipeplan.extensions.search.exact.integer_problem import IntegerProblem, Job
from pipeplan.model import Kind

Need = tuple[Job, int]
"""A job that must have ended, and how long before."""

Class = tuple[Kind, int, int]
"""A kind of job on a stage of a copy."""


class Scope:
    """The jobs that a model keeps, and what waits for what among them.

    Parameters
    ----------
    integers
        The problem.
    ranks
        The ranks whose rules are kept; None: all.
    flow
        True if the forwards and backwards of all other ranks stay, as jobs that wait and are waited for.

    Attributes
    ----------
    ranks
        The ranks kept, each with its jobs.
    first_stage
        The first stage whose forwards stay: nothing starts before those.
    flow
        True if such jobs stay, as requested; always false if nothing is left out.
    passed
        Jobs of other ranks that hold up the flow.
    whole
        True if nothing is left out.
    """

    def __init__(self, integers: IntegerProblem, ranks: Sequence[int] | None = None, *, flow: bool = False) -> None:
        self.integers = integers
        self._placement = integers.problem.placement
        every = range(self._placement.ranks)
        self.ranks: dict[int, list[Job]] = {
            rank: integers.jobs_on(rank) for rank in (every if ranks is None else ranks)
        }
        self.whole = len(self.ranks) == len(every)
        kept = {self._class(job) for jobs in self.ranks.values() for job in jobs}
        self.flow = flow and not self.whole
        # A relaxation: leaving out rules of the other ranks can only make more schedules possible, so that bounds hold.
        slow = self._others(kept) if self.flow else set() if self.whole else self._slow(kept)
        self._kept = kept | slow
        self.first_stage = min(stage for _, _, stage in self._kept)
        self.passed = [Job(*of, turn) for of in sorted(slow) for turn in range(integers.share)]

    @staticmethod
    def _class(job: Job) -> Class:
        return job.kind, job.copy, job.stage

    @property
    def jobs(self) -> Iterator[Job]:
        """Yield every job that is kept."""
        for jobs in self.ranks.values():
            yield from jobs
        yield from self.passed

    def needs(self, job: Job) -> Iterator[Need]:
        """Yield the kept jobs that must end before this one starts, each with the least time between the two."""
        for source, delay in self.integers.needs(job):
            along = source.turn == job.turn or source.kind is Kind.W
            yield from self._kept_before(source, delay, along=along)

    def _kept_before(self, source: Job, delay: int, *, along: bool) -> Iterator[Need]:
        # Walk back over jobs that are left out, adding their least times, to the next one that is kept.
        while self._class(source) not in self._kept:
            if not along:
                return
            delay += self.integers.least_time(source)
            before = next((need for need in self.integers.needs(source) if need[0].turn == source.turn), None)
            if before is None:
                return
            source, delay = before[0], delay + before[1]
        yield source, delay

    def _others(self, kept: set[Class]) -> set[Class]:
        stages, copies = (range(count) for count in (self._placement.stages, self._placement.copies))
        kinds = (Kind.F, self.integers.backward)
        return {(kind, copy, stage) for kind, copy, stage in product(kinds, copies, stages)} - kept

    def _slow(self, kept: set[Class]) -> set[Class]:
        """Return the slowest stage between any two kept stages, where it is slower than both."""
        integers, slow = self.integers, set()
        stages = range(self._placement.stages)
        for copy in range(self._placement.copies):
            way = [(Kind.F, copy, stage) for stage in stages]
            way += [(integers.backward, copy, stage) for stage in reversed(stages)]
            times = [integers.least_time(Job(*one, 0)) for one in way]
            stops = [place for place, one in enumerate(way) if one in kept]
            # The flow of a line is that of its slowest machine: a slower stage between two kept ones must stay.
            for start, stop in pairwise(stops):
                between = range(start + 1, stop)
                slowest = max(between, key=times.__getitem__, default=start)
                if times[slowest] > max(times[start], times[stop]):
                    slow.add(way[slowest])
        return slow

    def heads(self) -> dict[Job, int]:
        """Return the earliest start of each kept job."""
        # Longest paths in topological order.
        heads: dict[Job, int] = {}
        for job in self.integers.jobs_in_order():
            heads[job] = max(
                (
                    heads[source] + self.integers.least_time(source) + delay
                    for source, delay in self.integers.needs(job)
                ),
                default=0,
            )
        return heads

    def tails(self) -> dict[Job, int]:
        """Return the least time from the start of each job to the end of the last one.

        A W that may have become a part of its backward then takes no time.
        """
        # The same from the end.
        tails: dict[Job, int] = {}
        for job in reversed(list(self.integers.jobs_in_order())):
            tails[job] = tails.get(job, 0) + self.integers.least_time(job)
            for source, delay in self.integers.needs(job):
                tails[source] = max(tails.get(source, 0), delay + tails[job])
            if job.kind is Kind.W and self.integers.may_be_full[job.stage]:
                tails[job] = 0
        return tails
