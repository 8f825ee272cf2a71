"""Recomputation as constraints for CP-SAT: which forwards keep little, and which backwards have an R right before them.

A backward with its R is one bar: nothing of the rank runs between the two, so the R may as well end where the backward
starts. The bar waits for the microbatch's forward where it begins, and for what the backward needs where its R ends.

Microbatches in order
    Jobs of a kind and stage are numbered in the order of time, and job k of each waits for jobs k. That loses nothing in
    time: if each of m bars starts no sooner than d after its own one of m others has ended, then the k-th to start does so
    after the k-th to end. In memory it would: a forward that keeps little need not be of the same number as the backward
    that has the R. (F0 recomputed, F1, B1, F2, B2, R0, B0 holds one activation at most; numbered anew the R is of the third
    microbatch, and the first two forwards hold two.) So the *free* model has a literal for each forward and one for each
    backward: on a stage as many keep little as have an R, and at each backward no more have had an R, or none, than forwards
    of that sort have run. Every schedule is one of its answers, so what it proves holds for all; where the literals of the
    same number agree, its answer is a schedule. The model *in order* has one literal for both: all its answers are
    schedules, but not all schedules are its answers.

Microbatches by name
    Where the two leave a gap, a third model has no such numbers: only the first stage's forwards are in order, which names
    the microbatches, and all schedules are its answers. It is the slowest by far.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from pipeplan.model import Floats, Kind, Schedule, tolerances
from pipeplan.passes import insert_recompute
from pipeplan.solver.exact.integer_problem import (
    Class,
    IntegerMemory,
    IntegerProblem,
    Job,
    Shift,
    as_fraction,
    common_unit,
    in_units,
)
from pipeplan.solver.exact.model import ExactModel, _not
from pipeplan.solver.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import BoolVarT, LinearExpr


class RecomputingModel(ExactModel):
    """The constraints of a problem whose microbatches may be recomputed.

    Parameters
    ----------
    integers
        The problem.
    least, most
        Between these is the objective.
    free
        True if a forward that keeps little may have another number than the backward that has the R; only where jobs are
        numbered in the order of time.

    Attributes
    ----------
    again
        Literals: true if a backward has an R, or a forward keeps little. Jobs that are not in it do neither.

    Raises
    ------
    MissingExtraError
        If OR-Tools is not installed.
    """

    def __init__(self, integers: RecomputingProblem, least: int, most: int, *, free: bool) -> None:
        self.recomputing, self.free = integers, free
        self._memory = {rank: integers.kept_on(rank) for rank in range(integers.problem.placement.ranks)}
        self.again: dict[Job, BoolVarT] = {}
        self._both: dict[tuple[Job, Job], BoolVarT | bool] = {}
        super().__init__(integers, least, most)

    @property
    def decided(self) -> list[tuple[Job, Job]]:
        """Forwards and backwards of the same number on which the model decides."""
        return [(job, self._backward(job)) for job in self.again if job.kind is Kind.F]

    @property
    def has_all_schedules(self) -> bool:
        """True if the proofs of the model hold for all schedules."""
        return self.free or not self.recomputing.ordered

    def answer(self, value: Callable[[Any], int], name: str) -> Schedule | None:
        """Return the schedule of an answer; None if forwards and backwards of the same number do not agree."""
        if any(value(self.again[one]) != value(self.again[other]) for one, other in self.decided):
            return None
        again = [other for _, other in self.decided if value(self.again[other])]
        return self.recomputing.recomputing_schedule(*self._chosen(value), again, name)

    def _backward(self, forward: Job) -> Job:
        return forward._replace(kind=self.integers.backward)

    def _make_full(self) -> None:
        for rank, jobs in self.scope.ranks.items():
            memory = self._memory[rank]
            for job in jobs:
                if job.kind is Kind.F and memory.binds and memory.sizes[job.stage].taken_again > 0:
                    self.again[job] = self.model.new_bool_var("")
                    self.again[self._backward(job)] = self.model.new_bool_var("") if self.free else self.again[job]
        if self.recomputing.ordered:
            super()._make_full()
            return
        for job, full in self.full.items():
            self.model.add(self.start[job._replace(kind=Kind.W)] == self._end(job)).only_enforce_if(full)

    def _begin(self, job: Job) -> LinearExpr:
        """Return when its rank begins with a job: with its R, if it has one."""
        if job.kind is Kind.F or job not in self.again:
            return self.start[job]
        return self.start[job] - self.integers.time[Kind.R][job.stage] * self.again[job]

    def _wait(self) -> None:
        for job in self.start:
            for source, delay in self.scope.needs(job):
                on_rank = source.stage == job.stage and delay == 0
                self.model.add((self._begin(job) if on_rank else self.start[job]) >= self._end(source) + delay)

    def _run_one_at_a_time(self, jobs: Sequence[Job]) -> None:
        bars = [bar for job in jobs for bar in self._bars(job)]
        self.model.add_no_overlap(bars)

    def _bars(self, job: Job) -> Iterator[object]:
        """Yield an interval for each way in which a job may run."""
        full = self._full(job)
        again = None if job.kind is Kind.F else self.again.get(job)
        ways: list[tuple[int, BoolVarT | bool]] = [(self.integers.time_of(job), True if full is None else ~full)]
        if full is not None and job.kind is not Kind.W:
            ways.append((self.integers.time_if_full(job), full))
        recomputing = self.integers.time[Kind.R][job.stage]
        for time, literal in ways:
            if again is None:
                yield self._bar(self.start[job], time, literal)
                continue
            # Without its R, or with the R as a part of the interval.
            yield self._bar(self.start[job], time, self._all(literal, _not(again)))
            yield self._bar(self.start[job] - recomputing, time + recomputing, self._all(literal, again))

    def _bar(self, start: LinearExpr, time: int, literal: BoolVarT | bool) -> object:
        if literal is True:
            return self.model.new_fixed_size_interval_var(start, time, "")
        return self.model.new_optional_fixed_size_interval_var(start, time, literal, "")

    def _all(self, one: BoolVarT | bool, other: BoolVarT | bool) -> BoolVarT | bool:
        """Return a literal that is true if both are."""
        if isinstance(one, bool):
            return other if one else False
        if isinstance(other, bool):
            return one if other else False
        both = self.model.new_bool_var("")
        self.model.add_implication(both, one)
        self.model.add_implication(both, other)
        self.model.add_bool_or(both, ~one, ~other)
        return both

    def _decide(self, one: Job, other: Job, literal: BoolVarT | bool) -> None:
        opposite = _not(literal)
        self._literals[one, other], self._literals[other, one] = literal, opposite
        self.model.add(self._begin(other) >= self._end(one)).only_enforce_if(literal)
        self.model.add(self._begin(one) >= self._end(other)).only_enforce_if(opposite)

    def _bound_value(self, jobs: Sequence[Job]) -> None:
        super()._bound_value(jobs)
        for job in jobs if self.integers.problem.objective == "makespan" else []:
            if job.kind is self.integers.kinds[-1] and not self.recomputing.runs_in_order(job):
                self.model.add(self.value >= self._end(job))
        makespan = self.integers.problem.objective == "makespan"
        head = min(self.start[job].proto.domain[0] for job in jobs) if makespan else 0
        tail = min(self.tails[job] - self.integers.least_time(job) for job in jobs) if makespan else 0
        # The work of the rank with its Rs, between the least head and the least tail of its jobs.
        work = sum(self.integers.least_time(job) for job in jobs)
        recomputing = [
            self.integers.time[Kind.R][job.stage] * self.again[job]
            for job in jobs
            if job.kind is self.integers.backward and job in self.again
        ]
        self.model.add(self.value >= head + work + sum(recomputing) + max(tail, 0))

    def _follow_on(self) -> None:
        for (one, other), literal in self._literals.items():
            if any(job.kind is Kind.W and self._full(job) is not None for job in (one, other)):
                continue
            if self.recomputing.runs_in_order(other):
                later = self._literals.get((one, other._replace(turn=other.turn + 1)), True)
                self.model.add_implication(literal, later)
            if self.recomputing.runs_in_order(one):
                earlier = self._literals.get((one._replace(turn=one.turn - 1), other), True)
                self.model.add_implication(literal, earlier)

    def _stay_within(self, memory: IntegerMemory, jobs: Sequence[Job]) -> None:
        kept = self._memory[int(self.integers.problem.placement.table[jobs[0].copy, jobs[0].stage])]
        if not kept.binds:
            nothing = IntegerMemory(dict.fromkeys(memory.held, type(next(iter(memory.held.values())))(0, 0, 0)), 0, 0)
            super()._stay_within(nothing, jobs)
            return
        self._order_weights(kept, jobs)  # type: ignore[arg-type]
        for one, other in combinations(jobs, 2):
            self._comes_first(one, other)
        self._limit_memory(kept, jobs)
        self._match(jobs)

    def _limit_memory(self, memory: RecomputingMemory, jobs: Sequence[Job]) -> None:
        """Limit a rank's memory at each job: what it holds before the job, plus what the job adds."""
        for job in jobs:
            sizes = memory.sizes[job.stage]
            more = sizes.taken_again * self.again[job] if job in self.again else 0
            if job.kind is Kind.F:
                self.model.add(self._held_before(job, memory, jobs) + sizes.activation - more <= memory.limit)
            elif job.kind is self.integers.backward:
                held = self._held_before(job, memory, jobs)
                if job in self.again:
                    self.model.add(held + more <= memory.limit)
                if (growth := memory.change(job)) > 0:
                    within = self.model.add(held + more + growth <= memory.limit)
                    if job in self.full:
                        within.only_enforce_if(~self.full[job])
                if job in self.full:
                    self._keep_together(job, jobs)

    def _held_before(self, job: Job, memory: RecomputingMemory, jobs: Sequence[Job]) -> LinearExpr | int:
        """Return the memory held after all jobs that come first."""
        held: LinearExpr | int = 0
        for other in jobs:
            if other == job:
                continue
            # A recomputed microbatch holds less from its forward on, and all again from its R on.
            held += memory.change(other) * self._comes_first(other, job)
            if other in self.again:
                sign = -1 if other.kind is Kind.F else 1
                held += sign * memory.sizes[other.stage].taken_again * self._again_before(other, job)
        return held

    def _again_before(self, other: Job, job: Job) -> BoolVarT | bool:
        """Return a literal that is true if another job is recomputed and comes before a job."""
        if (other, job) not in self._both:
            self._both[other, job] = self._all(self._comes_first(other, job), self.again[other])
        return self._both[other, job]

    def _match(self, jobs: Sequence[Job]) -> None:
        """Match Rs to forwards: as many forwards of a stage keep little as it has Rs, and each of these has its R."""
        if not self.free:
            return
        for copy, stage in sorted({(job.copy, job.stage) for job in jobs if job in self.again}):
            forwards = [Job(Kind.F, copy, stage, turn) for turn in range(self.integers.share)]
            backwards = [self._backward(job) for job in forwards]
            # Hall (1935), nested neighbourhoods: by each backward no more had an R, or none, than such forwards have run.
            self.model.add(sum(self.again[job] for job in forwards) == sum(self.again[job] for job in backwards))
            for turn, backward in enumerate(backwards):
                done = sum(self.again[job] for job in backwards[: turn + 1])
                little = sum(self._again_before(job, backward) for job in forwards)
                run = sum(self._comes_first(job, backward) for job in forwards)
                self.model.add(done <= little)
                self.model.add(turn + 1 - done <= run - little)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Memory of a microbatch on a stage: until its backward if kept, until its R if not, from its backward to its W."""

    activation: int
    keeps: int
    until_weight: int

    @property
    def taken_again(self) -> int:
        """Memory that an R takes."""
        return self.activation - self.keeps


@dataclass(frozen=True, slots=True)
class RecomputingMemory:
    """The memory of one rank in whole numbers.

    Attributes
    ----------
    sizes
        Memory that one microbatch holds, by stage.
    limit
        The most that the rank may hold.
    binds
        True if all microbatches together would not fit.
    exact
        True if nothing was rounded.
    """

    sizes: Mapping[int, Sizes]
    limit: int
    binds: bool
    exact: bool = True

    def change(self, job: Job) -> int:
        """Return the memory that a job adds to its rank if its microbatch is kept."""
        sizes = self.sizes[job.stage]
        if job.kind is Kind.F:
            return sizes.activation
        return -sizes.until_weight if job.kind is Kind.W else sizes.until_weight - sizes.activation


class RecomputingProblem(IntegerProblem):
    """The problem in whole numbers, without anything that follows from all microbatches being kept.

    Parameters
    ----------
    problem
        The problem.
    ordered
        True if the jobs of each kind and stage are numbered in the order of time; otherwise only the forwards of the first
        stage are, which numbers the microbatches.
    """

    def __init__(self, problem: Problem, *, ordered: bool = True) -> None:
        self.ordered = ordered
        super().__init__(problem)

    def runs_in_order(self, job: Job) -> bool:
        """Return true if the jobs of this kind and stage are numbered in the order of time."""
        return self._in_order(job.kind, job.stage)

    def leads_to(self, first: Job, second: Job) -> bool:
        """Return true if the second job can never start before the first has ended."""
        ahead = first.turn < second.turn and self.runs_in_order(first)
        return (self.ordered or first.turn == second.turn or ahead) and super().leads_to(first, second)

    def _in_order(self, kind: Kind, stage: int) -> bool:
        return super()._in_order(kind, stage) if self.ordered else kind is Kind.F and stage == 0

    def _true_times(self) -> dict[Kind, Floats]:
        return {**super()._true_times(), Kind.R: self.problem.occupied.recompute}

    @cached_property
    def _forced(self) -> list[dict[Class, list[Shift]]]:
        """Return no precedences: the memory limit forces none, because recomputation can free memory."""
        return [{} for _ in range(self.problem.placement.copies)]

    @property
    def exact(self) -> bool:
        """True if the memory of all ranks is in whole numbers without rounding."""
        return all(self.kept_on(rank).exact for rank in range(self.problem.placement.ranks))

    def kept_on(self, rank: int) -> RecomputingMemory:
        """Return the memory of a rank's jobs, and its limit."""
        rule = self.problem.memory_limit
        stages = sorted({job.stage for job in self.jobs_on(rank)})
        freed = rule.freed_by_weight if self.backward is Kind.I else rule.freed_by_weight * 0
        rows = {
            stage: [float(row[stage]) for row in (rule.activation, rule.recompute_keeps, freed)] for stage in stages
        }
        most = self.problem.microbatches * sum(max(activation, weight) for activation, _, weight in rows.values())
        if float(rule.limit[rank]) >= most:
            return RecomputingMemory(dict.fromkeys(stages, Sizes(0, 0, 0)), 0, binds=False)
        unit = common_unit([size for row in rows.values() for size in row], most)
        return RecomputingMemory(
            {stage: Sizes(*(in_units(size, unit) for size in row)) for stage, row in rows.items()},
            in_units(float(rule.limit[rank]) * (1 + tolerances.MEMORY), unit),
            binds=True,
            exact=all((as_fraction(size) / unit).denominator == 1 for row in rows.values() for size in row),
        )

    def recomputing_schedule(
        self, starts: Mapping[Job, int], fulls: Set[Job], again: Collection[Job], name: str
    ) -> Schedule:
        """Return the schedule of these starts in which the backwards ``again`` have their R right before them."""
        schedule = self.schedule(starts, fulls, name)
        chosen = [(job.stage, job.copy * self.share + job.turn) for job in again]
        return insert_recompute(schedule, chosen) if chosen else schedule
