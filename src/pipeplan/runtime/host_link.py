"""The link between a device and its host's memory: copies of bytes beside compute, one after the other each way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

Mark = Callable[[], Any]
"""Takes the time; see :class:`~pipeplan.runtime.clocks.Clock`."""

Moves = Sequence[tuple[Tensor, Tensor]]
"""Where bytes go, and where they are."""


class Copy(Protocol):
    """A copy on its way."""

    def wait(self) -> None:
        """What is computed from here on finds it done."""

    def marks(self) -> tuple[Any, Any]:
        """When it began and ended; known once it was waited for."""


class HostLink(Protocol):
    """Copies what is there when what was asked for so far is computed."""

    def host_bytes(self, size: int) -> Tensor:
        """Room in the host's memory, shape (size,)."""

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """From the device, behind all that left before."""

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """To the device, behind all that came back before."""


def host_link(device: torch.device) -> HostLink:
    """The link of a device."""
    return StreamLink(device) if device.type == "cuda" else ThreadLink()


@dataclass(frozen=True, slots=True)
class _StreamCopy:
    done: torch.cuda.Event
    times: tuple[Any, Any]

    def wait(self) -> None:
        torch.cuda.current_stream().wait_event(self.done)

    def marks(self) -> tuple[Any, Any]:
        return self.times


class StreamLink:
    """A GPU's: a stream in each direction, and pinned memory."""

    def __init__(self, device: torch.device) -> None:
        self._out, self._back = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def host_bytes(self, size: int) -> Tensor:
        """Pinned, so that the copy runs beside compute."""
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """The source stays until the copy was waited for, so that nothing takes its place."""
        return self._copied(self._out, moves, mark)

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """Behind what the device still does in the memory that was given."""
        return self._copied(self._back, moves, mark)

    def _copied(self, stream: torch.cuda.Stream, moves: Moves, mark: Mark) -> Copy:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            begin = mark()
            for to, source in moves:
                to.copy_(source, non_blocking=True)
            end = mark()
            return _StreamCopy(stream.record_event(), (begin, end))


@dataclass(frozen=True, slots=True)
class _ThreadCopy:
    times: Future[tuple[Any, Any]]

    def wait(self) -> None:
        self.times.result()

    def marks(self) -> tuple[Any, Any]:
        return self.times.result()


class ThreadLink:
    """Stands in for one where device and host are the same: a thread in each direction that copies in memory."""

    def __init__(self) -> None:
        self._out, self._back = (ThreadPoolExecutor(max_workers=1) for _ in range(2))

    def host_bytes(self, size: int) -> Tensor:
        """Memory like any other."""
        return torch.empty(size, dtype=torch.uint8)

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """Begins when the copy before it is done."""
        return _ThreadCopy(self._out.submit(_copy, moves, mark))

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """Begins when the copy before it is done."""
        return _ThreadCopy(self._back.submit(_copy, moves, mark))


def _copy(moves: Moves, mark: Mark) -> tuple[Any, Any]:
    begin = mark()
    for to, source in moves:
        to.copy_(source)
    return begin, mark()
