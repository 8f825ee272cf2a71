"""Model of a training run: a sequence of layers, its data and its loss, and the division of its layers into stages."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pipeplan.costs import Layout, Role, balanced, bounds_of
from pipeplan.foundation.errors import InputError

USERS_ERRORS = (Exception, SystemExit)
"""Exceptions of a user's code, including those that would end this process silently."""

_SEEDS = 1 << 63
"""Upper limit of PyTorch's seeds."""

Builder = Callable[[], nn.Module]
Batch = Callable[[torch.Generator], tuple[Tensor, Tensor]]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Model:
    """A model that can be cut between any two of its layers.

    Attributes
    ----------
    name
        Name of the model in reports.
    layers
        One builder per layer, in order. Called without arguments, it returns a module that takes the one tensor returned by
        the layer before and returns one tensor. A rank builds only its own layers, and seeds the generator with the layer's
        number before each, so that the parameters do not depend on where the model is cut. Layers may share a parameter:
        builders then return modules with the same one.
    batch
        Function that draws one microbatch from a generator on the CPU: the first layer's input and the loss's targets, with
        the microbatch as first dimension.
    loss
        Function of the last layer's output and the targets; the mean over the microbatch.
    weights
        Relative time of each layer, for even cuts; None: all the same.
    dtype
        Type of the parameters: ``float32`` or ``bfloat16``.
    roles
        Role of each layer in a trainer: ``embedding``, ``block``, ``head`` or ``mtp``; None: unknown.
    """

    name: str
    layers: tuple[Builder, ...]
    batch: Batch
    loss: Loss
    weights: tuple[float, ...] | None = None
    dtype: str = "float32"
    roles: tuple[Role, ...] | None = None

    def __post_init__(self) -> None:
        if not self.layers:
            raise InputError(f"model {self.name} has no layers")
        for number, builder in enumerate(self.layers):
            if isinstance(builder, nn.Module) or not callable(builder):
                raise InputError(
                    f"layer {number} of model {self.name} is a {type(builder).__name__}; "
                    "pass a function without arguments that builds the layer"
                )
        for what, values in (("weights", self.weights), ("roles", self.roles)):
            if values is not None and len(values) != len(self.layers):
                raise InputError(f"model {self.name} has {len(self.layers)} layers and {len(values)} {what}")

    def build(self, first: int, stop: int, *, seed: int, device: torch.device) -> nn.Sequential:
        """Build layers ``first`` to ``stop - 1`` as one module, on a device, in the model's dtype.

        Raises
        ------
        InputError
            If a builder raises an exception or does not return a module.
        """
        layers = [self._layer(number, seed, device) for number in range(first, stop)]
        return nn.Sequential(*layers).to(device=device, dtype=getattr(torch, self.dtype))

    def _layer(self, number: int, seed: int, device: torch.device) -> nn.Module:
        # A prime factor keeps the seeds of different runs apart.
        torch.manual_seed((seed * 1_000_003 + number) % _SEEDS)
        try:
            with device:
                layer = self.layers[number]()
        except USERS_ERRORS as error:
            raise InputError(f"building layer {number} of model {self.name} raised {error_line(error)}") from error
        if not isinstance(layer, nn.Module):
            raise InputError(f"layer {number} of model {self.name} is a {type(layer).__name__}, not a torch.nn.Module")
        return layer

    def microbatch(self, step: int, number: int, *, seed: int) -> tuple[Tensor, Tensor]:
        """Return input and targets of one microbatch of one step, which are the same on every rank.

        Raises
        ------
        InputError
            If the model's function raises an exception or does not return two tensors.
        """
        generator = torch.Generator().manual_seed(((seed * 1_000_003 + step) * 1_000_003 + number) % _SEEDS)
        try:
            made: Any = self.batch(generator)
        except USERS_ERRORS as error:
            raise InputError(f"the batch function of model {self.name} raised {error_line(error)}") from error
        if not (isinstance(made, tuple) and len(made) == 2 and all(isinstance(part, Tensor) for part in made)):
            raise InputError(f"the batch function of model {self.name} must return (input, targets), two tensors")
        return made[0], made[1]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross entropy over all tokens, in float32."""
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def error_line(error: BaseException) -> str:
    """Return an exception of the user's code in one line: its type and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def cut(model: Model, stages: int, layout: Layout | None = None) -> tuple[tuple[int, int], ...]:
    """Divide a model's layers into stages. Return the first layer of every stage, and one past its last.

    Parameters
    ----------
    model
        The model to divide.
    stages
        Number of stages.
    layout
        Number of layers of each stage; None: the division with the fastest slowest stage, by the model's weights.

    Raises
    ------
    InputError
        If the layout does not add up to the model's layers or has an empty stage, or there are more stages than layers.
    """
    if layout is None:
        layout = balanced(model.weights or (1.0,) * len(model.layers), stages)
    if len(layout) != stages:
        raise InputError(f"a layout of {len(layout)} stages does not fit {stages} stages")
    return bounds_of(layout, len(model.layers), of=model.name)


def ties_between_stages(
    model: Model, ranges: Sequence[tuple[int, int]], *, seed: int, device: torch.device
) -> list[tuple[str, ...]]:
    """Return the parameters that several stages share, by the names that ``Pipeline(..., tied=...)`` takes.

    The layers are built one at a time. The parameters of a layer that shares nothing are freed with it, so the memory needed
    is that of the largest layer.

    Parameters
    ----------
    model
        The whole model.
    ranges
        First layer of every stage, and one past its last.
    seed, device
        Arguments of :meth:`~pipeplan.extensions.training.runtime.model.Model.build`.
    """
    # By id of the parameter. A weak reference tells whether the id still belongs to the same parameter.
    names_of: dict[int, tuple[weakref.ref[nn.Parameter], dict[int, str]]] = {}
    ties: list[dict[int, str]] = []
    for stage, (first, stop) in enumerate(ranges):
        for layer in range(first, stop):
            for name, parameter in model.build(layer, layer + 1, seed=seed, device=device)[0].named_parameters():
                alive, names = names_of.get(id(parameter), (None, {}))
                if alive is None or alive() is not parameter:
                    names = {}
                    names_of[id(parameter)] = (weakref.ref(parameter), names)
                    ties.append(names)
                names.setdefault(stage, f"{stage}.{layer - first}.{name}")
    return [tuple(names.values()) for names in ties if len(names) > 1]
