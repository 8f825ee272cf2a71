"""Collectives of sharded stages, placed by paging with prefetch under a memory limit: which stages are gathered when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.kernels import Kernel
from pipeplan.model import (
    COMPUTE_KINDS,
    NO_MICROBATCH,
    NONE,
    Bools,
    Floats,
    Ints,
    Kind,
    MemoryRule,
    Placement,
    Schedule,
    among,
    gradient_levels,
    levels_before,
    memory_levels,
    ops,
    tolerances,
)
from pipeplan.passes import insert_collectives, last_weight_gradients, without_collectives
from pipeplan.simulation.residency_kernel import place_collectives

_PLACE_COLLECTIVES = Kernel(place_collectives)

_KINDS = np.array([Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD])
"""Kinds of the kernel's numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Residency:
    """Decisions of each rank on its collectives, arrays of shape (ranks,).

    Attributes
    ----------
    stages
        Number of stages of the rank with the most.
    ahead
        Number of next different stages that it may gather before their use, counted from that of the next op on.
    eager
        Number of these for which it frees a stage with a later next use, if memory is short. With 0 or 1 it frees one only
        for the next op.
    hold
        Number of next ops whose gathers are posted before a reduction; with 0, reductions are posted at once.
    """

    stages: int
    ahead: Ints
    eager: Ints
    hold: Ints

    @classmethod
    def alike(cls, placement: Placement, ahead: int, eager: int = 0, hold: int = 0) -> Residency:
        """Return the same decisions on every rank."""
        of_ranks = (np.full(placement.ranks, number) for number in (ahead, eager, hold))
        return cls(most_stages(placement), *of_ranks)

    @classmethod
    def simple(cls, placement: Placement) -> list[Residency]:
        """Return a few decisions to begin with, the same on all ranks."""
        most = most_stages(placement)
        pairs = sorted({(1, 0), (min(most, 2), 0), (min(most, 2), min(most, 2)), (most, 0), (most, most)})
        return [cls.alike(placement, ahead, 0 if eager == 1 else eager) for ahead, eager in pairs]

    def on(self, rank: int, ahead: int, eager: int, hold: int) -> Residency:
        """Return these decisions with others on one rank."""
        columns = [column.copy() for column in (self.ahead, self.eager, self.hold)]
        for column, number in zip(columns, (ahead, eager, hold), strict=True):
            column[rank] = number
        return Residency(self.stages, *columns)

    def moved(self, random: np.random.Generator) -> Residency:
        """Return a random neighbour, which differs on one rank."""
        rank, ahead = int(random.integers(len(self.ahead))), int(random.integers(1, self.stages + 1))
        hold = int(random.integers(2)) * int(random.integers(1, 2 * self.stages + 1))
        return self.on(rank, ahead, int(random.integers(ahead + 1)), hold)


def most_stages(placement: Placement) -> int:
    """Return the number of stages of the rank with the most, over all copies of the model."""
    return int(np.bincount(placement.table.ravel()).max())


class PlainRows:
    """Rows of a schedule without collectives, ready to have them placed.

    Parameters
    ----------
    schedule
        The schedule; its collectives are dropped.
    rule
        Memory of its stages, and limits of its ranks.
    """

    def __init__(self, schedule: Schedule, rule: MemoryRule) -> None:
        self.schedule = schedule = without_collectives(schedule)
        none = np.zeros(schedule.stages)
        self._size = rule.parameters if rule.parameters.size else none
        self._gradient = rule.gradients if rule.gradients.size else none
        computes = among(schedule.columns.kind, COMPUTE_KINDS)
        self._stage_of = np.where(computes, schedule.columns.stage, NONE).astype(np.int64)
        self._following = _following(schedule, computes)
        last = last_weight_gradients(schedule)
        self._reduced = np.full(len(schedule), NONE, np.int64)
        self._reduced[last] = schedule.columns.stage[last]
        self._room = self._rooms(rule)

    def _rooms(self, rule: MemoryRule) -> Floats:
        """Return the memory that each op leaves to parameters, shape (ops,)."""
        schedule = self.schedule
        limit = rule.limit[schedule.rank]
        if np.isinf(limit).all():
            return limit
        sizes = rule.activation, rule.freed_by_weight, rule.recompute_keeps, rule.offloaded
        level = memory_levels(schedule, *sizes, factors=rule.factors)
        allocated = np.zeros(len(schedule))
        if rule.gradients.any():
            gradients, allocated = gradient_levels(schedule, rule.gradients)
            level = level + gradients
        highest = np.maximum(level, levels_before(schedule, level) + allocated)
        second = np.flatnonzero(schedule.joined)
        highest[second - 1] = np.maximum(highest[second - 1], highest[second])
        slack = tolerances.SEARCHED_MEMORY * np.maximum(limit, 1.0)
        rooms: Floats = limit + slack - highest
        return rooms

    def placed(self, residency: Residency) -> Schedule:
        """Return the schedule with collectives by these decisions."""
        schedule, stages = self.schedule, self.schedule.stages
        inputs = (
            *(schedule.offsets, self._stage_of, schedule.joined, self._following, self._reduced),
            *(self._size, self._gradient, self._room, residency.ahead, residency.eager, residency.hold),
        )
        most = 2 * len(schedule) + 8 * stages
        while True:
            counts, collectives = np.zeros(schedule.ranks, np.int64), np.zeros((most, 3), np.int64)
            scratch = (
                *(np.zeros(stages, np.int64), np.zeros(stages, np.int64), np.zeros(stages, np.bool_)),
                *(np.zeros(2 * stages, np.int64), np.zeros(stages, np.int64)),
            )
            outputs = counts, collectives.reshape(-1), *scratch
            count = _PLACE_COLLECTIVES(inputs, outputs, work=len(schedule))
            if count >= 0:
                break
            most *= 2
        rank = np.repeat(np.arange(schedule.ranks), counts)
        before, kind, stage = collectives[:count].T
        inserted = ops(_KINDS[kind], stage, NO_MICROBATCH)
        return insert_collectives(schedule, rank, before, inserted)


def _following(schedule: Schedule, computes: Bools) -> Ints:
    """Return the next op of the rank that computes the same stage, or the end of the row; shape (ops,)."""
    following = np.repeat(schedule.offsets[1:], np.diff(schedule.offsets))
    positions = np.flatnonzero(computes)
    group = schedule.rank[positions].astype(np.int64) * schedule.stages + schedule.columns.stage[positions]
    order = np.argsort(group, kind="stable")
    same = group[order[1:]] == group[order[:-1]]
    following[positions[order[:-1][same]]] = positions[order[1:][same]]
    return following
