"""Costs per layer, and the layouts that combine layers into stages.

A stage is a run of consecutive layers; its layout is the number of layers per stage. Embedding and head are layers too.
The costs of a stage are the sums over its layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise
from typing import Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs.segments import COMPUTE, OPS, OpSegments, in_sequence, require_sum
from pipeplan.foundation.errors import CostError, InfeasibleError, InputError, UnknownNameError
from pipeplan.model import LARGEST, Floats
from pipeplan.model.tolerances import ROUNDING

Layout = tuple[int, ...]
"""Number of layers of each stage, in the order of the model; at least one each."""

Role = Literal["embedding", "block", "head", "mtp"]
"""Role of a layer in a trainer, which counts transformer blocks; ``mtp`` is a multi-token prediction layer."""

MOST_LAYERS = 4096
"""Maximum number of layers of a model. Balancing this many over stages takes a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Times and memory of one layer for one microbatch, or of each of several equal layers.

    Attributes
    ----------
    forward, backward_input, backward_weight
        Times of F, I and W, in one unit.
    backward
        Time of a full backward; None: that of I and W together.
    recompute
        Time of a recomputation; None: that of F.
    offload
        Time of a copy of its offloaded activations to the host, or back; None if unknown.
    activation_bytes
        Bytes held from the start of F.
    weight_activation_bytes
        Part of them that only W frees; None: all.
    offload_bytes
        Part of them that is copied to the host; None: all.
    input_bytes
        Bytes of its input. The first layer of a stage holds them in addition, and keeps them when the stage recomputes.
    parameters
        Number of parameters.
    static_bytes
        Bytes of parameters, gradients and optimizer state.
    count
        Number of consecutive layers like this.
    role
        Role in a trainer, so that the blocks of each stage follow from a layout; None if no layer has one, else ``block``.
    segments
        Computations and communications that F, I and W consist of; None: they only compute, where other layers have some.

    Raises
    ------
    CostError
        If a time or size is negative, not finite or too large, the layer takes no time, the count is below 1, or segments
        do not add up to the times.
    UnknownNameError
        If the role is unknown.
    """

    forward: float
    backward_input: float
    backward_weight: float
    activation_bytes: float = 0.0
    weight_activation_bytes: float | None = None
    parameters: int = 0
    static_bytes: float = 0.0
    count: int = 1
    backward: float | None = None
    recompute: float | None = None
    offload: float | None = None
    offload_bytes: float | None = None
    input_bytes: float = 0.0
    role: Role | None = None
    segments: OpSegments | None = None

    def __post_init__(self) -> None:
        if self.role is not None and self.role not in get_args(Role):
            raise UnknownNameError("role of a layer", str(self.role), get_args(Role), field="layers")
        for field in fields(self):
            if field.name in ("role", "segments"):
                continue
            value = getattr(self, field.name)
            words = f"{field.name.replace('_', ' ')} of a layer"
            if value is not None and not 0 <= value < np.inf:
                raise CostError(f"{words} must be at least 0 and finite, not {value}", field="layers")
            if field.name != "count" and value is not None and value > LARGEST:
                raise CostError(f"{words} is too large to compute with; choose a larger unit", field="layers")
        if not self.time > 0:
            raise CostError("the times of a layer must add up to more than 0", field="layers")
        if not 1 <= self.count <= MOST_LAYERS:
            raise CostError(f"count of a layer must be 1 to {MOST_LAYERS:,}, not {self.count}", field="layers")
        if self.segments is not None:
            if isinstance(self.segments, Mapping):
                object.__setattr__(self, "segments", OpSegments(**self.segments))
            for op in OPS:
                require_sum(self.segments.time(op), getattr(self, op), op, "a layer")

    @property
    def time(self) -> float:
        """Time of forward and backward together."""
        return self.forward + self.backward_input + self.backward_weight

    @property
    def freed_by_weight(self) -> float:
        """Bytes that only W frees."""
        return self.activation_bytes if self.weight_activation_bytes is None else self.weight_activation_bytes

    @property
    def offloaded(self) -> float:
        """Bytes that are copied to the host."""
        return self.activation_bytes if self.offload_bytes is None else self.offload_bytes

    @property
    def whole_backward(self) -> float:
        """Time of a full backward."""
        return self.backward_input + self.backward_weight if self.backward is None else self.backward

    @property
    def again(self) -> float:
        """Time of a recomputation."""
        return self.forward if self.recompute is None else self.recompute


class StageSettings(TypedDict, total=False):
    """Settings that follow from layers: one value per stage."""

    forward_times: tuple[float, ...]
    backward_times: tuple[float, ...]
    backward_input_times: tuple[float, ...]
    backward_weight_times: tuple[float, ...]
    recompute_times: tuple[float, ...]
    offload_times: tuple[float, ...]
    activation_bytes: tuple[float, ...]
    weight_activation_bytes: tuple[float, ...]
    recompute_bytes: tuple[float, ...]
    offload_bytes: tuple[float, ...]
    static_bytes: tuple[float, ...]
    segments: tuple[OpSegments, ...]


def stage_settings(layers: Sequence[Layer], layout: Layout) -> StageSettings:
    """Return the costs of stages as settings, e.g. for ``pipeplan.simulate("1f1b", ranks=4, **settings)``.

    What no layer has is left out.

    Raises
    ------
    InputError
        If the layout does not match the layers or has an empty stage.
    CostError
        If the forward, or a half of the backward, of a stage takes no time.
    """
    layers = each_layer(layers)
    bounds = bounds_of(layout, len(layers))

    def total(name: str) -> tuple[float, ...]:
        return tuple(float(sum(getattr(layer, name) or 0.0 for layer in layers[first:stop])) for first, stop in bounds)

    def held(name: str) -> tuple[float, ...]:
        # The inputs of the other layers are the outputs of those before them, which have counted them.
        inputs = (layers[first].input_bytes for first, _ in bounds)
        return tuple(size + of_input for size, of_input in zip(total(name), inputs, strict=True))

    def some(name: str) -> bool:
        return any(getattr(layer, name) for layer in layers)

    times = {name: total(name) for name in ("forward", "backward_input", "backward_weight")}
    for name, of_stages in times.items():
        if min(of_stages) <= 0:
            raise CostError(
                f"{name.replace('_', ' ')} of stage {of_stages.index(min(of_stages))} takes no time: add a layer that does",
                field="layers",
            )
    settings = StageSettings(
        forward_times=times["forward"],
        backward_input_times=times["backward_input"],
        backward_weight_times=times["backward_weight"],
    )
    if some("backward"):
        settings["backward_times"] = total("whole_backward")
    if some("recompute"):
        settings["recompute_times"] = total("again")
    if some("offload"):
        settings["offload_times"] = total("offload")
    if some("activation_bytes"):
        settings["activation_bytes"] = held("activation_bytes")
        settings["weight_activation_bytes"] = held("freed_by_weight")
        if some("input_bytes"):
            settings["recompute_bytes"] = tuple(layers[first].input_bytes for first, _ in bounds)
        if some("offload_bytes"):
            settings["offload_bytes"] = held("offloaded")
    if some("static_bytes"):
        settings["static_bytes"] = total("static_bytes")
    if some("segments"):
        segments = [_segments_of(layer) for layer in layers]
        settings["segments"] = tuple(in_sequence(segments[first:stop]) for first, stop in bounds)
    return settings


def _segments_of(layer: Layer) -> OpSegments:
    """Return a layer's segments; without any, each op is one computation."""
    if layer.segments is not None:
        return layer.segments
    return OpSegments(**{op: ((COMPUTE, getattr(layer, op)),) for op in OPS})


def blocks_of(layers: Sequence[Layer], layout: Layout) -> tuple[tuple[int, ...], int] | None:
    """Return the transformer blocks of each stage as trainers count them, and the number of MTP layers.

    None if no layer has a role. Layers without one are blocks if another layer has one.
    """
    layers = each_layer(layers)
    if not any(layer.role for layer in layers):
        return None
    roles = [layer.role or "block" for layer in layers]
    order = ("embedding", "block", "mtp", "head")
    bounds = bounds_of(layout, len(layers))
    for number, (role, other) in enumerate(pairwise(roles)):
        if order.index(role) > order.index(other):
            raise InputError(f"layer {number} is {role} before {other}: expected {', '.join(order)}", field="layers")
    for stage, (first, stop) in enumerate(bounds):
        misplaced = [role for role in roles[first:stop] if _END_OF[role] not in (None, stage, stage - len(bounds))]
        if misplaced:
            where = "first" if _END_OF[misplaced[0]] == 0 else "last"
            raise InputError(
                f"stage {stage} has the {misplaced[0]}, which trainers have on the {where} stage: set layers_per_stage",
                field="layers_per_stage",
            )
    return tuple(roles[first:stop].count("block") for first, stop in bounds), roles.count("mtp")


_END_OF: dict[str, int | None] = {"embedding": 0, "block": None, "mtp": -1, "head": -1}
"""Stage of a layer in trainers; None: any."""


def each_layer(layers: Sequence[Layer]) -> list[Layer]:
    """Return every layer separately; a layer with a count is repeated."""
    if sum(layer.count for layer in layers) > MOST_LAYERS:
        raise InputError(
            f"{sum(layer.count for layer in layers):,} layers are more than {MOST_LAYERS:,}", field="layers"
        )
    return [replace(layer, count=1) for layer in layers for _ in range(layer.count)]


def bounds_of(layout: Layout, layers: int, *, of: str = "the model") -> tuple[tuple[int, int], ...]:
    """Return the first layer, and one past the last, of every stage."""
    if sum(layout) != layers or min(layout, default=0) < 1:
        raise InputError(
            f"invalid layout {'+'.join(map(str, layout))} = {sum(layout)}: its {len(layout)} stages must have at least one "
            f"layer each, and together the {layers} layers of {of}",
            field="layers_per_stage",
        )
    return tuple(pairwise(accumulate(layout, initial=0)))


def balanced_layers(
    layers: Sequence[Layer], stages: int, *, room: Sequence[float] | None = None, held: Sequence[int] | None = None
) -> Layout:
    """Return the layout with the fastest slowest stage (forward and backward together) within the memory of each stage.

    Parameters
    ----------
    room
        Memory of each stage in bytes; None: unlimited.
    held
        Number of microbatches that each stage holds at once: ``min(p - s, m)`` for stage s of 1F1B. None: one.

    Raises
    ------
    InputError
        If there are more stages than layers.
    InfeasibleError
        If no layout fits the memory.
    """
    layers = each_layer(layers)
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
    """Return the number of layers of each stage that minimizes the time of the slowest stage, by dynamic programming.

    The result is exact. Of several optimal layouts it is the one with the smallest sum of squared stage times, and then
    the one with fewer layers on earlier stages.

    Parameters
    ----------
    times
        Time of each layer.
    fits
        ``fits[stage, first, stop]``: True if the stage can hold the layers from ``first`` to ``stop - 1``, shape
        (stages, layers + 1, layers + 1). None: every stage can hold any layers.
    """
    layers = len(times)
    if not 1 <= stages <= layers:
        raise InputError(f"{layers} layers cannot make {stages} stages; each stage needs a layer", field="layers")
    sums = _sums(times)
    some = np.triu(np.ones(sums.shape, np.bool_), 1)
    allowed = np.broadcast_to(some, (stages, *sums.shape)) if fits is None else fits & some
    # First minimize the slowest stage, then the sum of squares among the layouts with stages no slower than that.
    slowest = float(_from_the_end(sums, allowed, np.maximum)[0][0, 0])
    if slowest == np.inf:
        raise InfeasibleError(
            f"no layout of {layers} layers on {stages} stages fits the memory of each stage", field="layers"
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
    """Return ``sums[first, stop]`` over the values from ``first`` to ``stop - 1``; 0 for empty ranges."""
    before = np.concatenate(([0.0], np.cumsum(values)))
    sums: Floats = np.triu(before[None, :] - before[:, None])
    return sums


def _from_the_end(weights: Floats, allowed: NDArray[np.bool_], together: np.ufunc) -> tuple[Floats, NDArray[np.intp]]:
    """Return, for each stage and first layer, the minimum over it and all later stages, and where that stage stops.

    Parameters
    ----------
    weights
        ``weights[first, stop]`` of a stage with these layers.
    allowed
        Mask of these for each stage.
    together
        Combination of the weights of two stages: their sum or maximum.
    """
    stages, size = len(allowed), len(weights)
    least = np.full((stages + 1, size), np.inf)
    least[stages, -1] = 0.0
    choice = np.zeros((stages, size), np.intp)
    for stage in reversed(range(stages)):
        values = np.where(allowed[stage], together(weights, least[stage + 1][None, :]), np.inf)
        least[stage] = values.min(axis=1)
        # The first of the values that are equal up to rounding.
        choice[stage] = (values <= least[stage][:, None] * (1 + ROUNDING)).argmax(axis=1)
    return least, choice
