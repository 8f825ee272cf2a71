"""Running a forward a second time as it ran the first time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Recomputation:
    """The state that a stage needs to run a forward again: the random numbers of the first time, its buffers left alone.

    Parameters
    ----------
    module
        The stage.
    device
        Where it is.
    """

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self._module, self._device = module, device
        self._random: dict[int, tuple[Tensor, Tensor | None]] = {}
        self._moving: list[Tensor] | None = None

    def clear(self) -> None:
        """Forget the forwards of a step that was not finished."""
        self._random.clear()

    def waits(self, microbatch: int) -> bool:
        """Whether its forward ran once, and will again."""
        return microbatch in self._random

    @contextmanager
    def first(self, microbatch: int) -> Iterator[None]:
        """Run the first forward in the block: nothing is kept for a backward but the state of the random numbers."""
        self._random[microbatch] = torch.get_rng_state(), self._device_random()
        before = None if self._moving is not None else [buffer.detach().clone() for buffer in self._module.buffers()]
        with forgetting():
            yield
        if before is not None:
            pairs = zip(self._module.buffers(), before, strict=True)
            self._moving = [buffer for buffer, old in pairs if not torch.equal(buffer, old)]

    @contextmanager
    def again(self, microbatch: int) -> Iterator[None]:
        """Run the second forward and its loss in the block.

        The same random numbers are drawn. Buffers that a forward moves (running means, counters) have seen the microbatch
        already, and are put back.
        """
        moving = self._moving or []
        kept = [(buffer.detach().clone(), buffer._version) for buffer in moving]
        host, device = self._random.pop(microbatch)
        with torch.random.fork_rng([] if device is None else [self._device], device_type=self._device.type):
            torch.set_rng_state(host)
            if device is not None:
                torch.get_device_module(self._device).set_rng_state(device, self._device)
            yield
        with torch.no_grad():
            for buffer, (before, version) in zip(moving, kept, strict=True):
                # What a kernel moves without telling autograd (batch norm) is put back so, or the backward would refuse.
                (buffer.data if buffer._version == version else buffer).copy_(before)

    def _device_random(self) -> Tensor | None:
        if self._device.type == "cpu":
            return None
        state: Tensor = torch.get_device_module(self._device).get_rng_state(self._device)
        return state


@contextmanager
def forgetting() -> Iterator[None]:
    """Without gradients, and without ``autocast``'s cache: a weight that it cast here would have no gradient later."""
    caching = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_autocast_cache_enabled(caching)
