"""What a rank copies to the host's memory between a forward and its backward, as its row says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakSet

import torch

from pipeplan.runtime.host_link import Copy, HostLink, Mark
from pipeplan.runtime.saved_tensors import Piece, SavedTensors, Staying

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
        """Before a step: nothing has left."""
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
        """Around a forward, and around its loss."""
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
        """Before a backward: what was reloaded is there, and gone from the host."""
        copy = self._back.pop(key, None)
        if copy is None:
            return
        copy.wait()
        for piece in self._arriving.pop(key):
            piece.host = None


def _of(bytes_: torch.Tensor | None) -> torch.Tensor:
    assert bytes_ is not None
    return bytes_
