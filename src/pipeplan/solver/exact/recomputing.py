"""A problem in which microbatches may be recomputed, in whole numbers: times, and what ranks hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from pipeplan.model import Floats, Kind, Schedule, tolerances
from pipeplan.passes import insert_recompute
from pipeplan.solver.exact.forced_order import Class, Shift
from pipeplan.solver.exact.integer_problem import IntegerProblem, Job
from pipeplan.solver.exact.integer_units import as_fraction, common_unit, in_units
from pipeplan.solver.problem import Problem


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a microbatch holds of a stage: until its backward if kept, until its R if not, and from its backward to its W."""

    activation: int
    keeps: int
    until_weight: int

    @property
    def taken_again(self) -> int:
        """What an R takes."""
        return self.activation - self.keeps


@dataclass(frozen=True, slots=True)
class RecomputingMemory:
    """The memory of one rank in whole numbers.

    Attributes
    ----------
    sizes
        What one microbatch holds, by stage.
    limit
        The most that the rank may hold.
    binds
        Whether all microbatches together would not fit.
    exact
        Whether nothing was rounded.
    """

    sizes: Mapping[int, Sizes]
    limit: int
    binds: bool
    exact: bool = True

    def change(self, job: Job) -> int:
        """What a job adds to the memory of its rank if its microbatch is kept."""
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
        Whether the jobs of each kind and stage are numbered as they stand in time; otherwise only the forwards of the first
        stage are, which numbers the microbatches.
    """

    def __init__(self, problem: Problem, *, ordered: bool = True) -> None:
        self.ordered = ordered
        super().__init__(problem)

    def runs_in_order(self, job: Job) -> bool:
        """Whether the jobs of this kind and stage are numbered as they stand in time."""
        return self._in_order(job.kind, job.stage)

    def leads_to(self, first: Job, second: Job) -> bool:
        """Whether the second can never start before the first has ended, whatever is decided."""
        ahead = first.turn < second.turn and self.runs_in_order(first)
        return (self.ordered or first.turn == second.turn or ahead) and super().leads_to(first, second)

    def _in_order(self, kind: Kind, stage: int) -> bool:
        return super()._in_order(kind, stage) if self.ordered else kind is Kind.F and stage == 0

    def _true_times(self) -> dict[Kind, Floats]:
        return {**super()._true_times(), Kind.R: self.problem.occupied.recompute}

    @cached_property
    def _forced(self) -> list[dict[Class, list[Shift]]]:
        """Limits force no order: what they leave no room for can be recomputed."""
        return [{} for _ in range(self.problem.placement.copies)]

    @property
    def exact(self) -> bool:
        """Whether what ranks hold is in whole numbers without rounding."""
        return all(self.kept_on(rank).exact for rank in range(self.problem.placement.ranks))

    def kept_on(self, rank: int) -> RecomputingMemory:
        """What the jobs of a rank hold, and its limit."""
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
        """The schedule of these starts in which the backwards ``again`` have their R right before them."""
        schedule = self.schedule(starts, fulls, name)
        chosen = [(job.stage, job.copy * self.share + job.turn) for job in again]
        return insert_recompute(schedule, chosen) if chosen else schedule
