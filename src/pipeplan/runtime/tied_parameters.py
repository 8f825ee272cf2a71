"""Parameters that layers of a model share: a pipeline trains them right only where one rank holds all of these layers."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import nn

from pipeplan.errors import InputError
from pipeplan.model import Placement
from pipeplan.runtime.model import Model


def require_ties_on_one_rank(
    model: Model,
    ranges: Sequence[tuple[int, int]],
    placement: Placement,
    *,
    seed: int,
    device: torch.device,
) -> None:
    """Refuse a placement that puts layers with a common parameter on different ranks.

    Every rank would hold a copy of the parameter, see only its own part of the gradient, and train another model.

    The layers are built one at a time. The parameters of a layer that shares nothing die with it, so the memory needed is
    that of the largest layer.

    Parameters
    ----------
    model
        The whole model.
    ranges
        First layer, and one past the last, of every stage.
    placement
        Which rank holds each stage.
    seed, device
        As for :meth:`~pipeplan.runtime.model.Model.build`.

    Raises
    ------
    InputError
        With both layers, both ranks and what to do.
    """
    holders: dict[int, tuple[weakref.ref[nn.Parameter], str, int]] = {}
    layers = [(layer, stage) for stage, bounds in enumerate(ranges) for layer in range(*bounds)]
    for layer, stage in layers:
        rank = placement.rank_of[0][stage]
        for name, parameter in model.build(layer, layer + 1, seed=seed, device=device)[0].named_parameters():
            place = f"{name} of layer {layer}"
            alive, other, other_rank = holders.setdefault(id(parameter), (weakref.ref(parameter), place, rank))
            if alive() is not parameter:  # the number of a dead parameter, used again
                holders[id(parameter)] = (weakref.ref(parameter), place, rank)
            elif rank != other_rank:
                raise InputError(
                    f"{other} and {place} of model {model.name} are one parameter, but rank {other_rank} and rank {rank} "
                    "would each train a copy of it: take a placement that holds both layers on one rank (a V placement, "
                    "as zbv has, holds the first and the last stage on rank 0), or untie them",
                    field="model",
                )
