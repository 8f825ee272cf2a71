"""Idle time piece by piece: a walk along the chain behind what a rank waits for."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.model import HOST_KINDS, Floats, Kind, Schedule
from pipeplan.simulation.chain import Chains
from pipeplan.simulation.idle_pieces import Piece
from pipeplan.simulation.reason import Reason


class Walk:
    """Says what chains spent time on, one op after the other.

    Parameters
    ----------
    excess
        How much longer each op takes than those of its kind do, shape (ops,).
    """

    def __init__(self, chains: Chains, schedule: Schedule, excess: Floats) -> None:
        self.chains = chains
        self._holder: list[int] = chains.holders.tolist()
        self._excess: list[float] = excess.tolist()
        self._kind: list[int] = schedule.columns.kind.tolist()

    def back(self, rank: int, begin: float, stop: float, op: int) -> Iterator[Piece]:
        """The pieces of the time from ``begin`` to ``stop`` that the chain behind ``op`` is made of, latest first."""
        clock, rounding = stop, self.chains.rounding
        while clock - begin > rounding:
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
        """When each part of what an op keeps others waiting for begins, the last part first, and why they wait."""
        chains, kind = self.chains, self._kind[holder]
        if kind in HOST_KINDS:
            reason = Reason.OFFLOAD if kind == Kind.OFFLOAD else Reason.RELOAD
            return (chains.end[holder], Reason.TRANSFER), (chains.start[holder], reason)
        return (
            (chains.freed[holder], Reason.TRANSFER),
            (chains.end[holder], Reason.OVERHEAD),
            (chains.end[holder] - self._excess[holder], Reason.IMBALANCE),
            (chains.start[holder], Reason.COMPUTE),
            (chains.taken[holder], Reason.OVERHEAD),
        )
