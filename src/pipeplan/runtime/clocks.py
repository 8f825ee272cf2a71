"""One clock for all ranks: marks on the host or the GPU, and the offset between hosts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

Nanoseconds = NDArray[np.int64]

ROUNDS = 25
"""Messages exchanged with each rank on another host; the fastest round trip counts."""


class Clock(Protocol):
    """Takes marks cheaply while a step runs, and says afterwards when they were taken."""

    def restart(self) -> None:
        """Begin a step."""

    def mark(self) -> Any:
        """Mark this moment."""

    def times(self, marks: Sequence[Any]) -> Nanoseconds:
        """Return when marks were taken since the restart, in nanoseconds of this host's monotonic clock."""


class HostClock:
    """For work that is done when the call returns: the host's monotonic clock, one for all processes of a host."""

    def restart(self) -> None:
        """Do nothing."""

    def mark(self) -> int:
        """Return this moment."""
        return time.monotonic_ns()

    def times(self, marks: Sequence[int]) -> Nanoseconds:
        """Return the marks themselves."""
        return np.array(marks, np.int64)


class DeviceClock:
    """For work that a GPU does later: events in its stream, tied to the host's clock at the step's start."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Wait for the GPU and tie its time to the host's."""
        self._base = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        self._base.record()
        self._base.synchronize()
        self._host = time.monotonic_ns()

    def mark(self) -> Any:
        """Mark the moment at which the GPU gets here."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def times(self, marks: Sequence[Any]) -> Nanoseconds:
        """Wait for the GPU, and return the times of the marks."""
        torch.cuda.synchronize()
        elapsed = np.array([self._base.elapsed_time(mark) for mark in marks], np.float64)
        return self._host + (elapsed * 1e6).astype(np.int64)


def clock_for(device: torch.device) -> Clock:
    """The clock by which to time work on a device."""
    return DeviceClock() if device.type == "cuda" else HostClock()


def offset_to_first(device: torch.device, group: Any = None) -> int:
    """Nanoseconds to add to this rank's monotonic clock to get the first rank's. All ranks of the group call it together.

    0 on the first rank's host, which has the same clock. Elsewhere, several messages go to the first rank and back; the
    fastest counts, and its answer is assumed to have been given halfway (Cristian: Probabilistic clock synchronization,
    1989). The error is at most half that round trip.
    """
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    boots: list[Any] = [None] * ranks
    dist.all_gather_object(boots, _boot(), group=group)
    offset = 0
    for other in range(1, ranks):
        if boots[other] == boots[0]:
            continue
        if rank == 0:
            _answer(other, device, group)
        elif rank == other:
            offset = _ask(device, group)
    return offset


def _boot() -> str:
    """What tells one running host from another."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text() if path.exists() else str(time.get_clock_info("monotonic"))


def _answer(other: int, device: torch.device, group: Any) -> None:
    now = torch.zeros(1, dtype=torch.int64, device=device)
    for _ in range(ROUNDS):
        dist.recv(now, group_src=other, group=group)
        now.fill_(time.monotonic_ns())
        dist.send(now, group_dst=other, group=group)


def _ask(device: torch.device, group: Any) -> int:
    answer = torch.zeros(1, dtype=torch.int64, device=device)
    rounds: list[tuple[int, int]] = []
    for _ in range(ROUNDS):
        sent = time.monotonic_ns()
        dist.send(answer, group_dst=0, group=group)
        dist.recv(answer, group_src=0, group=group)
        theirs = int(answer.item())
        answered = time.monotonic_ns()
        rounds.append((answered - sent, theirs - (sent + answered) // 2))
    return min(rounds)[1]
