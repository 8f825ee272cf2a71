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
    """Clock that takes marks cheaply while a step runs, and returns their times afterwards."""

    def restart(self) -> None:
        """Begin a step."""

    def mark(self) -> Any:
        """Mark this moment."""

    def times(self, marks: Sequence[Any]) -> Nanoseconds:
        """Return when marks were taken since the restart, in nanoseconds of this host's monotonic clock."""


class HostClock:
    """The host's monotonic clock, for work that is done when its call returns. All processes of a host share it."""

    def restart(self) -> None:
        """Do nothing."""

    def mark(self) -> int:
        """Return this moment."""
        return time.monotonic_ns()

    def times(self, marks: Sequence[int]) -> Nanoseconds:
        """Return the marks themselves."""
        return np.array(marks, np.int64)


class DeviceClock:
    """Events in a GPU's stream, for work that the GPU does later. They are tied to the host's clock when a step starts."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Wait for the GPU and tie its time to the host's."""
        self._base = torch.cuda.Event(enable_timing=True)
        # The GPU must be idle, or the base event would be recorded later than the host's time is read.
        torch.cuda.synchronize()
        self._base.record()
        self._base.synchronize()
        self._host = time.monotonic_ns()

    def mark(self) -> Any:
        """Mark the time at which the GPU reaches this point of its stream."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def times(self, marks: Sequence[Any]) -> Nanoseconds:
        """Wait for the GPU, and return the times of the marks."""
        torch.cuda.synchronize()
        # elapsed_time gives milliseconds.
        elapsed = np.array([self._base.elapsed_time(mark) for mark in marks], np.float64)
        return self._host + (elapsed * 1e6).astype(np.int64)


def clock_for(device: torch.device) -> Clock:
    """Return the clock that times work on a device."""
    return DeviceClock() if device.type == "cuda" else HostClock()


def offset_to_first(device: torch.device, group: Any = None) -> int:
    """Return the nanoseconds to add to this rank's monotonic clock to get the first rank's. All ranks must call it.

    The offset is 0 on the first rank's host. On another host, several messages go to the first rank and back; the fastest
    one counts, and the first rank is assumed to have answered halfway (Cristian, "Probabilistic clock synchronization",
    Distributed Computing 3, 1989). The error is at most half of that round trip.
    """
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    boots: list[Any] = [None] * ranks
    dist.all_gather_object(boots, _boot(), group=group)
    offset = 0
    for other in range(1, ranks):
        # Processes of one host share its monotonic clock.
        if boots[other] == boots[0]:
            continue
        if rank == 0:
            _answer(other, device, group)
        elif rank == other:
            offset = _ask(device, group)
    return offset


def _boot() -> str:
    """Return an identifier of the running host."""
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
        # Length of the round trip, and the offset if the answer was given halfway.
        rounds.append((answered - sent, theirs - (sent + answered) // 2))
    return min(rounds)[1]
