"""A stage of PyTorch's runtime that says when it computes, and whose gradients are reduced whatever computed them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn
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
    Where no input needs a gradient (nothing before this stage is trained), I has nothing to do and W is the whole backward:
    PyTorch does so on the first stage alone, and on others would leave weights without gradients.
    """

    def __init__(self, observer: Observer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._observer = observer
        self._reduction_due = False
        self._whole: set[int] = set()

    def forward_one_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """F."""
        return self._observed(super().forward_one_chunk, args, kwargs)

    def backward_one_chunk(self, bwd_chunk_id: int, *args: Any, full_backward: bool = True, **kwargs: Any) -> None:
        """B, or I."""
        kwargs["full_backward"] = full_backward
        compute = super().backward_one_chunk
        if not full_backward and not self.is_first and self._needs_no_input_gradient(bwd_chunk_id):
            self._whole.add(bwd_chunk_id)
            compute = self._postpone
        with self._without_autocast():
            self._observed(compute, (bwd_chunk_id, *args), kwargs)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """W. Its gradients come from ``autograd.grad``, which DDP does not notice: it reduces them afterwards."""
        compute = super().backward_weight_one_chunk
        if bwd_chunk_id in self._whole:
            self._whole.discard(bwd_chunk_id)
            compute = self._make_up
        elif last_backward and not self.is_first and isinstance(self.submod, DistributedDataParallel):
            last_backward, self._reduction_due = False, True
        with self._without_autocast():
            self._observed(compute, (bwd_chunk_id,), {"last_backward": last_backward})

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """REDUCE_GRAD."""
        if self._reduction_due:
            _reduce(self.submod)
            self._reduction_due = False
        super().perform_reduce_grad(grad_scale_factor)

    def _needs_no_input_gradient(self, microbatch: int) -> bool:
        _, inputs = self.fwd_cache[microbatch]
        return not any(isinstance(value, Tensor) and value.requires_grad for value in inputs)

    def _postpone(self, microbatch: int, loss: Tensor | None = None, **_: Any) -> None:
        """An I with nothing to do: what its W needs is kept, and the stage before is told of no gradient."""
        output, inputs = self.fwd_cache.pop(microbatch)
        gradients = None if self.is_last else self._retrieve_recv_grads(microbatch)
        self.backward_state[microbatch] = (inputs, None, loss if self.is_last else output, gradients)
        self.bwd_cache[microbatch] = (None,) * len(self.args_recv_info[microbatch])

    def _make_up(self, microbatch: int, *, last_backward: bool) -> None:
        """The whole backward of a postponed I."""
        inputs, _, output, gradients = self.backward_state.pop(microbatch)
        passed = {"stage_output": output, "output_grads": gradients, "input_values": inputs}
        self.backward_maybe_with_nosync("full", passed, last_backward=last_backward)

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
