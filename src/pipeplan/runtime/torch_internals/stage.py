"""A stage of PyTorch's runtime that says when it computes, and whose gradients are reduced whatever computed them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.nn.parallel import DistributedDataParallel


class Observer(Protocol):
    """Is told what the runtime does while it does it."""

    def turn(self, position: int) -> None:
        """The rank turns to the action at this position of its row; at the row's length, it has done them all."""

    def start(self) -> None:
        """What the op waited for has arrived: it starts to compute."""

    def end(self) -> None:
        """The op that started last is done. Told again if its work turns out to go on (the loss of a forward)."""


class Unobserved:
    """An observer that does not look."""

    def turn(self, position: int) -> None:
        """Nothing."""

    def start(self) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class ObservedStage(PipelineStage):
    """A stage that tells an observer when it starts and ends to compute.

    Backward passes run outside the caller's ``autocast``, as PyTorch wants them: their ops take the types of the forward's.
    """

    def __init__(self, observer: Observer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._observer = observer
        self._reduction_due = False

    def forward_one_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """F."""
        return self._observed(super().forward_one_chunk, args, kwargs)

    def backward_one_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """B, or I."""
        with self._without_autocast():
            return self._observed(super().backward_one_chunk, args, kwargs)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> Any:
        """W. Its gradients come from ``autograd.grad``, which DDP does not notice: it reduces them afterwards."""
        if last_backward and not self.is_first and isinstance(self.submod, DistributedDataParallel):
            last_backward, self._reduction_due = False, True
        with self._without_autocast():
            return self._observed(super().backward_weight_one_chunk, (bwd_chunk_id,), {"last_backward": last_backward})

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """REDUCE_GRAD."""
        if self._reduction_due:
            _reduce(self.submod)
            self._reduction_due = False
        super().perform_reduce_grad(grad_scale_factor)

    def _without_autocast(self) -> AbstractContextManager[Any]:
        kind = self.device.type
        return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()

    def _observed(self, compute: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self._observer.start()
        answer = compute(*args, **kwargs)
        self._observer.end()
        return answer


def _reduce(replica: DistributedDataParallel) -> None:
    """Have DDP reduce what its parameters' gradients hold, with its own buckets and hooks: nothing more is added to them."""
    parameters: list[nn.Parameter] = [parameter for parameter in replica.parameters() if parameter.requires_grad]
    replica.reducer.prepare_for_backward([])
    torch.autograd.backward(parameters, [parameter.new_zeros(()).expand_as(parameter) for parameter in parameters])
