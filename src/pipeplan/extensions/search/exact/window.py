"""A window of a schedule as constraints for CP-SAT: the jobs that start in it are free, all others keep their places.

What lies before the window is done when it is done. What lies after it counts by the longest chain that follows a job, so
the model has no other jobs than the free ones. Of equal makespans the one is better after which ranks are free earlier: a
window rarely shortens a schedule on its own, but it can make room for the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from pipeplan.extensions.search.exact.integer_problem import IntegerProblem, Job

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import BoolVarT, CpModel, IntVar

Row = list[Job]


class Timed:
    """Rows of jobs in whole numbers, with when each starts.

    Attributes
    ----------
    rows, start, makespan
        Each rank's jobs in their order; when each starts at the earliest; when all are done.
    """

    def __init__(self, integers: IntegerProblem, rows: Sequence[Row]) -> None:
        self.integers, self.rows = integers, [list(row) for row in rows]
        self.start: dict[Job, int] = {}
        # Run each row as far as its inputs are there, until no row advances.
        clock, place = [0] * len(rows), [0] * len(rows)
        going = True
        while going:
            going = False
            for rank, row in enumerate(self.rows):
                while place[rank] < len(row) and self._is_ready(job := row[place[rank]]):
                    self.start[job] = max(clock[rank], self.ready(job))
                    clock[rank], place[rank], going = self.end(job), place[rank] + 1, True
        self.makespan = max(clock)

    def _is_ready(self, job: Job) -> bool:
        return all(source in self.start for source, _ in self.integers.needs(job))

    def ready(self, job: Job, among: Mapping[Job, object] | None = None) -> int:
        """Return when the inputs of a job are there, those ``among`` the free jobs not counted."""
        ends = [
            self.end(source) + delay
            for source, delay in self.integers.needs(job)
            if among is None or source not in among
        ]
        return max(ends, default=0)

    def end(self, job: Job) -> int:
        """Return the end of a job."""
        return self.start[job] + self.integers.time_of(job)

    @property
    def is_complete(self) -> bool:
        """Return true if every job runs; false if rows wait for each other for ever."""
        return len(self.start) == sum(map(len, self.rows))


class WindowModel:
    """The jobs that start within a window of time, and the best that can be made of them.

    Attributes
    ----------
    model
        The model for the solver.
    free
        The free jobs of each rank.
    start
        Start of each of them.
    """

    def __init__(self, timed: Timed, begin: float, end: float) -> None:
        from ortools.sat.python.cp_model import CpModel

        self.timed, self.integers = timed, timed.integers
        self.model: CpModel = CpModel()
        # Rows are in the order of starts, so that the free jobs of each are a slice.
        starts = [[timed.start[job] for job in row] for row in timed.rows]
        self._first = [sum(start < begin for start in row) for row in starts]
        self._stop = [sum(start < end for start in row) for row in starts]
        self.free = [row[i:j] for row, i, j in zip(timed.rows, self._first, self._stop, strict=True)]
        self._tail = self._tails()
        self.start: dict[Job, IntVar] = {}
        self._value = self.model.new_int_var(0, timed.makespan, "")
        jobs = dict.fromkeys(job for free in self.free for job in free)
        for rank, row in enumerate(timed.rows):
            free_from = timed.end(row[self._first[rank] - 1]) if self._first[rank] else 0
            for job in self.free[rank]:
                earliest = max(free_from, timed.ready(job, jobs))
                self.start[job] = self.model.new_int_var(earliest, timed.makespan, "")
                self.model.add_hint(self.start[job], timed.start[job])
        self._feed_what_is_behind()
        leaves = [self._run_rank(rank) for rank in range(len(timed.rows))]
        # Lexicographic: the makespan first, then the sum of the times at which ranks leave the window.
        self.model.minimize(self._value * (1 + len(leaves) * timed.makespan) + sum(leaves))

    def rows(self, start: Mapping[Job, int]) -> list[Row]:
        """Return the rows with the free jobs in the order of these starts."""
        return [
            [*row[:first], *sorted(free, key=start.__getitem__), *row[stop:]]
            for row, first, free, stop in zip(self.timed.rows, self._first, self.free, self._stop, strict=True)
        ]

    def _tails(self) -> dict[Job, int]:
        """Return the longest chain that follows each job after the window."""
        behind = [row[stop:] for row, stop in zip(self.timed.rows, self._stop, strict=True)]
        follows = {job: after for row in behind for job, after in pairwise(row)}
        tails: dict[Job, int] = {job: 0 for row in behind for job in row}
        for job in sorted(tails, key=self.timed.start.__getitem__, reverse=True):
            if job in follows:
                self._lengthen(tails, job, follows[job], 0)
            for source, delay in self.integers.needs(job):
                # Later jobs come first, so what follows this one is known.
                if source in tails:
                    self._lengthen(tails, source, job, delay)
        return tails

    def _lengthen(self, tails: dict[Job, int], job: Job, after: Job, delay: int) -> None:
        tails[job] = max(tails[job], delay + self.integers.time_of(after) + tails[after])

    def _run_rank(self, rank: int) -> IntVar:
        """Constrain a rank's free jobs: one at a time, in memory, before what follows; return when it leaves the window."""
        jobs, row = self.free[rank], self.timed.rows[rank]
        leaves = self.model.new_int_var(0, self.timed.makespan, "")
        behind = row[self._stop[rank]] if self._stop[rank] < len(row) else None
        after = 0 if behind is None else self.integers.time_of(behind) + self._tail[behind]
        for job in jobs:
            end = self.start[job] + self.integers.time_of(job)
            self.model.add(leaves >= end)
            self.model.add(self._value >= end + after)
            for source, delay in self.integers.needs(job):
                if source in self.start:
                    self.model.add(self.start[job] >= self.start[source] + self.integers.time_of(source) + delay)
        times = [
            self.model.new_fixed_size_interval_var(self.start[job], self.integers.time_of(job), "") for job in jobs
        ]
        self.model.add_no_overlap(times)
        self._stay_within(rank, jobs)
        return leaves

    def _feed_what_is_behind(self) -> None:
        """Bound the value by free jobs and the chains after the window that need them."""
        for job, tail in self._tail.items():
            for source, delay in self.integers.needs(job):
                if source in self.start:
                    end = self.start[source] + self.integers.time_of(source)
                    self.model.add(self._value >= end + delay + self.integers.time_of(job) + tail)

    def _stay_within(self, rank: int, jobs: Sequence[Job]) -> None:
        """Limit the memory at each job that adds some: the memory before the window and all changes that come first."""
        memory, comes_first = self.integers.memory(rank), self._order(jobs)
        if not memory.binds:
            return
        # The memory with which the window begins.
        before = sum(memory.change(job) for job in self.timed.rows[rank][: self._first[rank]])
        for job in jobs:
            if (added := memory.change(job)) > 0:
                changes = [memory.change(other) * comes_first[other, job] for other in jobs if other != job]
                self.model.add(before + added + sum(changes) <= memory.limit)

    def _order(self, jobs: Sequence[Job]) -> dict[tuple[Job, Job], BoolVarT | bool]:
        """Return whether one job comes before another: a constant, or a literal."""
        literals: dict[tuple[Job, Job], BoolVarT | bool] = {}
        for one, other in combinations(jobs, 2):
            forced = self.integers.leads_to(one, other), self.integers.leads_to(other, one)
            if any(forced):
                literals[one, other], literals[other, one] = forced
                continue
            literal = self.model.new_bool_var("")
            literals[one, other], literals[other, one] = literal, ~literal
            ends = [self.start[job] + self.integers.time_of(job) for job in (one, other)]
            self.model.add(self.start[other] >= ends[0]).only_enforce_if(literal)
            self.model.add(self.start[one] >= ends[1]).only_enforce_if(~literal)
            self.model.add_hint(literal, self.timed.start[one] < self.timed.start[other])
        return literals
