"""Why ranks idle: every idle moment has one reason, and together they add up to the idle time.

An idle gap ends when something arrives. Walked back from there, the chain behind it says what happened elsewhere at every
moment of the gap: an op was running on another rank, or a message was under way. What an op takes beyond the mean of its
kind over the stages counts as imbalance. What ops and messages take from a rank besides is overhead, on the rank itself and
where another waits for it. Copies to the host and back are reasons of their own. Before its first op a rank could not have
started earlier than the first microbatch can reach it (start-up); after its last op it has nothing to do (drain). Where a
memory limit is given and the next forward had arrived but did not fit, the limit is the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Costs
from pipeplan.errors import ShapeError
from pipeplan.model import HOST_KINDS, Floats, Ints, Kind, Timeline, among, tolerances
from pipeplan.simulation.bounds import earliest_starts
from pipeplan.simulation.chain import Chains, timed_only
from pipeplan.simulation.memory import memory_use

MOST_RANKS = 3_000
"""Ranks whose gaps are walked back: a chain goes through all of them, so pieces grow with their square, here to 2 GB."""


class Reason(IntEnum):
    """Why a rank idles; the names with ``-`` for ``_`` are the keys in reports."""

    START_UP = 0
    """nothing could have arrived yet"""
    COMPUTE = 1
    """waits for an op on another rank"""
    TRANSFER = 2
    """waits for a message that is under way"""
    IMBALANCE = 3
    """waits because an op of a slower stage takes longer than the mean"""
    MEMORY = 4
    """had a forward to do that did not fit under the memory limit"""
    DRAIN = 5
    """has done all its work"""
    OVERHEAD = 6
    """is between ops: the gap before one, or what a message takes from its rank"""
    OFFLOAD = 7
    """waits for a copy to the host, which frees its memory"""
    RELOAD = 8
    """waits for a copy back from the host"""

    @property
    def key(self) -> str:
        """Its name in reports: ``start-up``."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True, eq=False)
class IdleTimes:
    """Idle times in columns of one length, by rank and time; their sum is each rank's idle time.

    Attributes
    ----------
    rank, start, end
        Where and when.
    reason
        Codes of :class:`Reason`.
    cause
        The op that was running elsewhere or whose result was under way, or the copy, as a position in the timeline's
        compute ops and copies (see :func:`~pipeplan.simulation.chain.timed_only`); -1 for none.
    """

    rank: NDArray[np.int32]
    start: Floats
    end: Floats
    reason: NDArray[np.int8]
    cause: Ints

    def totals(self, ranks: int) -> Floats:
        """Time by rank and reason, shape (ranks, reasons)."""
        table = np.zeros((ranks, len(Reason)))
        np.add.at(table, (self.rank, self.reason), self.end - self.start)
        return table


Piece = tuple[int, float, float, Reason, int]


def idle_times(timeline: Timeline, costs: Costs, *, limit: Floats | None = None) -> IdleTimes:
    """Every idle moment of every rank with its reason, of a simulated or a measured timeline.

    Parameters
    ----------
    limit
        The limit of each rank in activations, shape (ranks,), or None: then nothing is held back by memory.

    Raises
    ------
    ShapeError
        For more than ``MOST_RANKS``.
    """
    ranks = timeline.schedule.ranks
    if ranks > MOST_RANKS:
        raise ShapeError(
            f"why ranks idle is found by going back through all of them: at most {MOST_RANKS:,} ranks are explained, "
            f"not {ranks:,}"
        )
    walker = _Walker(timed_only(timeline), costs, limit)
    pieces = [piece for rank in range(ranks) for piece in walker.rank(rank)]
    rank, start, end, reason, cause = zip(*pieces, strict=True) if pieces else ((), (), (), (), ())
    return IdleTimes(
        rank=np.array(rank, np.int32),
        start=np.array(start, np.float64),
        end=np.array(end, np.float64),
        reason=np.array(reason, np.int8),
        cause=np.array(cause, np.int64),
    )


class _Walker:
    """Cuts gaps into pieces of one reason each."""

    def __init__(self, timeline: Timeline, costs: Costs, limit: Floats | None) -> None:
        schedule = timeline.schedule
        self.timeline = timeline
        self.chains = Chains(timeline, costs)
        self.start, self.end = self.chains.start, self.chains.end
        self.taken, self.freed = self.chains.taken, self.chains.freed
        self.excess: list[float] = _excess(timeline).tolist()
        self.head: list[float] = earliest_starts(schedule.placement, costs, slices=schedule.slices).tolist()
        self.limit = limit
        self.delay = costs.transfer.time(schedule.slices)
        self.held: list[float] = memory_use(schedule, costs).activations.tolist()
        self.forward: list[bool] = (schedule.columns.kind == Kind.F).tolist()
        self.copy: list[bool] = among(schedule.columns.kind, HOST_KINDS).tolist()
        self.kind: list[int] = schedule.columns.kind.tolist()

    def rank(self, rank: int) -> list[Piece]:
        """The idle pieces of one rank, in the order of time."""
        pieces: list[Piece] = []
        clock = 0.0
        first, stop = (int(edge) for edge in self.timeline.schedule.offsets[rank : rank + 2])
        done = first
        for op in range(first, stop):
            if self.copy[op]:
                continue
            if self.start[op] > clock:
                pieces += self._gap(rank, clock, op, done, row=(first, stop))
            clock = max(clock, self.end[op])
            done = op
        last = min(self.freed[done], self.timeline.makespan) if stop > first else clock
        pieces += self._piece(rank, clock, last, Reason.OVERHEAD, done)
        pieces += self._piece(rank, max(clock, last), self.timeline.makespan, Reason.DRAIN, -1)
        return pieces

    @staticmethod
    def _piece(rank: int, begin: float, stop: float, reason: Reason, cause: int) -> list[Piece]:
        """A piece, unless it has no length."""
        return [(rank, begin, stop, reason, cause)] if stop > begin else []

    def _gap(self, rank: int, begin: float, op: int, done: int, *, row: tuple[int, int]) -> list[Piece]:
        """The pieces of the idle gap between ``done`` and ``op``: what each op loses, and waiting."""
        stop = self.start[op]
        pieces: list[Piece] = []
        if op > row[0] and (freed := min(self.freed[done], stop)) > begin:
            pieces.append((rank, begin, freed, Reason.OVERHEAD, done))
            begin = freed
        taken = min(self.taken[op], stop)
        if taken - begin <= self.chains.rounding:
            taken = begin
        pieces += self._waiting(rank, begin, taken, op, row)
        pieces += self._piece(rank, taken, stop, Reason.OVERHEAD, op)
        return pieces

    def _waiting(self, rank: int, begin: float, stop: float, op: int, row: tuple[int, int]) -> list[Piece]:
        """The pieces of the time in which a rank waits for ``op`` to be possible."""
        if stop <= begin:
            return []
        pieces: list[Piece] = []
        if op == row[0] and (head := min(self.head[rank], stop)) > begin:
            pieces.append((rank, begin, head, Reason.START_UP, -1))
            begin = head
        held_back = self._held_back(rank, begin, stop, op, row)
        pieces += self._blame(rank, begin, held_back, op)
        pieces += self._piece(rank, held_back, stop, Reason.MEMORY, -1)
        return pieces

    def _held_back(self, rank: int, begin: float, stop: float, op: int, row: tuple[int, int]) -> float:
        """When in the time before ``op`` the rank's next forward had arrived and did not fit; ``stop`` if never."""
        if self.limit is None:
            return stop
        later = next((after for after in range(op, row[1]) if self.forward[after]), op)
        level = self.held[op - 1] if op > row[0] else 0.0
        needed = self.held[later] - self.held[later - 1] if later > row[0] else self.held[later]
        if later == op or level + needed <= self.limit[rank] * (1 + tolerances.MEMORY):
            return stop
        source = self.chains.source(later)
        arrived = self.freed[source] + self.delay if source >= 0 else 0.0
        return min(max(begin, arrived), stop)

    def _blame(self, rank: int, begin: float, stop: float, op: int) -> list[Piece]:
        """What the chain behind ``op`` spent the time from ``begin`` to ``stop`` on, earliest first."""
        pieces: list[Piece] = []
        clock, rounding = stop, self.chains.rounding
        while clock - begin > rounding:
            holder = self.chains.holder(op)
            if holder < 0:
                pieces.append((rank, begin, clock, Reason.START_UP, -1))
                break
            for earliest, reason in self._steps(holder):
                since = begin if earliest - begin <= rounding else earliest
                if clock - since > rounding:
                    pieces.append((rank, since, clock, reason, holder))
                    clock = since
            op = holder
        return pieces[::-1]

    def _steps(self, holder: int) -> tuple[tuple[float, Reason], ...]:
        """When each part of what an op keeps others waiting for begins, the last part first, and why they wait."""
        if self.copy[holder]:
            reason = Reason.OFFLOAD if self.kind[holder] == Kind.OFFLOAD else Reason.RELOAD
            return (self.end[holder], Reason.TRANSFER), (self.start[holder], reason)
        return (
            (self.freed[holder], Reason.TRANSFER),
            (self.end[holder], Reason.OVERHEAD),
            (self.end[holder] - self.excess[holder], Reason.IMBALANCE),
            (self.start[holder], Reason.COMPUTE),
            (self.taken[holder], Reason.OVERHEAD),
        )


def _excess(timeline: Timeline) -> Floats:
    """How much longer than the mean of its kind over the stages each op takes, 0 for one that is shorter; shape (ops,)."""
    columns, time = timeline.schedule.columns, timeline.end - timeline.start
    time = np.where(columns.group >= 0, 0.0, time)
    cell = columns.kind.astype(np.int64) * timeline.schedule.stages + columns.stage
    size = len(Kind) * timeline.schedule.stages
    count, total = np.bincount(cell, time > 0, minlength=size), np.bincount(cell, time, minlength=size)
    means = np.divide(total, count, out=np.zeros(size), where=count > 0).reshape(len(Kind), -1)
    over_stages = means.sum(axis=1) / np.maximum((means > 0).sum(axis=1), 1)
    excess = time - over_stages[columns.kind]
    return np.where(excess > tolerances.ROUNDING * time, excess, 0.0)
