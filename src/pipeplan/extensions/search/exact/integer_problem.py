"""A problem in whole numbers, as CP-SAT takes it, and the precedences that follow from its memory limits.

Times and sizes: numbers that a person wrote down are multiples of a common unit (0.8, 1.2 and 10/3 of 2/15), and counting in
it loses nothing. Measured ones may have no useful common unit; they are then rounded down to a fine one, so that whatever
held for the true numbers (a schedule that long, a set of activations that fits) still holds for the rounded ones.

Precedences: jobs of a kind and stage run in the order of their microbatches. So whatever holds between two kinds of job
holds for all microbatches alike: "this kind of microbatch i comes before that kind of microbatch i + d", for a *shift* d of
0 or more. Shifts add up along a chain, and the least of them says which pairs of jobs are in a known order.

Memory limits imply shifts too. As long as I has not begun on a stage for microbatch i, all from i on hold that stage, and
every stage of its rank that comes before it on their way, as soon as they have entered it. So when F begins on a stage for
microbatch j, those of i to j - 1 hold what they passed of both, and j holds all of its way: where that is over the limit,
the I was before. The same holds for W with the part that only it frees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from pipeplan.extensions.search.problem import Problem
from pipeplan.model import Columns, Floats, Ints, Kind, Schedule, ops, source_of, tolerances


class Job(NamedTuple):
    """The op of a kind on a stage for one microbatch, counted within its copy of the model."""

    kind: Kind
    copy: int
    stage: int
    turn: int


class Held(NamedTuple):
    """Activation memory of one microbatch on a stage: from F to its backward, from F to W, and from the backward to W."""

    until_backward: int
    until_weight: int
    between: int

    @property
    def at_forward(self) -> int:
        """Memory that its forward takes and its full backward frees."""
        return self.until_backward + self.until_weight


@dataclass(frozen=True, slots=True)
class IntegerMemory:
    """The memory of one rank in whole numbers.

    Attributes
    ----------
    held
        Memory that one microbatch holds on each stage.
    limit
        Memory limit of the rank.
    microbatches
        Number of microbatches of all copies of the model.
    """

    held: Mapping[int, Held]
    limit: int
    microbatches: int

    @property
    def binds(self) -> bool:
        """True if all microbatches together do not fit."""
        return self.limit < self.microbatches * sum(map(sum, self.held.values()))

    def change(self, job: Job) -> int:
        """Return the memory that a job adds to its rank."""
        held = self.held[job.stage]
        if job.kind is Kind.F:
            return held.at_forward
        if job.kind is Kind.W:
            return -held.until_weight - held.between
        return held.between - held.until_backward


class IntegerProblem:
    """Jobs, times and memory of a problem as whole numbers, none larger than the true ones.

    So every schedule of the problem is one of these numbers too, no longer than it was.

    Attributes
    ----------
    problem
        The problem.
    share
        Microbatches of each copy of the model.
    kinds, backward
        Kinds of jobs, and which of them is the backward that hands its result on.
    may_be_full
        By stage: whether the solver decides for each microbatch if backward runs in full: the I is then a B, its W nothing.
    unit
        Length of a time of 1 in the unit of the costs.
    is_exact
        True if all times are multiples of the unit: then all makespans and spans are, too.
    time
        Time of each kind on each stage, also of the full backward.
    transfer
        Time of a transfer between ranks.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.share = problem.microbatches // problem.placement.copies
        self.backward = Kind.I if problem.split_backward else Kind.B
        self.kinds = (Kind.F, Kind.I, Kind.W) if problem.split_backward else (Kind.F, Kind.B)
        self.may_be_full: list[bool] = problem.full_gains.tolist()
        times, transfer = self._true_times(), problem.occupied.transfer.time()
        per_microbatch = sum(float(values.sum()) for values in times.values())
        total = problem.microbatches * (per_microbatch + 2 * problem.placement.stages * transfer)
        every = [*(time for row in times.values() for time in row.tolist()), transfer]
        self.unit: Fraction = common_unit(every, total)
        self.is_exact = all((as_fraction(time) / self.unit).denominator == 1 for time in every)
        self.time = {kind: [in_units(time, self.unit) for time in row.tolist()] for kind, row in times.items()}
        self.transfer = in_units(transfer, self.unit)

    def _true_times(self) -> dict[Kind, Floats]:
        costs = self.problem.occupied
        times = {Kind.F: costs.forward, Kind.I: costs.backward_input, Kind.W: costs.backward_weight}
        if self.backward is Kind.B:
            times = {Kind.F: costs.forward}
        if self.backward is Kind.B or any(self.may_be_full):
            times[Kind.B] = costs.backward
        return times

    @property
    def horizon(self) -> int:
        """Upper bound on the makespan: the length of a schedule that does one thing after the other."""
        per_microbatch = sum(sum(row) for row in self.time.values())
        return self.problem.microbatches * (per_microbatch + 2 * self.problem.placement.stages * self.transfer)

    @property
    def size(self) -> int:
        """Number of jobs."""
        return self.problem.microbatches * self.problem.placement.stages * len(self.kinds)

    def jobs_on(self, rank: int) -> list[Job]:
        """Return the jobs of a rank, each kind and stage in its order."""
        placement = self.problem.placement
        return [
            Job(kind, copy, stage, turn)
            for copy in range(placement.copies)
            for stage in placement.stages_on(rank, copy)
            for kind in self.kinds
            for turn in range(self.share)
        ]

    def jobs_in_order(self) -> Iterator[Job]:
        """Yield every job, none before one that it waits for."""
        stages = range(self.problem.placement.stages)
        for copy, turn in product(range(self.problem.placement.copies), range(self.share)):
            yield from (Job(Kind.F, copy, stage, turn) for stage in stages)
            yield from (Job(kind, copy, stage, turn) for kind in self.kinds[1:] for stage in reversed(stages))

    def time_of(self, job: Job) -> int:
        """Return the duration of a job."""
        return self.time[job.kind][job.stage]

    def time_if_full(self, job: Job) -> int:
        """Return the duration of an I that runs as a full backward; its W then takes none."""
        return self.time[Kind.B][job.stage] if job.kind is Kind.I else 0

    def least_time(self, job: Job) -> int:
        """Return the least duration of a job; of a W, the time that it adds to its backward."""
        time = self.time_of(job)
        if not self.may_be_full[job.stage] or job.kind is Kind.F:
            return time
        inputs, full = self.time[Kind.I][job.stage], self.time[Kind.B][job.stage]
        if job.kind is Kind.I:
            return min(inputs, full)
        return min(inputs + time, full) - min(inputs, full)

    def delay(self, copy: int, stage: int) -> int:
        """Return the time of a transfer between a stage and the next one."""
        return self.transfer if self.problem.placement.crosses[copy, stage] else 0

    def needs(self, job: Job) -> Iterator[tuple[Job, int]]:
        """Yield the jobs that must end before this one starts, each with the time of its transfer."""
        kind, copy, stage, turn = job
        # The job before it of its kind, its source, and what its rank must have freed.
        if turn > 0 and self._in_order(kind, stage):
            yield job._replace(turn=turn - 1), 0
        source = source_of(kind, stage, self.problem.placement.stages, backward=self.backward)
        if source is not None:
            needed = job._replace(kind=source[0], stage=source[1])
            yield needed, 0 if needed.stage == stage else self.delay(copy, min(stage, needed.stage))
        for (before, of_stage), _, by in self._forced[copy].get((kind, stage), ()):
            if by <= turn:
                yield Job(before, copy, of_stage, turn - by), 0

    def leads_to(self, first: Job, second: Job) -> bool:
        """Return true if the second job can never start before the first has ended."""
        if first.copy != second.copy:
            return False
        return bool(self._least[first.copy][self._number(first), self._number(second)] <= second.turn - first.turn)

    def _in_order(self, kind: Kind, stage: int) -> bool:
        """Return true if jobs of a kind run in the order of their microbatches; Ws do not where they may be part of a B."""
        return not (kind is Kind.W and self.may_be_full[stage])

    def _number(self, job: Job) -> int:
        return self.kinds.index(job.kind) * self.problem.placement.stages + job.stage

    @cached_property
    def _forced(self) -> list[dict[Class, list[Shift]]]:
        """Precedences that the limits force, by copy, and by the kind and stage that waits."""
        placement = self.problem.placement
        forced: list[dict[Class, list[Shift]]] = [{} for _ in range(placement.copies)]
        for copy, rank in product(range(placement.copies), range(placement.ranks)):
            memory, stages = self.memory(rank), sorted(placement.stages_on(rank, copy))
            if memory.binds:
                at_forward = {stage: memory.held[stage].at_forward for stage in stages}
                weights = {stage: memory.held[stage].until_weight for stage in stages if self._in_order(Kind.W, stage)}
                for shift in shifts_of_limit(stages, at_forward, weights, memory.limit, self.backward):
                    forced[copy].setdefault(shift.second, []).append(shift)
        return forced

    @cached_property
    def _least(self) -> list[Ints]:
        """Least shift after which each kind and stage surely follows each other, by copy."""
        stages = self.problem.placement.stages
        always: list[tuple[int, int, int]] = []
        for number, (kind, stage) in enumerate(product(self.kinds, range(stages))):
            if self._in_order(kind, stage):
                always.append((number, number, 1))
            source = source_of(kind, stage, stages, backward=self.backward)
            if source is not None:
                always.append((self.kinds.index(source[0]) * stages + source[1], number, 0))
        return [
            least_shifts(
                len(self.kinds) * stages,
                always
                + [
                    (
                        self.kinds.index(first[0]) * stages + first[1],
                        self.kinds.index(second[0]) * stages + second[1],
                        by,
                    )
                    for shifts in forced.values()
                    for first, second, by in shifts
                ],
            )
            for forced in self._forced
        ]

    def memory(self, rank: int) -> IntegerMemory:
        """Return the memory of a rank's jobs, and its limit."""
        rule = self.problem.memory_limit
        stages = sorted({job.stage for job in self.jobs_on(rank)})
        parts = [self._parts(float(rule.activation[stage]), float(rule.freed_by_weight[stage])) for stage in stages]
        copies = self.problem.placement.copies
        most = copies * self.share * sum(map(sum, parts))
        if float(rule.limit[rank]) >= most:
            return IntegerMemory(dict.fromkeys(stages, Held(0, 0, 0)), 0, copies * self.share)
        unit = common_unit([part for sizes in parts for part in sizes], most)
        held = [Held(*(in_units(part, unit) for part in sizes)) for sizes in parts]
        limit = in_units(float(rule.limit[rank]) * (1 + tolerances.MEMORY), unit)
        return IntegerMemory(dict(zip(stages, held, strict=True)), limit, copies * self.share)

    def _parts(self, activation: float, freed_by_weight: float) -> tuple[Fraction, Fraction, Fraction]:
        """Return the memory held from F to the backward, from F to W, and from the backward to W, not rounded."""
        held, kept = as_fraction(activation), as_fraction(freed_by_weight)
        if self.backward is Kind.B:
            return held, Fraction(0), Fraction(0)
        # W may free more than F has taken: then the backward takes the difference.
        both = min(held, kept)
        return held - both, both, kept - both

    def value_in_units(self, value: float) -> int:
        """Return a makespan or span in units; the last digits of a float do not count."""
        return int(Fraction(value) / self.unit + Fraction(1, 100))

    def schedule(self, starts: Mapping[Job, int], fulls: Set[Job], name: str) -> Schedule:
        """Return the schedule in which every rank runs its jobs in the order of their starts, those of ``fulls`` in full."""
        placement = self.problem.placement
        rows = []
        for rank in range(placement.ranks):
            jobs = sorted(self.jobs_on(rank), key=starts.__getitem__)
            halves = [job for job in jobs if not (job.kind is Kind.W and job._replace(kind=self.backward) in fulls)]
            rows.append(self._row([job._replace(kind=Kind.B) if job in fulls else job for job in halves]))
        return Schedule.from_rows(placement, self.problem.microbatches, rows, name=name)

    def _row(self, jobs: Sequence[Job]) -> Columns:
        kinds, copies, stages, turns = np.array(jobs, np.int64).T
        return ops(kinds, stages, copies * self.share + turns)


LARGEST = 2**40
"""The total of all numbers in the unit is at most this: exact to 1e-12, and far from overflow in sums of products."""

_LARGEST_DENOMINATOR = 10**6


def common_unit(values: Iterable[float | Fraction], total: float | Fraction) -> Fraction:
    """Return the largest unit of which all values are multiples, or ``total / LARGEST`` if that is larger.

    Parameters
    ----------
    values
        Numbers of at least 0, not all 0.
    total
        Limit of their sum.
    """
    # The greatest common divisor of fractions, over their common denominator.
    fractions = [as_fraction(value) for value in values if value > 0]
    denominator = lcm(*(fraction.denominator for fraction in fractions))
    numerator = reduce(gcd, (int(fraction * denominator) for fraction in fractions))
    return max(Fraction(numerator, denominator), Fraction(total) / LARGEST)


def in_units(value: float | Fraction, unit: Fraction) -> int:
    """Return a value in whole units, rounded down; the last digits of a float do not count."""
    return int(as_fraction(value) / unit)


def as_fraction(value: float | Fraction) -> Fraction:
    """Return the simplest fraction that equals a float: a tenth for 0.1, a third for 1/3."""
    if isinstance(value, Fraction):
        return value
    # The best approximation with a small denominator (Farey sequence), if it is the same float.
    simple = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    return simple if float(simple) == value else Fraction(value)


Class = tuple[Kind, int]
"""A kind of job on a stage."""

NEVER = 2**30
"""A shift that no two microbatches are apart."""


class Shift(NamedTuple):
    """``first`` of microbatch i comes before ``second`` of microbatch i + ``by``."""

    first: Class
    second: Class
    by: int


def shifts_of_limit(
    stages: Sequence[int], at_forward: Mapping[int, int], until_weight: Mapping[int, int], limit: int, backward: Kind
) -> Iterator[Shift]:
    """Yield the :class:`Shift` constraints between microbatches that a rank's memory limit forces.

    Parameters
    ----------
    stages
        The rank's stages of one copy of the model, in order.
    at_forward, until_weight
        Memory that a forward takes on each of them, and the part of it that only W frees; for stages whose Ws run in order.
    backward
        The kind that hands its result on.
    """
    way = dict(zip(stages, np.cumsum([at_forward[stage] for stage in stages]).tolist(), strict=True))
    for entered in stages:
        # Room that the microbatches before leave, when this one has entered the stage and holds all of its way.
        room = limit - way[entered]
        for left in stages:
            yield from _shift((backward, left), entered, room, way[min(left, entered)])
            if left <= entered and left in until_weight:
                yield from _shift((Kind.W, left), entered, room, until_weight[left])


def _shift(first: Class, entered: int, room: int, size: int) -> Iterator[Shift]:
    if size > 0:
        yield Shift(first, (Kind.F, entered), room // size + 1)


def least_shifts(count: int, shifts: Sequence[tuple[int, int, int]]) -> Ints:
    """Return the least shift between any two classes along all chains, shape (count, count); ``NEVER`` where none."""
    least = np.full((count, count), NEVER, np.int64)
    for first, second, by in shifts:
        least[first, second] = min(least[first, second], by)
    # Shortest paths between all pairs (Floyd 1962, Warshall 1962).
    for through in range(count):
        np.minimum(least, least[:, through, None] + least[None, through], out=least)
    return np.minimum(least, NEVER)
