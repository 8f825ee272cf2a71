"""The split backward of PyTorch's runtime, on its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.pipelining._backward import stage_backward, stage_backward_input, stage_backward_weight


class Backward:
    """The backward passes of one stage on one microbatch, as the runtime does them.

    Parameters
    ----------
    module
        The stage.
    inputs
        Its input; a leaf that requires a gradient, except on the first stage.
    output
        Its output, or the loss on the last stage.
    gradient
        Of the output; None on the last stage.
    first
        Whether this is the first stage: its I has nothing to do, its W is the full backward.
    """

    def __init__(
        self, module: torch.nn.Module, inputs: Tensor, output: Tensor, gradient: Tensor | None, *, first: bool
    ) -> None:
        self.module, self.inputs, self.first = module, inputs, first
        self.output = (output,)
        self.gradient = None if gradient is None else (gradient,)
        self._groups: Any = None

    def full(self) -> None:
        """B: gradients of the input and the weights."""
        if self.gradient is None:
            stage_backward(self.output[0], None, [self.inputs])
        else:
            stage_backward(self.output, self.gradient, [self.inputs])

    def input(self) -> None:
        """I: the gradient of the input."""
        if not self.first:
            _, self._groups = stage_backward_input(self.output, self.gradient, [self.inputs], self.module.parameters())

    def weight(self) -> None:
        """W: the gradients of the weights, after I."""
        if self.first:
            self.full()
        else:
            stage_backward_weight(self.module.parameters(), self._groups)
