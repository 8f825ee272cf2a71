"""The loss of a microbatch, what of it goes backward, and the norm of all gradients of a pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.distributed.tensor import DTensor

from pipeplan.errors import InputError

Reduction = Literal["mean", "sum"]


@dataclass(frozen=True, slots=True)
class MicrobatchLoss:
    """A user's loss function, which must give one number.

    Attributes
    ----------
    function
        Of the last stage's output and the targets.
    microbatches, reduction, scaler
        What of a microbatch's loss goes backward: gradients are summed over the microbatches.
    """

    function: Callable[..., Any]
    microbatches: int
    reduction: Reduction
    scaler: GradScaler | None

    def training(self, output: Any, targets: Any) -> Tensor:
        """A loss that gradients can come from, unless they come from its recomputation.

        Raises
        ------
        InputError
            If it is no scalar tensor, or depends on nothing that is trained.
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
            If it is no scalar tensor.
        """
        loss = self.function(output, targets)
        if isinstance(loss, Tensor) and not loss.ndim:
            return loss
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
        raise InputError(
            f"the loss returned {what}: it must return one number as a tensor, for instance by .mean()", field="loss"
        )

    def share(self, loss: Tensor) -> Tensor:
        """Return the part of a loss that goes backward."""
        if self.reduction == "mean":
            loss = loss / self.microbatches
        return loss if self.scaler is None else self.scaler.scale(loss)


def total_norm(stages: Iterable[nn.Module], norm_type: float, group: Any, device: torch.device) -> Tensor:
    """The norm of the gradients of all ranks' stages together, a float32 scalar that is the same on all ranks of the group.

    Gradients that FSDP2 (or tensor parallelism) spreads over other ranks count as a whole.
    """
    norms = [torch.zeros((), device=device)]
    for parameters in _alike(stages):
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in parameters], norm_type)
        norms.append((norm.full_tensor() if isinstance(norm, DTensor) else norm).to(device, torch.float32))
    mine = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if math.isinf(norm_type):
        dist.all_reduce(mine, dist.ReduceOp.MAX, group=group)
        return mine
    powers = mine**norm_type
    dist.all_reduce(powers, group=group)
    return powers ** (1 / norm_type)


def clip(stages: Iterable[nn.Module], limit: float, norm: Tensor) -> None:
    """Scale gradients so that their norm, which is given, is at most the limit."""
    for parameters in _alike(stages):
        torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)


def _alike(stages: Iterable[nn.Module]) -> list[list[nn.Parameter]]:
    """Parameters with a gradient, each once, apart by how they are spread over ranks: only those are computed on at once."""
    parameters = {id(parameter): parameter for stage in stages for parameter in stage.parameters()}
    groups: dict[Any, list[nn.Parameter]] = {}
    for parameter in parameters.values():
        if parameter.grad is not None:
            spread = parameter.grad.device_mesh if isinstance(parameter.grad, DTensor) else None
            groups.setdefault(spread, []).append(parameter)
    return list(groups.values())
