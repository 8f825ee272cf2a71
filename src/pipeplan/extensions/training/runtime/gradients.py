"""Losses of microbatches, the norm of a pipeline's gradients, and the same training in one process for comparison."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.distributed.tensor import DTensor

from pipeplan.extensions.training.runtime.torch_internals import Loss
from pipeplan.foundation.errors import InputError
from pipeplan.model import Kind, Schedule

Reduction = Literal["mean", "sum"]


@dataclass(frozen=True, slots=True)
class MicrobatchLoss:
    """A user's loss function, checked to return one number.

    Attributes
    ----------
    function
        Function of the last stage's output and the targets.
    microbatches, reduction, scaler
        Number of microbatches, and how their losses are combined and scaled before the backward.
    """

    function: Callable[..., Any]
    microbatches: int
    reduction: Reduction
    scaler: GradScaler | None

    def training(self, output: Any, targets: Any) -> Tensor:
        """Return the loss of a training step.

        Raises
        ------
        InputError
            If it is not a scalar tensor, or depends on no trained parameter.
        """
        loss = self.evaluation(output, targets)
        if not loss.requires_grad and torch.is_grad_enabled():
            raise InputError(
                "the loss does not depend on any parameter: do not detach it, and have a parameter that requires gradients",
                field="loss",
            )
        return loss

    def evaluation(self, output: Any, targets: Any) -> Tensor:
        """Return the loss of an evaluation.

        Raises
        ------
        InputError
            If it is not a scalar tensor.
        """
        loss = self.function(output, targets)
        if isinstance(loss, Tensor) and not loss.ndim:
            return loss
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
        raise InputError(
            f"the loss returned {what}: it must return a scalar tensor, for example with .mean()", field="loss"
        )

    def share(self, loss: Tensor) -> Tensor:
        """Return the part of a loss that is differentiated: gradients are summed over the microbatches."""
        if self.reduction == "mean":
            loss = loss / self.microbatches
        return loss if self.scaler is None else self.scaler.scale(loss)


def total_norm(parameters: Iterable[nn.Parameter], norm_type: float, group: Any, device: torch.device) -> Tensor:
    """Return the norm of the gradients of all ranks' parameters: a float32 scalar, the same on all ranks of the group.

    Gradients that FSDP2 or tensor parallelism shards over other ranks count as a whole.
    """
    norms = [torch.zeros((), device=device)]
    for alike in _alike(parameters):
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in alike], norm_type)
        norms.append((norm.full_tensor() if isinstance(norm, DTensor) else norm).to(device, torch.float32))
    mine = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    # A norm of norms is the norm of all: the maximum of maxima, or the root of the sum of powers.
    if math.isinf(norm_type):
        dist.all_reduce(mine, dist.ReduceOp.MAX, group=group)
        return mine
    powers = mine**norm_type
    dist.all_reduce(powers, group=group)
    return powers ** (1 / norm_type)


def clip(parameters: Iterable[nn.Parameter], limit: float, norm: Tensor) -> None:
    """Scale gradients of norm ``norm`` so that their norm is at most ``limit``."""
    for alike in _alike(parameters):
        torch.nn.utils.clip_grads_with_norm_(alike, limit, norm)


def _alike(parameters: Iterable[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Return the parameters with a gradient, grouped by sharding: PyTorch combines only tensors of the same mesh."""
    groups: dict[Any, list[nn.Parameter]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            spread = parameter.grad.device_mesh if isinstance(parameter.grad, DTensor) else None
            groups.setdefault(spread, []).append(parameter)
    return list(groups.values())


Gradients = list[Tensor]


@dataclass(frozen=True, slots=True)
class Difference:
    """Largest absolute differences of gradients and losses, and the largest gradient for scale."""

    gradient: float = 0.0
    loss: float = 0.0
    scale: float = 0.0

    def __or__(self, other: Difference) -> Difference:
        """Return the larger of each value."""
        return Difference(max(self.gradient, other.gradient), max(self.loss, other.loss), max(self.scale, other.scale))


class Reference:
    """The same training with all stages in one process, without a pipeline.

    Floating-point sums depend on their order, so each parameter's gradient is summed over the microbatches in the order of
    the schedule's Bs or Ws on its rank. The sums then equal the pipeline's to the last bit if the same kernels compute the
    terms. Each stage's backward is computed separately: a parameter that stages share has a term from each of them. If they
    are on several ranks, the terms are summed on every rank, then over the ranks.

    Parameters
    ----------
    stages
        Fresh modules of all stages, with the initial weights of the pipeline.
    schedule
        Schedule that gives the order of the weight gradients.
    loss
        Loss of one microbatch. Gradients are those of the mean over the microbatches.
    """

    def __init__(self, stages: Sequence[nn.Module], schedule: Schedule, loss: Loss) -> None:
        self.stages = stages
        self._loss = loss
        rows = [schedule.row(rank) for rank in range(schedule.ranks)]
        weights = [row[np.isin(row.kind, (Kind.B, Kind.W))] for row in rows]
        self._order = [list(zip(row.stage.tolist(), row.microbatch.tolist(), strict=True)) for row in weights]
        # The ranks of every parameter, in the order of its stages.
        self._ranks: dict[nn.Parameter, dict[int, None]] = {}
        for module, rank in zip(stages, schedule.placement.rank_of[0], strict=True):
            for parameter in module.parameters():
                self._ranks.setdefault(parameter, {})[rank] = None

    def step(self, inputs: Sequence[Tensor], targets: Sequence[Tensor]) -> list[float]:
        """Return the loss of every microbatch, and leave the gradients in the parameters' ``grad``."""
        due = [deque(order) for order in self._order]
        sums: dict[tuple[nn.Parameter, int], Tensor] = {}
        pending: dict[tuple[int, int], Gradients] = {}
        losses = []
        for microbatch, (x, target) in enumerate(zip(inputs, targets, strict=True)):
            passed, loss = self._forward(x, target)
            losses.append(float(loss.detach()))
            for stage, gradients in self._backward(passed, loss / len(inputs)):
                pending[stage, microbatch] = gradients
            # Each rank's sums go in the order of its row: a gradient waits until those before it have been added.
            for rank, row in enumerate(due):
                while row and row[0] in pending:
                    stage, _ = row[0]
                    parameters = self.stages[stage].parameters()
                    for parameter, gradient in zip(parameters, pending.pop(row.popleft()), strict=True):
                        sums[parameter, rank] = _added(sums.get((parameter, rank)), gradient)
        for parameter, ranks in self._ranks.items():
            for rank in ranks:
                parameter.grad = _added(parameter.grad, sums[parameter, rank])
        return losses

    def _forward(self, x: Tensor, target: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Return input and output of every stage, detached from the stage before, and the loss."""
        passed: list[tuple[Tensor, Tensor]] = []
        for stage in self.stages:
            # The first stage's input may be integers, which have no gradient.
            detached = x.detach().requires_grad_() if passed else x
            x = stage(detached)
            passed.append((detached, x))
        return passed, self._loss(x, target)

    def _backward(self, passed: list[tuple[Tensor, Tensor]], loss: Tensor) -> Iterator[tuple[int, Gradients]]:
        """Yield the gradients of every stage's parameters, from the last stage to the first."""
        output, gradient = loss, torch.ones_like(loss)
        for number in reversed(range(len(self.stages))):
            parameters = list(self.stages[number].parameters())
            wanted = [*parameters, passed[number][0]] if number else parameters
            gradients = (
                list(torch.autograd.grad(output, wanted, gradient, materialize_grads=True))
                if wanted and output.requires_grad
                else [torch.zeros_like(tensor) for tensor in wanted]
            )
            yield number, gradients[: len(parameters)]
            if number:
                output, gradient = passed[number - 1][1], gradients[-1]

    def compare(self, mine: dict[int, nn.Module]) -> Difference:
        """Return the largest difference between the gradients of these stages of the pipeline and those here."""
        difference = Difference()
        for stage, module in mine.items():
            for ours, theirs in zip(self.stages[stage].parameters(), module.parameters(), strict=True):
                difference |= _difference(ours.grad, theirs.grad)
        return difference


def _added(total: Tensor | None, term: Tensor) -> Tensor:
    return term if total is None else total.add_(term)


def _difference(ours: Tensor | None, theirs: Tensor | None) -> Difference:
    """Compare two gradients. None counts as zero; NaN differs infinitely."""
    if ours is None:
        return Difference()
    other = torch.zeros_like(ours) if theirs is None else theirs
    # In float64, so that the difference itself is not rounded.
    apart = (ours.double() - other.double()).abs().nan_to_num(nan=torch.inf)
    return Difference(gradient=float(apart.max()), scale=float(ours.abs().max()))
