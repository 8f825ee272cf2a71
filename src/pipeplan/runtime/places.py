"""Where every rank is, readable from outside while it runs, so that a rank that dies or hangs can be named with its op."""

from __future__ import annotations

import mmap
import struct
import time
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from pipeplan.model import Schedule, format_cells


class Phase(IntEnum):
    """What a rank is doing."""

    STARTING = 0
    WAITING = 1
    COMPUTING = 2
    BETWEEN_STEPS = 3
    DONE = 4


_PLACE = struct.Struct("<qiii")
_SLOT = 64
"""Bytes per rank: a cache line of its own."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank is: since when (its host's monotonic clock, ns), in which step, at which cell of its row."""

    since: int
    step: int
    position: int
    phase: Phase

    def describe(self, schedule: Schedule, rank: int) -> str:
        """``rank 1, step 0, op 3 (1F1), computing``; the op in the schedule's notation."""
        if self.phase == Phase.STARTING:
            return f"rank {rank}, starting up"
        if self.phase == Phase.DONE:
            return f"rank {rank}, done"
        cells = format_cells(schedule[rank])
        if self.phase == Phase.BETWEEN_STEPS or self.position >= len(cells):
            return f"rank {rank}, at the end of step {self.step}"
        doing = "waiting for its turn or a message" if self.phase == Phase.WAITING else "computing"
        return f"rank {rank}, step {self.step}, op {self.position} ({cells[self.position]}), {doing}"


class Places:
    """Where every rank is: a slot per rank, in memory or in a file that the ranks of a host share with their launcher."""

    def __init__(self, ranks: int, path: Path | None = None) -> None:
        self._ranks = ranks
        self._memory: mmap.mmap | bytearray = bytearray(_SLOT * ranks)
        if path is not None:
            if not path.exists():
                path.write_bytes(self._memory)
            with path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), _SLOT * ranks)

    def tell(self, rank: int, step: int, position: int, phase: Phase) -> None:
        """Record where a rank is now."""
        _PLACE.pack_into(self._memory, _SLOT * rank, time.monotonic_ns(), step, position, phase)

    def of(self, rank: int) -> Place:
        """Where a rank last said it was."""
        since, step, position, phase = _PLACE.unpack_from(self._memory, _SLOT * rank)
        return Place(since, step, position, Phase(phase))

    def all(self) -> tuple[Place, ...]:
        """Where all ranks are."""
        return tuple(self.of(rank) for rank in range(self._ranks))

    def stalled(self, timeout: float) -> bool:
        """Whether no rank has moved for that many seconds."""
        return time.monotonic_ns() - max(place.since for place in self.all()) > timeout * 1e9

    def rank_stalled(self, rank: int, timeout: float) -> bool:
        """Whether one rank has not moved for that many seconds."""
        return time.monotonic_ns() - self.of(rank).since > timeout * 1e9
