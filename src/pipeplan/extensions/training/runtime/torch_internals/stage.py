"""Stage of PyTorch's runtime that reports when it computes, recomputes and offloads, and always reduces its gradients.

:class:`KeptForwards` hides how each release stores the tensors of a forward until its backward.
Until 2.14 ``fwd_cache`` holds a pair of outputs and inputs, and a stage's receive buffers hold what was received until the
backward. From 2.15 on ``_forward_chunk_states`` holds a record, whose outputs go once they are sent, and in whose place the
backward starts from their edges of autograd's graph; a receive buffer is taken when it is posted and given to the forward.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining._backward import stage_backward, stage_backward_input, stage_backward_weight
from torch.distributed.pipelining.stage import _make_tensor_from_meta, _RecvInfo
from torch.nn.parallel import DistributedDataParallel

from pipeplan.extensions.training.runtime.offloading import Copy, Offloading
from pipeplan.extensions.training.runtime.saved_tensors import Recomputation, Staying, forgetting, vacate
from pipeplan.extensions.training.runtime.stage_modules import StageSavings
from pipeplan.extensions.training.runtime.torch_internals.look_ahead import LookAheadStage
from pipeplan.model import Kind

BUFFERS_STAY = not hasattr(_RecvInfo, "take_buffer")
"""True if receive buffers are allocated for all microbatches at once and kept, as until 2.14."""


class KeptForwards:
    """Outputs and inputs that a stage keeps from its forwards, by microbatch."""

    def __init__(self, stage: PipelineStage) -> None:
        self._stage: Any = stage

    def of(self, microbatch: int) -> tuple[Any, Any]:
        """Return outputs and inputs; None stands for an output that was sent and released."""
        if BUFFERS_STAY:
            pair: tuple[Any, Any] = self._stage.fwd_cache[microbatch]
            return pair
        state = self._stage._forward_chunk_states[microbatch]
        return tuple(state.live_outputs), state.input_values

    def take(self, microbatch: int) -> tuple[Any, Any]:
        """Return the outputs, or their edges in autograd's graph, and the inputs for a backward, and stop keeping them."""
        if BUFFERS_STAY:
            pair: tuple[Any, Any] = self._stage.fwd_cache.pop(microbatch)
            return pair
        state = self._stage._forward_chunk_states.pop(microbatch)
        return state.stage_output_for_backward(), state.input_values

    def forget_output(self, microbatch: int) -> None:
        """Keep only the inputs."""
        if BUFFERS_STAY:
            _, inputs = self._stage.fwd_cache[microbatch]
            self._stage.fwd_cache[microbatch] = ((), inputs)
            return
        state = self._stage._forward_chunk_states[microbatch]
        state.live_outputs = [None] * len(state.live_outputs)

    def replace_outputs(self, microbatch: int, outputs: tuple[Tensor, ...]) -> None:
        """Put these in place of a forward's outputs."""
        if BUFFERS_STAY:
            self._stage.fwd_cache[microbatch] = (outputs, [])
        else:
            self._stage._forward_chunk_states[microbatch] = self._stage._make_forward_chunk_state(outputs, [])

    def put_back_received(self, microbatch: int) -> None:
        """Restore the received inputs for a forward that runs again."""
        if BUFFERS_STAY or self._stage.is_first:
            return
        inputs = self._stage._forward_chunk_states[microbatch].input_values
        for info, value in zip(self._stage.args_recv_info[microbatch], inputs, strict=False):
            info.set_buffer(value)


class Backward:
    """Backward passes of one stage on one microbatch, as the runtime computes them.

    Parameters
    ----------
    module
        Module of the stage.
    inputs
        Input of the stage; a leaf that requires a gradient, except on the first stage.
    output
        Output of the stage, or the loss on the last stage.
    gradient
        Gradient of the output; None on the last stage.
    first
        True if this is the first stage, whose I has nothing to do and whose W is the full backward.
    """

    def __init__(
        self, module: torch.nn.Module, inputs: Tensor, output: Tensor, gradient: Tensor | None, *, first: bool
    ) -> None:
        self.module, self.inputs, self.first = module, inputs, first
        self.output = (output,)
        self.gradient = None if gradient is None else (gradient,)
        self._groups: Any = None

    def full(self) -> None:
        """Compute B: the gradients of the input and the weights."""
        if self.gradient is None:
            stage_backward(self.output[0], None, [self.inputs])
        else:
            stage_backward(self.output, self.gradient, [self.inputs])

    def input(self) -> None:
        """Compute I: the gradient of the input."""
        if not self.first:
            _, self._groups = stage_backward_input(self.output, self.gradient, [self.inputs], self.module.parameters())

    def weight(self) -> None:
        """Compute W: the gradients of the weights, after I."""
        if self.first:
            self.full()
        else:
            stage_backward_weight(self.module.parameters(), self._groups)


class Observer(Protocol):
    """Observer of the runtime's ops on one rank."""

    def turn(self, position: int) -> None:
        """Handle that the rank turns to the action at this position of its row; the row's length means the end."""

    def op_started(self) -> None:
        """Handle that the inputs of the op have arrived, and it starts to compute."""

    def op_ended(self) -> None:
        """Handle the end of the op that started last. Called again if the op goes on (the loss of a forward)."""

    def mark(self) -> Any:
        """Return a mark of the current time, for copies that overlap compute. Called from any thread."""

    def copied(self, kind: Kind, stage: int, microbatch: int, copy: Copy) -> None:
        """Handle a copy to the host or back."""


class Unobserved:
    """Observer that does nothing."""

    def turn(self, position: int) -> None:
        """Do nothing."""

    def op_started(self) -> None:
        """Do nothing."""

    def op_ended(self) -> None:
        """Do nothing."""

    def mark(self) -> None:
        """Do nothing."""

    def copied(self, kind: Kind, stage: int, microbatch: int, copy: Copy) -> None:
        """Do nothing."""


class ObservedStage(LookAheadStage):
    """Stage that notifies an observer of its computation, and keeps only the tensors that its schedule needs.

    Backward passes run outside the caller's ``autocast``, as PyTorch recommends: their ops take the types of the forward's.
    ``metadata`` has PyTorch's metadata of each microbatch if they differ in length.
    If no input needs a gradient (nothing before this stage is trained), I has nothing to do and W is the whole backward.
    PyTorch does so on the first stage only, and would leave the weights of others without gradients.
    """

    def __init__(
        self, observer: Observer, part: StageSavings, offloading: Offloading, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._observer, self._part, self._offloading = observer, part, offloading
        self._recomputation = Recomputation(self.submod, self.device)
        self._staying = Staying(self.submod, self.device)
        self._forwards = KeptForwards(self)
        self._reduction_due = False
        self._whole: set[int] = set()
        self._left: set[int] = set()
        self._passed_on: set[int] = set()
        self.metadata: dict[int, Any] = {}

    def clear_runtime_states(self) -> None:
        """Discard the state of the last step, finished or not."""
        super().clear_runtime_states()
        self.give_up_buffers()
        self._recomputation.clear()
        self._reduction_due = False
        for microbatches in (self._whole, self._left, self._passed_on):
            microbatches.clear()

    def forward_one_chunk(
        self, fwd_chunk_id: int, args: Any, kwargs: Any = None, save_forward_output: bool = True
    ) -> Any:
        """Compute F. If it is recomputed, only its inputs stay, and its output until that is sent."""
        passed = (fwd_chunk_id, args, kwargs, save_forward_output)
        compute = super().forward_one_chunk
        if fwd_chunk_id in self._part.recomputed:
            with self._recomputation.first(fwd_chunk_id):
                output = self._observed(compute, passed, {})
            # A stage of the same rank takes the returned output; only a message would need the kept one.
            if not self._part.sends:
                self._forget_output(fwd_chunk_id)
            return output
        with self.keeping(fwd_chunk_id, (args, kwargs)):
            return self._observed(compute, passed, {})

    def keeping(self, microbatch: int, batch: Any) -> AbstractContextManager[Any]:
        """Keep the tensors of the forward or loss in the block that the schedule needs; ``batch`` is its input."""
        if microbatch in self._part.recomputed:
            return forgetting()
        if microbatch not in self._part.offloaded:
            return nullcontext()
        self._staying.before(batch)
        return self._offloading.saving((self.stage_index, microbatch), self._staying)

    def again(self, microbatch: int) -> AbstractContextManager[Any]:
        """Run R and its loss in the block."""
        return self._recomputation.again(microbatch)

    def recompute_one_chunk(self, microbatch: int, args: Any, kwargs: Any) -> Any:
        """Compute R: the forward again, with all tensors that its backward needs."""
        self._forwards.put_back_received(microbatch)
        return self._observed(super().forward_one_chunk, (microbatch, args, kwargs), {"save_forward_output": False})

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[Any]:
        """Post SEND_F, and release the output if nothing else needs it: the message holds it until it has arrived."""
        sent: list[Any] = super().get_fwd_send_ops(fwd_chunk_id)
        self._passed_on.add(fwd_chunk_id)
        if self._recomputation.waits(fwd_chunk_id):
            self._forget_output(fwd_chunk_id)
        elif fwd_chunk_id in self._left:
            self._vacate(fwd_chunk_id)
        return sent

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[Any]:
        """Post RECV_F, into memory that is allocated now."""
        self._take_buffers(self.args_recv_info[fwd_chunk_id])
        received: list[Any] = super().get_fwd_recv_ops(fwd_chunk_id)
        return received

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[Any]:
        """Post RECV_B, into memory that is allocated now."""
        self._take_buffers(self.grad_recv_info.get(bwd_chunk_id, ()))
        received: list[Any] = super().get_bwd_recv_ops(bwd_chunk_id)
        return received

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[Any]:
        """Post SEND_B; zeros in place of a missing gradient have the length of the microbatch."""
        if bwd_chunk_id in self.metadata:
            self._stage_meta = self.metadata[bwd_chunk_id]
        sent: list[Any] = super().get_bwd_send_ops(bwd_chunk_id)
        return sent

    def stand_in_fwd_send_ops(self, microbatch: int) -> list[Any]:
        """Post SEND_F with zeros, for a step that has failed here."""
        metadata: Any = self.metadata.get(microbatch, self._stage_meta)
        outputs = tuple(_make_tensor_from_meta(meta, self.device).zero_() for meta in metadata.outputs)
        self._forwards.replace_outputs(microbatch, outputs)
        sent: list[Any] = super().get_fwd_send_ops(microbatch)
        return sent

    def stand_in_bwd_send_ops(self, microbatch: int) -> list[Any]:
        """Post SEND_B with zeros, which PyTorch sends if there is no gradient."""
        self.bwd_cache[microbatch] = (None,) * len(self.args_recv_info[microbatch])
        sent: list[Any] = self.get_bwd_send_ops(microbatch)
        return sent

    def set_local_bwd_input(self, next_stage_bwd_outputs: Any, mb_index: int) -> None:
        """Take a gradient from a stage of this rank; without one, PyTorch writes zeros into the buffer."""
        self._take_buffers(self.grad_recv_info[mb_index])
        super().set_local_bwd_input(next_stage_bwd_outputs, mb_index)

    def give_up_buffers(self) -> None:
        """Release the receive buffers: PyTorch allocates those of all microbatches at once, and keeps them."""
        for infos in (*self.args_recv_info.values(), *self.grad_recv_info.values()):
            _give_up(infos)

    def _take_buffers(self, infos: Any) -> None:
        for info in infos:
            if BUFFERS_STAY and info.buffer is None and info.tensor_meta is not None and not info.is_root_arg:
                info.buffer = _make_tensor_from_meta(info.tensor_meta, self.device)

    def _used_up(self, microbatch: int) -> None:
        """Release the received tensors of a microbatch after its B or W."""
        _give_up(self.args_recv_info[microbatch])
        _give_up(self.grad_recv_info.get(microbatch, ()))

    def leave(self, microbatch: int) -> None:
        """Release inputs and outputs after OFFLOAD, once the outputs are sent."""
        self._left.add(microbatch)
        if not self._part.sends or microbatch in self._passed_on:
            self._vacate(microbatch)

    def _vacate(self, microbatch: int) -> None:
        """Release the memory of received inputs and of outputs: the backward needs them only as ends of its graph."""
        outputs, inputs = self._forwards.of(microbatch)
        # Inputs of the first stage belong to the caller; arguments beyond the received ones are not activations.
        received = () if self.is_first else inputs[: len(self.args_recv_info[microbatch])]
        for tensor in (*outputs, *received):
            if tensor is not None:
                vacate(tensor)

    def _forget_output(self, microbatch: int) -> None:
        self._forwards.forget_output(microbatch)

    def backward_one_chunk(self, bwd_chunk_id: int, *args: Any, full_backward: bool = True, **kwargs: Any) -> None:
        """Compute B, or I."""
        # Offloaded activations must be back before autograd reads them.
        self._offloading.arrive((self.stage_index, bwd_chunk_id))
        kwargs["full_backward"] = full_backward
        compute = super().backward_one_chunk
        if not full_backward and not self.is_first and self._needs_no_input_gradient(bwd_chunk_id):
            self._whole.add(bwd_chunk_id)
            compute = self._postpone
        with self._without_autocast():
            self._observed(compute, (bwd_chunk_id, *args), kwargs)
        # After an I, the received tensors are still needed by W.
        if full_backward:
            self._used_up(bwd_chunk_id)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Compute W. Its gradients come from ``autograd.grad``, which DDP does not notice: they are reduced afterwards."""
        compute = super().backward_weight_one_chunk
        if bwd_chunk_id in self._whole:
            self._whole.discard(bwd_chunk_id)
            compute = self._make_up
        # On the first stage, W is a whole backward, which DDP notices by itself.
        elif last_backward and not self.is_first and isinstance(self.submod, DistributedDataParallel):
            last_backward, self._reduction_due = False, True
        with self._without_autocast():
            self._observed(compute, (bwd_chunk_id,), {"last_backward": last_backward})
        self._used_up(bwd_chunk_id)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """Do REDUCE_GRAD."""
        if self._reduction_due:
            _reduce(self.submod)
            self._reduction_due = False
        super().perform_reduce_grad(grad_scale_factor)

    def _needs_no_input_gradient(self, microbatch: int) -> bool:
        _, inputs = self._forwards.of(microbatch)
        return not any(isinstance(value, Tensor) and value.requires_grad for value in inputs)

    def _postpone(self, microbatch: int, loss: Tensor | None = None, **_: Any) -> None:
        """Handle an I with nothing to do: keep what its W needs, and send no gradient to the stage before."""
        output, inputs = self._forwards.take(microbatch)
        gradients = None if self.is_last else self._retrieve_recv_grads(microbatch)
        self.backward_state[microbatch] = (inputs, None, loss if self.is_last else output, gradients)
        self.bwd_cache[microbatch] = (None,) * len(self.args_recv_info[microbatch])

    def _make_up(self, microbatch: int, *, last_backward: bool) -> None:
        """Compute the whole backward of a postponed I."""
        inputs, _, output, gradients = self.backward_state.pop(microbatch)
        passed = {"stage_output": output, "output_grads": gradients, "input_values": inputs}
        self.backward_maybe_with_nosync("full", passed, last_backward=last_backward)

    def _without_autocast(self) -> AbstractContextManager[Any]:
        kind = self.device.type
        return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()

    def _observed(self, compute: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self._observer.op_started()
        answer = compute(*args, **kwargs)
        self._observer.op_ended()
        return answer


def _give_up(infos: Any) -> None:
    """Release buffers. A message that is still being sent from one keeps it alive."""
    for info in infos:
        info.buffer = None


def _reduce(replica: DistributedDataParallel) -> None:
    """Make DDP reduce the gradients of its parameters with its own buckets and hooks, by a backward that adds zeros."""
    parameters: list[nn.Parameter] = [parameter for parameter in replica.parameters() if parameter.requires_grad]
    # An empty list of outputs makes DDP expect a gradient of every parameter; the backward of zeros triggers its hooks.
    replica.reducer.prepare_for_backward([])
    torch.autograd.backward(parameters, [parameter.new_zeros(()).expand_as(parameter) for parameter in parameters])
