"""Costs per layer, and the layout that makes stages of them.

A stage is a run of consecutive layers, as many as its layout says; an embedding and a head are layers of their own. What a
stage takes and holds is the sum over its layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import CostError, InfeasibleError, InputError
from pipeplan.model import LARGEST, Floats
from pipeplan.model.tolerances import ROUNDING

Layout = tuple[int, ...]
"""How many layers each stage has, in the order of the model; at least one each."""

MOST_LAYERS = 4096
"""Of a model: more than any has, and balanced over stages in a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one layer takes and holds for one microbatch, or each of several equal ones.

    Attributes
    ----------
    forward, backward_input, backward_weight
        Times of F, I and W, in one unit; a full backward takes what I and W take together.
    activation_bytes
        Held from F's start.
    weight_activation_bytes
        The part of it that only W frees; None: all of it.
    parameters
        How many there are.
    static_bytes
        Of parameters, gradients and optimizer state.
    count
        How many such layers follow one another.

    Raises
    ------
    CostError
        For a time or size that is negative, not finite or too large to compute with, for a layer that takes no time, and
        for a count below 1.
    """

    forward: float
    backward_input: float
    backward_weight: float
    activation_bytes: float = 0.0
    weight_activation_bytes: float | None = None
    parameters: int = 0
    static_bytes: float = 0.0
    count: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            words = f"{field.name.replace('_', ' ')} of a layer"
            if value is not None and not 0 <= value < np.inf:
                raise CostError(f"{words} must be at least 0 and finite, not {value}", field="layers")
            if field.name != "count" and value is not None and value > LARGEST:
                raise CostError(f"{words}: it is too large to compute with; choose a larger unit", field="layers")
        if not self.time > 0:
            raise CostError("a layer must take some time", field="layers")
        if not 1 <= self.count <= MOST_LAYERS:
            raise CostError(f"count of a layer must be 1 to {MOST_LAYERS:,}, not {self.count}", field="layers")

    @property
    def time(self) -> float:
        """Of its forward and its backward together."""
        return self.forward + self.backward_input + self.backward_weight

    @property
    def freed_by_weight(self) -> float:
        """Bytes that only W frees."""
        return self.activation_bytes if self.weight_activation_bytes is None else self.weight_activation_bytes


class StageSettings(TypedDict, total=False):
    """The settings that layers give: a value for each stage."""

    forward_times: tuple[float, ...]
    backward_input_times: tuple[float, ...]
    backward_weight_times: tuple[float, ...]
    activation_bytes: tuple[float, ...]
    weight_activation_bytes: tuple[float, ...]
    static_bytes: tuple[float, ...]


def stage_settings(layers: Sequence[Layer], layout: Layout) -> StageSettings:
    """The costs of stages as settings: ``pipeplan.simulate("1f1b", ranks=4, **stage_settings(layers, layout))``.

    Bytes are left out where no layer has any.

    Raises
    ------
    InputError
        For a layout that does not add up to the layers, or has an empty stage.
    CostError
        For a stage whose forward, or one half of whose backward, takes no time.
    """
    layers = one_by_one(layers)
    bounds = bounds_of(layout, len(layers))

    def total(name: str) -> tuple[float, ...]:
        return tuple(float(sum(getattr(layer, name) for layer in layers[first:stop])) for first, stop in bounds)

    times = {name: total(name) for name in ("forward", "backward_input", "backward_weight")}
    for name, of_stages in times.items():
        if min(of_stages) <= 0:
            raise CostError(
                f"{name.replace('_', ' ')} of stage {of_stages.index(min(of_stages))} takes no time: give it another layer",
                field="layers",
            )
    found = StageSettings(
        forward_times=times["forward"],
        backward_input_times=times["backward_input"],
        backward_weight_times=times["backward_weight"],
    )
    if any(layer.activation_bytes for layer in layers):
        found["activation_bytes"] = total("activation_bytes")
        found["weight_activation_bytes"] = total("freed_by_weight")
    if any(layer.static_bytes for layer in layers):
        found["static_bytes"] = total("static_bytes")
    return found


def one_by_one(layers: Sequence[Layer]) -> list[Layer]:
    """Every layer on its own, those that stand for several repeated.

    Raises
    ------
    InputError
        For more than ``MOST_LAYERS``.
    """
    if sum(layer.count for layer in layers) > MOST_LAYERS:
        raise InputError(
            f"{sum(layer.count for layer in layers):,} layers are more than {MOST_LAYERS:,}", field="layers"
        )
    return [replace(layer, count=1) for layer in layers for _ in range(layer.count)]


def bounds_of(layout: Layout, layers: int, *, of: str = "the model") -> tuple[tuple[int, int], ...]:
    """First layer, and one past the last, of every stage.

    Parameters
    ----------
    layers
        How many there are.
    of
        What they are the layers of, for messages.

    Raises
    ------
    InputError
        For a layout that does not add up to the layers, or has an empty stage.
    """
    if sum(layout) != layers or min(layout, default=0) < 1:
        raise InputError(
            f"a layout gives each of its {len(layout)} stages at least one of the {layers} layers of {of}, and all of them "
            f"together; {'+'.join(map(str, layout))} = {sum(layout)} over {len(layout)} does not",
            field="layers_per_stage",
        )
    return tuple(pairwise(accumulate(layout, initial=0)))


def balanced_layers(
    layers: Sequence[Layer], stages: int, *, room: Sequence[float] | None = None, held: Sequence[int] | None = None
) -> Layout:
    """The layout whose slowest stage, forward and backward together, is as fast as can be, within the memory of each stage.

    Parameters
    ----------
    room
        Bytes that each stage may hold; None: any.
    held
        How many microbatches each stage holds at once: ``min(p - s, m)`` for stage s of 1F1B. None: one.

    Raises
    ------
    InputError
        For more stages than layers.
    InfeasibleError
        If no layout stays within the room.
    """
    layers = one_by_one(layers)
    times = [layer.time for layer in layers]
    if room is None:
        return balanced(times, stages)
    if len(room) != stages or (held is not None and len(held) != stages):
        raise InputError(f"{stages} stages need a room and a number of held microbatches each")
    static = _sums([layer.static_bytes for layer in layers])
    activation = _sums([layer.activation_bytes for layer in layers])
    of_stages = [static + microbatches * activation for microbatches in held or [1] * stages]
    fits = np.stack([sizes <= limit * (1 + ROUNDING) for sizes, limit in zip(of_stages, room, strict=True)])
    return balanced(times, stages, fits=fits)


def balanced(times: Sequence[float], stages: int, *, fits: NDArray[np.bool_] | None = None) -> Layout:
    """How many layers each stage gets so that the slowest stage is as fast as can be: exact, by dynamic programming.

    Where that leaves a choice, the squares of the stages' times add up to the least, and then earlier stages have fewer
    layers.

    Parameters
    ----------
    times
        Of each layer.
    fits
        ``fits[stage, first, stop]``: whether a stage can hold the layers from first to before stop, shape
        (stages, layers + 1, layers + 1). None: any stage can hold any.

    Raises
    ------
    InputError
        For more stages than layers.
    InfeasibleError
        If the layers cannot be laid out so that all stages fit.
    """
    layers = len(times)
    if not 1 <= stages <= layers:
        raise InputError(f"{layers} layers cannot make {stages} stages; each stage needs a layer", field="layers")
    sums = _sums(times)
    some = np.triu(np.ones(sums.shape, np.bool_), 1)
    allowed = np.broadcast_to(some, (stages, *sums.shape)) if fits is None else fits & some
    slowest = float(_from_the_end(sums, allowed, np.maximum)[0][0, 0])
    if slowest == np.inf:
        raise InfeasibleError(
            f"no layout of {layers} layers on {stages} stages stays within what each stage may hold", field="layers"
        )
    allowed = allowed & (sums <= slowest * (1 + ROUNDING))
    choice = _from_the_end(sums**2, allowed, np.add)[1]
    counts, first = [], 0
    for stage in range(stages):
        stop = int(choice[stage, first])
        counts.append(stop - first)
        first = stop
    return tuple(counts)


def _sums(values: Sequence[float]) -> Floats:
    """``sums[first, stop]`` over the layers from first to before stop; 0 where that is none or less."""
    before = np.concatenate(([0.0], np.cumsum(values)))
    sums: Floats = np.triu(before[None, :] - before[:, None])
    return sums


def _from_the_end(weights: Floats, allowed: NDArray[np.bool_], together: np.ufunc) -> tuple[Floats, NDArray[np.intp]]:
    """For each stage and first layer, the least that it and all later stages come to, and where the stage then stops.

    Parameters
    ----------
    weights
        Of a stage by its first layer and where it stops.
    allowed
        Which of these each stage may be.
    together
        What two weights come to: their sum, or the larger one.
    """
    stages, size = len(allowed), len(weights)
    least = np.full((stages + 1, size), np.inf)
    least[stages, -1] = 0.0
    choice = np.zeros((stages, size), np.intp)
    for stage in reversed(range(stages)):
        values = np.where(allowed[stage], together(weights, least[stage + 1][None, :]), np.inf)
        least[stage] = values.min(axis=1)
        # The first that is as good but for rounding.
        choice[stage] = (values <= least[stage][:, None] * (1 + ROUNDING)).argmax(axis=1)
    return least, choice
