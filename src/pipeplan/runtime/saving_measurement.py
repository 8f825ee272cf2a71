"""Measures one stage where it keeps less: how long it takes to compute it again, and to copy what it made to the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from pipeplan.runtime.clocks import Clock
from pipeplan.runtime.host_link import host_link
from pipeplan.runtime.offloading import Offloading
from pipeplan.runtime.recomputation import Recomputation
from pipeplan.runtime.saved_tensors import Staying

_KEY = (0, 0)

Forward = Callable[[], tuple[Tensor, Tensor]]
"""A fresh input, and the output of a forward, or its loss."""


class SavingMeasurement:
    """One stage's R, OFFLOAD and RELOAD, as the runtime does them.

    Parameters
    ----------
    module
        The stage.
    forward
        Of it.
    clock
        By which to take times.
    device
        Where it is.
    first
        Whether it is the model's first: then its input is of the batch, and stays.
    """

    def __init__(self, module: nn.Module, forward: Forward, clock: Clock, device: torch.device, *, first: bool) -> None:
        self._forward, self._clock, self._first = forward, clock, first
        self._recomputation, self._staying = Recomputation(module, device), Staying(module, device)
        self._link = host_link(device)

    def recompute(self) -> float:
        """Milliseconds of an R."""
        with self._recomputation.first(0):
            self._forward()
        begin = self._clock.mark()
        with self._recomputation.again(0):
            self._forward()
        return float(np.diff(self._clock.times([begin, self._clock.mark()]))[0]) / 1e6

    def copies(self) -> tuple[float, float]:
        """Milliseconds of an OFFLOAD's copy and of a RELOAD's."""
        offloading = Offloading([_KEY], self._link)
        passed = self._saved(offloading)
        offloading.forward_ended(_KEY, self._clock.mark)
        out = offloading.offload(_KEY)
        back = offloading.reload(_KEY, self._clock.mark)
        offloading.arrive(_KEY)
        times = self._clock.times([*out.marks(), *back.marks()])
        del passed
        leaving, _, coming = (np.diff(times) / 1e6).tolist()
        return leaving, coming

    def freed_bytes(self) -> int:
        """What OFFLOAD frees: what is copied, and of input and output what no backward needs."""
        offloading = Offloading([_KEY], self._link)
        inputs, output = self._saved(offloading)
        ends = [output] if self._first else [inputs, output]
        beside = sum(end.nbytes for end in ends if not offloading.holds(_KEY, end))
        stays = inputs.nbytes if self._first and offloading.holds(_KEY, inputs) else 0
        return offloading.device_bytes + beside - stays

    def _saved(self, offloading: Offloading) -> tuple[Tensor, Tensor]:
        self._staying.before(())
        with offloading.saving(_KEY, self._staying):
            return self._forward()
