"""What the ranks hold while a schedule runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeplan.model.arrays import Floats
from pipeplan.model.schedule import Schedule


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """How much each rank holds after each op, in activations and in bytes.

    A forward's (and a recompute's) change takes effect at its start, every other op's at its end.

    Attributes
    ----------
    schedule
        Whose ops these are.
    activations
        Level after each op, shape (ops,); 1 is what all the chunks of a rank hold for one microbatch.
    bytes
        The same in bytes without the static ones, shape (ops,); None where nobody gave bytes.
    static
        Bytes each rank holds throughout: parameters, gradients, optimizer state of all its copies, shape (ranks,).
    """

    schedule: Schedule
    activations: Floats
    bytes: Floats | None
    static: Floats

    @cached_property
    def peak_activation(self) -> Floats:
        """The most activations each rank holds at once, shape (ranks,)."""
        return self._peaks(self.activations)

    @cached_property
    def peak_bytes(self) -> Floats | None:
        """The most bytes each rank holds at once, static ones included, shape (ranks,)."""
        return None if self.bytes is None else self._peaks(self.bytes) + self.static

    def _peaks(self, levels: Floats) -> Floats:
        offsets = self.schedule.offsets
        filled = np.flatnonzero(np.diff(offsets))
        peaks = np.zeros(self.schedule.ranks)
        if len(filled):
            peaks[filled] = np.maximum(np.maximum.reduceat(levels, offsets[filled]), 0.0)
        return peaks
