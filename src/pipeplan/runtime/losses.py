"""The loss of a microbatch, and what of it goes backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler

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
        """A loss.

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
        """What goes backward."""
        if self.reduction == "mean":
            loss = loss / self.microbatches
        return loss if self.scaler is None else self.scaler.scale(loss)
