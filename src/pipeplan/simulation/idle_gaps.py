"""Idle gaps of every rank, cut into stretches of one reason each, and the walk along the chain that causes a wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.model import (
    BESIDE_KINDS,
    Floats,
    Ints,
    Kind,
    Reason,
    Schedule,
    Timeline,
    among,
    tolerances,
)
from pipeplan.simulation.bounds import earliest_starts
from pipeplan.simulation.critical import Chains
from pipeplan.simulation.simulator import memory_use

WAITS = -1
"""Code in place of a reason: the chain that leads to an op, which replaces the cause, determines the reasons."""

Piece = tuple[int, float, float, int, int]
"""Rank, start, end, the code of the reason, and the cause."""

_COLUMNS = np.dtype([("rank", np.int32), ("start", float), ("end", float), ("reason", np.int8), ("cause", np.int64)])


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of idle time in columns of equal length, by rank and time.

    Attributes
    ----------
    rank, start, end
        Rank and times of each piece.
    reason
        Codes of :class:`~pipeplan.model.Reason`; in the stretches of a gap also -1, if the chain that leads to an
        op determines the reasons.
    cause
        The op that ran on another rank or whose result was under way, or the copy; in the stretches of a gap, the op that
        the rank waits for. A position in the timeline's timed ops (``timed_only``); -1 for
        none.
    """

    rank: NDArray[np.int32]
    start: Floats
    end: Floats
    reason: NDArray[np.int8]
    cause: Ints

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> Pieces:
        """Return pieces as columns, in their order."""
        table = np.fromiter(pieces, _COLUMNS)
        return cls(**{name: np.ascontiguousarray(table[name]) for name in _COLUMNS.fields or ()})

    def __len__(self) -> int:
        return len(self.rank)


class GapWalker:
    """Cut the gaps of a rank into stretches of one reason each, or of waiting for one op, without looking at other ranks."""

    def __init__(self, timeline: Timeline, chains: Chains, costs: Costs, limit: Floats | None) -> None:
        schedule = timeline.schedule
        self.chains = chains
        self.start, self.end = chains.start, chains.end
        self.taken, self.freed = chains.taken, chains.freed
        self.makespan = timeline.makespan
        self.offsets: list[int] = schedule.offsets.tolist()
        self.head: list[float] = earliest_starts(schedule.placement, costs, slices=schedule.slices).tolist()
        self.beside: list[bool] = among(schedule.columns.kind, BESIDE_KINDS).tolist()
        self.reduced = _last_reductions(schedule)
        self.limit: list[float] | None = None if limit is None else np.asarray(limit).tolist()
        self.delay: list[float] = costs.delays(schedule).tolist()
        if limit is not None:
            self.held: list[float] = memory_use(schedule, costs).activations.tolist()
            self.forward = _next_forwards(schedule)

    def rank(self, rank: int) -> list[Piece]:
        """Return the idle stretches of one rank, in the order of time."""
        stretches: list[Piece] = []
        clock = 0.0
        first, stop = self.offsets[rank : rank + 2]
        # The row of the gaps begins with the first op that occupies the rank.
        while first < stop and self.beside[first]:
            first += 1
        done = first
        for op in range(first, stop):
            # Copies and collectives overlap compute: they neither fill nor end a gap.
            if self.beside[op]:
                continue
            if self.start[op] > clock:
                stretches += self._gap(rank, clock, op, done, row=(first, stop))
            clock = max(clock, self.end[op])
            done = op
        last = min(self.freed[done], self.makespan) if stop > first else clock
        stretches += _stretch(rank, clock, last, Reason.OVERHEAD, done)
        clock = max(clock, last)
        if (reduced := self.reduced.get(rank)) is not None:
            stretches += _stretch(rank, clock, self.end[reduced], Reason.REDUCE, reduced)
            clock = max(clock, self.end[reduced])
        stretches += _stretch(rank, clock, self.makespan, Reason.DRAIN, -1)
        return stretches

    def _gap(self, rank: int, begin: float, op: int, done: int, *, row: tuple[int, int]) -> list[Piece]:
        """Return the stretches of the gap between two ops: overhead after the first, waiting, overhead before the second."""
        stop = self.start[op]
        stretches: list[Piece] = []
        if op > row[0] and (freed := min(self.freed[done], stop)) > begin:
            stretches.append((rank, begin, freed, Reason.OVERHEAD, done))
            begin = freed
        taken = min(self.taken[op], stop)
        if taken - begin <= self.chains.rounding:
            taken = begin
        stretches += self._waiting(rank, begin, taken, op, row)
        return stretches + _stretch(rank, taken, stop, Reason.OVERHEAD, op)

    def _waiting(self, rank: int, begin: float, stop: float, op: int, row: tuple[int, int]) -> list[Piece]:
        """Return the stretches of the time in which a rank waits until ``op`` can start."""
        if stop <= begin:
            return []
        stretches: list[Piece] = []
        if op == row[0] and (head := min(self.head[rank], stop)) > begin:
            stretches.append((rank, begin, head, Reason.START_UP, -1))
            begin = head
        held_back = self._held_back(rank, begin, stop, op, row)
        stretches += _stretch(rank, begin, held_back, WAITS, op)
        return stretches + _stretch(rank, held_back, stop, Reason.MEMORY, -1)

    def _held_back(self, rank: int, begin: float, stop: float, op: int, row: tuple[int, int]) -> float:
        """Return the time before ``op`` from which the next forward had arrived but did not fit; ``stop`` if none."""
        if self.limit is None:
            return stop
        later = self.forward[op] if self.forward[op] < row[1] else op
        # Memory held before the gap, and what the next forward would add.
        level = self.held[op - 1] if op > row[0] else 0.0
        needed = self.held[later] - self.held[later - 1] if later > row[0] else self.held[later]
        if later == op or level + needed <= self.limit[rank] * (1 + tolerances.MEMORY):
            return stop
        source = int(self.chains.sources[later])
        arrived = self.chains.left[source] + self.delay[source] if source >= 0 else 0.0
        return min(max(begin, arrived), stop)


def _stretch(rank: int, begin: float, stop: float, reason: int, op: int) -> list[Piece]:
    """Return a list of one stretch, empty if it has no length."""
    return [(rank, begin, stop, reason, op)] if stop > begin else []


def _next_forwards(schedule: Schedule) -> list[int]:
    """Return the first forward at or after each op, on its rank or a later one; the number of ops for none."""
    forwards = np.append(schedule.where(Kind.F), len(schedule))
    next_ones: list[int] = forwards[np.searchsorted(forwards, np.arange(len(schedule)))].tolist()
    return next_ones


def _last_reductions(schedule: Schedule) -> dict[int, int]:
    """Return the last REDUCE_GRAD of each rank that has one."""
    reductions = schedule.where(Kind.REDUCE_GRAD)
    return dict(zip(schedule.rank[reductions].tolist(), reductions.tolist(), strict=True))


_BESIDE: dict[int, Reason] = {
    Kind.OFFLOAD: Reason.OFFLOAD,
    Kind.RELOAD: Reason.RELOAD,
    Kind.UNSHARD: Reason.UNSHARD,
    Kind.REDUCE_GRAD: Reason.REDUCE,
}
"""Reason of a wait for an op that runs beside the computation, by its kind."""


class Walk:
    """Walk along the chain that causes a wait, one op after the other, and yield its pieces.

    Parameters
    ----------
    chains, schedule
        The timeline's chains, and its schedule.
    excess
        Time of each op beyond the mean of its kind, shape (ops,).
    """

    def __init__(self, chains: Chains, schedule: Schedule, excess: Floats) -> None:
        self.chains = chains
        self._holder: list[int] = chains.holders.tolist()
        self._excess: list[float] = excess.tolist()
        self._kind: list[int] = schedule.columns.kind.tolist()

    def back(self, rank: int, begin: float, stop: float, op: int) -> Iterator[Piece]:
        """Yield the pieces of the time from ``begin`` to ``stop`` along the chain that leads to ``op``, latest first."""
        clock, rounding = stop, self.chains.rounding
        while clock - begin > rounding:
            # Before the first op of the chain, nothing could have arrived.
            holder = self._holder[op]
            if holder < 0:
                yield rank, begin, clock, Reason.START_UP, -1
                return
            for earliest, reason in self._steps(holder):
                since = begin if earliest - begin <= rounding else earliest
                if clock - since > rounding:
                    yield rank, since, clock, reason, holder
                    clock = since
            op = holder

    def _steps(self, holder: int) -> tuple[tuple[float, Reason], ...]:
        """Return beginning and reason of each part of the time that an op keeps others waiting, the last part first."""
        chains, kind = self.chains, self._kind[holder]
        if (reason := _BESIDE.get(kind)) is not None:
            return (chains.end[holder], Reason.TRANSFER), (chains.start[holder], reason)
        return (
            (chains.left[holder], Reason.TRANSFER),
            (chains.freed[holder], Reason.QUEUE),
            (chains.end[holder], Reason.OVERHEAD),
            (chains.end[holder] - self._excess[holder], Reason.IMBALANCE),
            (chains.start[holder], Reason.COMPUTE),
            (chains.taken[holder], Reason.OVERHEAD),
        )
