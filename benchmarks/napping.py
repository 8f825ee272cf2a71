"""A model whose ops sleep instead of computing: what is predicted for it can be checked on a machine that others use too.

``python -m benchmarks.predicted_and_measured --model benchmarks.napping:model``
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pipeplan.runtime import Model

WIDTH = 64
LAYER = (0.020, 0.020, 0.015)
"""Seconds of F, I and W."""

LAST_LAYER = (0.030, 0.030, 0.030)


class _Nap(torch.autograd.Function):
    """The identity, which sleeps on its way forward and on its way back."""

    @staticmethod
    def forward(context: Any, x: Tensor, forward: float, backward: float) -> Tensor:
        context.backward_seconds = backward
        time.sleep(forward)
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        time.sleep(context.backward_seconds)
        return gradients[0].clone(), None, None


def nap(x: Tensor, forward: float, backward: float) -> Tensor:
    """The same tensor, after so many seconds, and so many before its gradient."""
    rested: Tensor = _Nap.apply(x, forward, backward)
    return rested


class Layer(nn.Module):
    """A linear layer that sleeps for its F, for its I where its input's gradient is made, and for its W at its weight's."""

    def __init__(self, forward: float, backward_input: float, backward_weight: float) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH, bias=False)
        self.seconds = forward, backward_input, backward_weight

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output, with naps on both ways back."""
        forward, backward_input, backward_weight = self.seconds
        rested = nap(x, forward, backward_input)
        return nn.functional.linear(rested, nap(self.linear.weight, 0.0, backward_weight))


def model() -> Model:
    """Eight layers, the last of which takes longer."""
    times = [LAYER] * 7 + [LAST_LAYER]
    return Model(
        name="napping",
        layers=tuple(partial(Layer, *each) for each in times),
        batch=lambda generator: (
            torch.randn(4, WIDTH, generator=generator),
            torch.randn(4, WIDTH, generator=generator),
        ),
        loss=nn.functional.mse_loss,
        weights=tuple(map(sum, times)),
    )
