"""The same training in a single process, to compare gradients with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeplan.model import Kind, Schedule
from pipeplan.runtime.torch_internals import Loss

Gradients = list[Tensor]


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest absolute difference of a gradient, of a loss, and the largest gradient, for scale."""

    gradient: float = 0.0
    loss: float = 0.0
    scale: float = 0.0

    def __or__(self, other: Difference) -> Difference:
        """The larger of each value."""
        return Difference(max(self.gradient, other.gradient), max(self.loss, other.loss), max(self.scale, other.scale))


class Reference:
    """All stages in one process, without a pipeline.

    Floating-point sums depend on their order, so each parameter's gradient is summed over the microbatches in the order of
    the schedule's Bs or Ws on its stage. The sums then equal the pipeline's to the last bit wherever the same kernels
    compute the terms.

    Parameters
    ----------
    stages
        Fresh modules of all stages, with the weights that the pipeline starts from.
    schedule
        For the order of the weight gradients.
    loss
        Of one microbatch. Gradients are of the mean over the microbatches.
    """

    def __init__(self, stages: Sequence[nn.Module], schedule: Schedule, loss: Loss) -> None:
        self.stages = stages
        self._loss = loss
        weights = schedule.columns[schedule.where(Kind.B, Kind.W)]
        self._order = [weights.microbatch[weights.stage == stage].tolist() for stage in range(len(stages))]

    def step(self, inputs: Sequence[Tensor], targets: Sequence[Tensor]) -> list[float]:
        """The loss of every microbatch; the gradients are left in the parameters' ``grad``."""
        due = [list(order) for order in self._order]
        pending: list[dict[int, Gradients]] = [{} for _ in self.stages]
        losses = []
        for microbatch, (x, target) in enumerate(zip(inputs, targets, strict=True)):
            loss = self._forward(x, target)
            losses.append(float(loss.detach()))
            for stage, gradients in enumerate(self._backward(loss / len(inputs))):
                pending[stage][microbatch] = gradients
                while due[stage] and due[stage][0] in pending[stage]:
                    _accumulate(self.stages[stage], pending[stage].pop(due[stage].pop(0)))
        return losses

    def _forward(self, x: Tensor, target: Tensor) -> Tensor:
        for stage in self.stages:
            x = stage(x)
        return self._loss(x, target)

    def _backward(self, loss: Tensor) -> list[Gradients]:
        counts = [len(list(stage.parameters())) for stage in self.stages]
        parameters = [parameter for stage in self.stages for parameter in stage.parameters()]
        gradients = list(torch.autograd.grad(loss, parameters, materialize_grads=True))
        return [gradients[sum(counts[:stage]) : sum(counts[: stage + 1])] for stage in range(len(counts))]

    def compare(self, mine: dict[int, nn.Module]) -> Difference:
        """How far the gradients of some of the pipeline's stages are from those here."""
        found = Difference()
        for stage, module in mine.items():
            for ours, theirs in zip(self.stages[stage].parameters(), module.parameters(), strict=True):
                found |= _difference(ours.grad, theirs.grad)
        return found


def _accumulate(stage: nn.Module, gradients: Gradients) -> None:
    for parameter, gradient in zip(stage.parameters(), gradients, strict=True):
        if parameter.grad is None:
            parameter.grad = gradient
        else:
            parameter.grad += gradient


def _difference(ours: Tensor | None, theirs: Tensor | None) -> Difference:
    """No gradient counts as zero; one that is not a number differs infinitely."""
    if ours is None:
        return Difference()
    other = torch.zeros_like(ours) if theirs is None else theirs
    apart = (ours.double() - other.double()).abs().nan_to_num(nan=torch.inf)
    return Difference(gradient=float(apart.max()), scale=float(ours.abs().max()))
