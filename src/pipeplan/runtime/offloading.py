"""What a rank copies to the host's memory between a forward and its backward, and the link that carries it.

Copies run beside compute, one after the other in each direction.
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

from pipeplan.runtime.saved_tensors import Piece, SavedTensors, Staying

Mark = Callable[[], Any]
"""Takes the time; see :class:`~pipeplan.runtime.clocks.Clock`."""

Moves = Sequence[tuple[Tensor, Tensor]]
"""Where bytes go, and where they are."""


class Copy(Protocol):
    """A copy between a device and its host that is on its way."""

    def wait(self) -> None:
        """Have what is computed from here on find the copy done."""

    def marks(self) -> tuple[Any, Any]:
        """Return when the copy began and ended; known once it was waited for."""


class HostLink(Protocol):
    """Copies what is there when what was asked for so far is computed."""

    def host_bytes(self, size: int) -> Tensor:
        """Return room in the host's memory, shape (size,)."""

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """Copy from the device, behind all that left before."""

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """Copy to the device, behind all that came back before."""


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
        """Copy behind what the device still does in the memory that was given."""
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
        """Return memory like any other."""
        return torch.empty(size, dtype=torch.uint8)

    def leave(self, moves: Moves, mark: Mark) -> Copy:
        """Copy when the copy before it is done."""
        return _ThreadCopy(self._out.submit(_copy, moves, mark))

    def come_back(self, moves: Moves, mark: Mark) -> Copy:
        """Copy when the copy before it is done."""
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

    A copy to the host begins when its forward has ended and the copies before it, in the order of the row, have begun; what
    it copies is free on the device once :meth:`offload` has waited for it. A copy back begins at :meth:`reload`, which takes
    the memory, and is waited for by :meth:`arrive`.

    Parameters
    ----------
    order
        The stages and microbatches that leave, in the order of the row's OFFLOADs.
    link
        Between the device and its host.
    """

    def __init__(self, order: Sequence[Key], link: HostLink) -> None:
        self._order, self._link = order, link
        self._leaving = frozenset(order)
        self.clear()

    def clear(self) -> None:
        """Begin a step: nothing has left."""
        self._saved: dict[Key, SavedTensors] = {}
        self._out: dict[Key, Copy] = {}
        self._back: dict[Key, Copy] = {}
        self._pieces: dict[Key, list[Piece]] = {}
        self._arriving: dict[Key, WeakSet[Piece]] = {}
        self._ended: set[Key] = set()
        self._begun = 0

    @property
    def device_bytes(self) -> int:
        """How much of what leaves in this step is on the device now."""
        return sum(saved.device_bytes for saved in self._saved.values())

    def holds(self, key: Key, tensor: torch.Tensor) -> bool:
        """Whether a tensor's bytes leave with a microbatch."""
        return self._saved[key].holds(tensor)

    @contextmanager
    def saving(self, key: Key, stays: Staying) -> Iterator[None]:
        """Save the tensors of the forward, or the loss, in the block."""
        if key not in self._saved:
            self._saved[key] = SavedTensors(stays)
        with self._saved[key].saving():
            yield

    def forward_ended(self, key: Key, mark: Mark) -> None:
        """Begin the copies whose turn it is."""
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
        """OFFLOAD: the device goes on when the copy is done, and has its memory back."""
        copy = self._out.pop(key)
        copy.wait()
        for piece in self._pieces[key]:
            piece.leave()
        return copy

    def reload(self, key: Key, mark: Mark) -> Copy:
        """RELOAD: the memory is taken, the copy begins, and the device goes on."""
        pieces = self._pieces.pop(key)
        for piece in pieces:
            piece.device = torch.empty(piece.bytes, dtype=torch.uint8, device=piece.place)
        moves = [(_of(piece.device), _of(piece.host)) for piece in pieces]
        self._arriving[key] = WeakSet(pieces)
        self._back[key] = copy = self._link.come_back(moves, mark)
        return copy

    def arrive(self, key: Key) -> None:
        """Wait, before a backward, until what was reloaded is there, and free it on the host."""
        copy = self._back.pop(key, None)
        if copy is None:
            return
        copy.wait()
        for piece in self._arriving.pop(key):
            piece.host = None


def _of(bytes_: torch.Tensor | None) -> torch.Tensor:
    assert bytes_ is not None
    return bytes_
