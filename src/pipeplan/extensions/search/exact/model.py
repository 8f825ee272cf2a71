"""The scheduling problem as constraints for CP-SAT: what waits for what, one job at a time, memory.

Microbatches are alike, so those of one kind and stage may run in their order without loss, and so may weight backwards
that take the same time and free the same memory, in the order of their input backwards. What is left to decide is how the
kinds and stages of a rank interleave, and, where it can gain, which backwards run in full: then the I takes the time of
the full backward, and its W none.

A rank with one stage, whose activations are freed at once, needs no more than that: a forward waits for what frees the one
that many microbatches before. Elsewhere every pair of jobs has a literal, "this one comes first", and what the rank
holds after a job is a linear sum of them. The literals are monotone: what precedes a job also precedes the next of its
kind. Measured on V-shaped placements of 4 ranks and 8 microbatches, this proves in seconds what capacity over
intervals of activation (or a reservoir) does not prove in a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from pipeplan.extensions.search.exact.integer_problem import IntegerMemory, IntegerProblem, Job
from pipeplan.extensions.search.exact.scope import Scope
from pipeplan.foundation.errors import MissingExtraError
from pipeplan.model import Kind, Schedule

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import BoolVarT, CpModel, IntVar, LinearExpr


class ExactModel:
    """The constraints of a problem, and the variables that answer it.

    Attributes
    ----------
    model
        The model for the solver.
    start, full
        Start of each job; and for the backwards that may run in full, whether they do.
    value
        The objective, makespan or longest span, between ``least`` and ``most``.

    Raises
    ------
    MissingExtraError
        If OR-Tools is not installed.
    """

    def __init__(self, integers: IntegerProblem, least: int, most: int, scope: Scope | None = None) -> None:
        try:
            from ortools.sat.python import cp_model
        except ImportError:
            raise MissingExtraError("search", "ortools") from None
        self.integers = integers
        self.scope = scope or Scope(integers)
        self._passed = set(self.scope.passed)
        self.model: CpModel = cp_model.CpModel()
        self.value: IntVar = self.model.new_int_var(least, most, "value")
        self.start: dict[Job, IntVar] = self._starts(most)
        self.full: dict[Job, BoolVarT] = {
            job: self.model.new_bool_var("")
            for jobs in self.scope.ranks.values()
            for job in jobs
            if job.kind is Kind.I and integers.may_be_full[job.stage]
        }
        self._literals: dict[tuple[Job, Job], BoolVarT | bool] = {}
        # Precedences first, then the resources of each rank, then what they imply.
        self._make_full()
        self._wait()
        for rank, jobs in self.scope.ranks.items():
            self._run_one_at_a_time(jobs)
            self._stay_within(integers.memory(rank), jobs)
            self._bound_value(jobs)
        if integers.problem.objective == "span":
            self._start_at_once()
        self._follow_on()
        self.model.minimize(self.value)

    def answer(self, value: Callable[[Any], int], name: str) -> Schedule | None:
        """Return the schedule of an answer, in which variables have these values; None if it is of a few ranks alone."""
        if not self.scope.whole:
            return None
        starts = {job: value(start) for job, start in self.start.items()}
        return self.integers.schedule(starts, {job for job, full in self.full.items() if value(full)}, name)

    def narrow(self, least: int, most: int, *, minimize: bool) -> None:
        """Restrict the value to a range, and minimize it or take any; ``most`` is at most that of the constructor."""
        domain = self.model.proto.variables[self.value.index].domain
        domain[0], domain[1] = least, most
        if minimize:
            self.model.minimize(self.value)
        else:
            self.model.clear_objective()

    def _starts(self, most: int) -> dict[Job, IntVar]:
        """Return the start variables: no sooner than the head, and for the makespan no later than the tail allows."""
        variable, horizon = self.model.new_int_var, self.integers.horizon
        if self.integers.problem.objective == "span":
            return {job: variable(0, horizon, "") for job in self.scope.jobs}
        heads, self.tails = self.scope.heads(), self.scope.tails()
        return {job: variable(heads[job], max(most - self.tails[job], heads[job]), "") for job in self.scope.jobs}

    def _end(self, job: Job) -> LinearExpr:
        time, full = self.integers.time_of(job), self._full(job)
        if full is None:
            return self.start[job] + (self.integers.least_time(job) if job in self._passed else time)
        return self.start[job] + time + (self.integers.time_if_full(job) - time) * full

    def _full(self, job: Job) -> BoolVarT | None:
        """Return the literal that a backward, or the one that a W belongs to, runs in full; None where none does."""
        return None if job.kind is Kind.F else self.full.get(job._replace(kind=self.integers.backward))

    def _make_full(self) -> None:
        """End the W of a full backward with its I; keep the other Ws of a stage in the order of their Is."""
        for job, full in self.full.items():
            weight = job._replace(kind=Kind.W)
            self.model.add(self.start[weight] == self._end(job)).only_enforce_if(full)
            for turn in range(job.turn):
                self.model.add(self.start[weight] >= self._end(weight._replace(turn=turn))).only_enforce_if(~full)

    def _wait(self) -> None:
        # The conjunctive arcs of the disjunctive graph (Roy and Sussmann 1964): dependencies and orders within a kind.
        for job in self.start:
            for source, delay in self.scope.needs(job):
                self.model.add(self.start[job] >= self._end(source) + delay)

    def _run_one_at_a_time(self, jobs: Sequence[Job]) -> None:
        # The disjunctive arcs: one interval per job; where it may run in full, one of two optional intervals.
        bars = []
        for job in jobs:
            start, time, full = self.start[job], self.integers.time_of(job), self._full(job)
            if full is None:
                bars.append(self.model.new_fixed_size_interval_var(start, time, ""))
                continue
            bars.append(self.model.new_optional_fixed_size_interval_var(start, time, ~full, ""))
            if job.kind is not Kind.W:
                bars.append(
                    self.model.new_optional_fixed_size_interval_var(start, self.integers.time_if_full(job), full, "")
                )
        self.model.add_no_overlap(bars)

    def _bound_value(self, jobs: Sequence[Job]) -> None:
        """Bound the value by the rank's last end, counted from 0 or from its first start."""
        firsts = [job for job in jobs if job.kind is Kind.F and job.turn == 0]
        last_turn = self.integers.share - 1
        lasts = [
            job
            for job in jobs
            if job.kind is self.integers.kinds[-1] and (job.turn == last_turn or self._full(job) is not None)
        ]
        makespan = self.integers.problem.objective == "makespan"
        for last in lasts:
            for begin in [0] if makespan else [self.start[first] for first in firsts]:
                self.model.add(self.value >= self._end(last) - begin)
        # A model of a few ranks knows the way through the others as tails.
        if makespan and not self.scope.whole:
            for job in jobs:
                self.model.add(self.value >= self.start[job] + self.tails[job])

    def _start_at_once(self) -> None:
        """Fix the first start at 0: spans do not change when everything is shifted.

        Other ranks may begin later than they could, by whole units, which can make their span shorter. A schedule cannot say
        so, but it can do so: its rank waits for a microbatch that another one overtakes.
        """
        if self.integers.problem.placement.copies == 1:
            self.model.add(self.start[Job(Kind.F, 0, self.scope.first_stage, 0)] == 0)

    def _stay_within(self, memory: IntegerMemory, jobs: Sequence[Job]) -> None:
        """Keep the rank within its limit, and in one order if it has several stages."""
        released = self._released_at_once(memory, jobs)
        if released is not None:
            self._wait_for_release(memory, released, jobs)
            return
        self._order_weights(memory, jobs)
        for one, other in combinations(jobs, 2):
            self._comes_first(one, other)
        self._sum_up(memory, jobs)

    def _released_at_once(self, memory: IntegerMemory, jobs: Sequence[Job]) -> Kind | None:
        """Return the kind that frees the activations of a rank's only stage; None where it is not as simple as that."""
        if len({(job.copy, job.stage) for job in jobs}) > 1:
            return None
        if memory.binds and any(job in self.full for job in jobs):
            return None
        held = memory.held[jobs[0].stage]
        if held.between == held.until_backward == 0:
            return Kind.W
        return self.integers.backward if held.between == held.until_weight == 0 else None

    def _wait_for_release(self, memory: IntegerMemory, released: Kind, jobs: Sequence[Job]) -> None:
        """Let a forward wait for the release of the microbatch that is as many before it as fit at once."""
        if memory.binds:
            # Microbatches are released in their order, so that the k-th forward needs the release of the (k - count)-th.
            count = memory.limit // memory.change(jobs[0])
            for job in jobs:
                if job.kind is Kind.F and job.turn >= count:
                    self.model.add(self.start[job] >= self._end(job._replace(kind=released, turn=job.turn - count)))

    def _sum_up(self, memory: IntegerMemory, jobs: Sequence[Job]) -> None:
        """Limit the memory after each job that adds some: the changes of all jobs that come first, and its own."""
        # Memory is piecewise constant and grows only at these jobs: there it is checked, as a sum over order literals.
        changes = [(job, change) for job in jobs if (change := memory.change(job)) != 0]
        for job, added in changes:
            if added > 0:
                before = [change * self._comes_first(other, job) for other, change in changes if other != job]
                within = self.model.add(added + sum(before) <= memory.limit)
                if job in self.full:
                    within.only_enforce_if(~self.full[job])
        for job in jobs:
            if job in self.full:
                self._keep_together(job, jobs)

    def _keep_together(self, job: Job, jobs: Sequence[Job]) -> None:
        """Order all jobs that follow a full backward's I after its W."""
        weight = job._replace(kind=Kind.W)
        for other in jobs:
            if other not in (job, weight):
                behind = self._comes_first(job, other), self._comes_first(weight, other)
                self.model.add_bool_or(~self.full[job], _not(behind[0]), behind[1])

    def _order_weights(self, memory: IntegerMemory, jobs: Sequence[Job]) -> None:
        """Run Ws of equal time and memory in the order of their Is, which loses nothing."""
        weights = [job for job in jobs if job.kind is Kind.W]
        for one, other in combinations(weights, 2):
            # Exchange argument: swapping two Ws of equal time and memory changes nothing.
            alike = self.integers.time_of(one) == self.integers.time_of(other) and memory.change(one) == memory.change(
                other
            )
            if alike and not self._is_known(one, other):
                inputs = self._comes_first(*(job._replace(kind=self.integers.backward) for job in (one, other)))
                fulls = [full for job in (one, other) if (full := self._full(job)) is not None]
                if fulls:
                    weight = self._comes_first(one, other)
                    self.model.add_bool_or(*fulls, _not(inputs), weight)
                    self.model.add_bool_or(*fulls, inputs, _not(weight))
                else:
                    self._decide(one, other, inputs)

    def _is_known(self, one: Job, other: Job) -> bool:
        return self.integers.leads_to(one, other) or self.integers.leads_to(other, one)

    def _comes_first(self, one: Job, other: Job) -> BoolVarT | bool:
        """Return whether one job comes before another of its rank: a constant, or a literal."""
        if self._is_known(one, other):
            return self.integers.leads_to(one, other)
        if (one, other) not in self._literals:
            self._decide(one, other, self.model.new_bool_var(""))
        return self._literals[one, other]

    def _decide(self, one: Job, other: Job, literal: BoolVarT | bool) -> None:
        """Bind a literal to the order of two jobs."""
        opposite = _not(literal)
        self._literals[one, other], self._literals[other, one] = literal, opposite
        self.model.add(self.start[other] >= self._end(one)).only_enforce_if(literal)
        self.model.add(self.start[one] >= self._end(other)).only_enforce_if(opposite)

    def _follow_on(self) -> None:
        """Make the order of jobs transitive along each kind: predecessors of a job precede the next of its kind."""
        for (one, other), literal in self._literals.items():
            if any(job.kind is Kind.W and self._full(job) is not None for job in (one, other)):
                continue
            # Jobs of a kind run in order: what comes before a job comes before the next one, and so do its predecessors.
            later = self._literals.get((one, other._replace(turn=other.turn + 1)), True)
            earlier = self._literals.get((one._replace(turn=one.turn - 1), other), True)
            for implied in (later, earlier):
                self.model.add_implication(literal, implied)


def _not(literal: BoolVarT | bool) -> BoolVarT | bool:
    return (not literal) if isinstance(literal, bool) else ~literal
