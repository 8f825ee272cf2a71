"""What a stage of PyTorch's runtime keeps of a forward until its backward: the one place that knows each release's form.

Until 2.14 ``fwd_cache`` holds a pair of outputs and inputs, and a stage's receive buffers hold what was received until the
backward. From 2.15 on ``_forward_chunk_states`` holds a record, whose outputs go once they are sent, and in whose place the
backward starts from their edges of autograd's graph; a receive buffer is taken when it is posted and given to the forward.
"""

from __future__ import annotations

from typing import Any

from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.stage import _RecvInfo

BUFFERS_STAY = not hasattr(_RecvInfo, "take_buffer")
"""Whether receive buffers are taken for all microbatches at once and kept, as until 2.14."""


class KeptForwards:
    """The outputs and inputs that a stage keeps of its forwards, by microbatch."""

    def __init__(self, stage: PipelineStage) -> None:
        self._stage: Any = stage

    def of(self, microbatch: int) -> tuple[Any, Any]:
        """Return outputs and inputs; None stands for an output that was sent and let go."""
        if BUFFERS_STAY:
            pair: tuple[Any, Any] = self._stage.fwd_cache[microbatch]
            return pair
        state = self._stage._forward_chunk_states[microbatch]
        return tuple(state.live_outputs), state.input_values

    def take(self, microbatch: int) -> tuple[Any, Any]:
        """Return what a backward starts from, outputs or their edges, and the inputs, and keep them no longer."""
        if BUFFERS_STAY:
            pair: tuple[Any, Any] = self._stage.fwd_cache.pop(microbatch)
            return pair
        state = self._stage._forward_chunk_states.pop(microbatch)
        return state.stage_output_for_backward(), state.input_values

    def forget_output(self, microbatch: int) -> None:
        """Keep the inputs alone."""
        if BUFFERS_STAY:
            _, inputs = self._stage.fwd_cache[microbatch]
            self._stage.fwd_cache[microbatch] = ((), inputs)
            return
        state = self._stage._forward_chunk_states[microbatch]
        state.live_outputs = [None] * len(state.live_outputs)

    def put_back_received(self, microbatch: int) -> None:
        """Let a forward that runs again find what it received."""
        if BUFFERS_STAY or self._stage.is_first:
            return
        inputs = self._stage._forward_chunk_states[microbatch].input_values
        for info, value in zip(self._stage.args_recv_info[microbatch], inputs, strict=False):
            info.set_buffer(value)
