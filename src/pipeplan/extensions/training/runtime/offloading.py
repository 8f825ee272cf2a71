"""Offloading: copies of activations to the host's memory between a forward and its backward, and the link for them.

Copies overlap compute, one after the other in each direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch import Tensor

from pipeplan.extensions.training.runtime.saved_tensors import Piece, SavedTensors, Staying

Mark = Callable[[], Any]
"""Function that takes a mark of a :class:`~pipeplan.extensions.training.runtime.clocks.Clock`."""

Moves = Sequence[tuple[Tensor, Tensor]]
"""Pairs of destination and source."""


class Copy(Protocol):
    """A running copy between a device and its host."""

    def wait(self) -> None:
        """Make all further computation of the device wait for the copy."""

    def marks(self) -> tuple[Any, Any]:
        """Return marks of the copy's beginning and end; call :meth:`wait` first."""


class HostLink(Protocol):
    """Link between a device and its host. A copy begins when all earlier computation of the device is done."""

    def host_bytes(self, size: int) -> Tensor:
        """Return uninitialized host memory, shape (size,)."""

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """Copy from the device, after all earlier copies in this direction."""

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """Copy to the device, after all earlier copies in this direction."""


def host_link(device: torch.device) -> HostLink:
    """Return the link of a device."""
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
    """Link of a GPU: a stream in each direction, and pinned memory."""

    def __init__(self, device: torch.device) -> None:
        self._out, self._back = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def host_bytes(self, size: int) -> Tensor:
        """Return pinned memory, so that copies overlap compute."""
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """Copy from the device. The caller keeps the source until it has waited for the copy."""
        return self._copied(self._out, moves, mark)

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """Copy to the device, after everything that it still does in that memory."""
        return self._copied(self._back, moves, mark)

    def _copied(self, stream: torch.cuda.Stream, moves: Moves, mark: Mark) -> Copy:
        # The data must be computed, and the destination no longer be in use, before the copy begins.
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
    """Link for a CPU, where device and host are the same: a thread in each direction copies within memory."""

    def __init__(self) -> None:
        self._out, self._back = (ThreadPoolExecutor(max_workers=1) for _ in range(2))

    def host_bytes(self, size: int) -> Tensor:
        """Return ordinary memory."""
        return torch.empty(size, dtype=torch.uint8)

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """Copy after the copy before it."""
        return _ThreadCopy(self._out.submit(_copy, moves, mark))

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """Copy after the copy before it."""
        return _ThreadCopy(self._back.submit(_copy, moves, mark))


def _copy(moves: Moves, mark: Mark) -> tuple[Any, Any]:
    begin = mark()
    for to, source in moves:
        to.copy_(source)
    return begin, mark()


Key = tuple[int, int]
"""A stage and a microbatch."""


class Offloading:
    """A rank's copies to the host and back.

    A copy to the host begins when its forward has ended and all earlier copies of the row have begun; :meth:`offload` waits
    for it and frees the memory of the device. A copy back begins at :meth:`reload`, which allocates the memory, and
    :meth:`arrive` waits for it::

        F ......... OFFLOAD ......... RELOAD ......... B
          |==copy==| free             | ==copy==     | arrive

    Parameters
    ----------
    order
        Stages and microbatches to copy, in the order of the row's OFFLOADs.
    link
        Link between the device and its host.
    """

    def __init__(self, order: Sequence[Key], link: HostLink) -> None:
        self._order, self._link = order, link
        self._leaving = frozenset(order)
        self.clear()

    def clear(self) -> None:
        """Reset the state for a new step."""
        self._saved: dict[Key, SavedTensors] = {}
        self._out: dict[Key, Copy] = {}
        self._back: dict[Key, Copy] = {}
        self._pieces: dict[Key, list[Piece]] = {}
        self._arriving: dict[Key, WeakSet[Piece]] = {}
        self._ended: set[Key] = set()
        self._begun = 0

    @property
    def device_bytes(self) -> int:
        """Return the bytes to copy in this step that are on the device now."""
        return sum(saved.device_bytes for saved in self._saved.values())

    def holds(self, key: Key, tensor: torch.Tensor) -> bool:
        """Return whether a tensor's bytes are copied with a microbatch."""
        return self._saved[key].holds(tensor)

    @contextmanager
    def saving(self, key: Key, stays: Staying) -> Iterator[None]:
        """Record the tensors that the forward, or the loss, in the block saves."""
        if key not in self._saved:
            self._saved[key] = SavedTensors(stays)
        with self._saved[key].saving():
            yield

    def forward_ended(self, key: Key, mark: Mark) -> None:
        """Begin all copies whose turn it is now."""
        if key not in self._leaving:
            return
        self._ended.add(key)
        while self._begun < len(self._order) and self._order[self._begun] in self._ended:
            self._begin(self._order[self._begun], mark)
            self._begun += 1

    def _begin(self, key: Key, mark: Mark) -> None:
        pieces = self._saved[key].pieces if key in self._saved else []
        for piece in pieces:
            piece.host = self._link.host_bytes(piece.bytes)
        self._pieces[key] = pieces
        self._out[key] = self._link.leave([(_of(piece.host), _of(piece.device)) for piece in pieces], mark)

    def offload(self, key: Key) -> Copy:
        """Run OFFLOAD: wait for the copy, and free the memory of the device."""
        copy = self._out.pop(key)
        copy.wait()
        for piece in self._pieces[key]:
            piece.leave()
        return copy

    def reload(self, key: Key, mark: Mark) -> Copy:
        """Run RELOAD: allocate memory on the device and begin the copy, without waiting for it."""
        pieces = self._pieces.pop(key)
        for piece in pieces:
            piece.device = torch.empty(piece.bytes, dtype=torch.uint8, device=piece.place)
        moves = [(_of(piece.device), _of(piece.host)) for piece in pieces]
        # Only autograd's graph keeps the pieces alive: what its backward does not need is freed at once.
        self._arriving[key] = WeakSet(pieces)
        self._back[key] = copy = self._link.come_back(moves, mark)
        return copy

    def arrive(self, key: Key) -> None:
        """Wait for the copy back before a backward, and free the host's memory."""
        copy = self._back.pop(key, None)
        if copy is None:
            return
        copy.wait()
        for piece in self._arriving.pop(key):
            piece.host = None


def _of(bytes_: torch.Tensor | None) -> torch.Tensor:
    assert bytes_ is not None
    return bytes_
