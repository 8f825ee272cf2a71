"""What a layout is made of, and what the best one is: layers with the choices that each has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import dropwhile, takewhile
from math import inf, isfinite

from pipeplan.errors import CostError, InputError
from pipeplan.workload import LayerKind

MOST_LAYERS = 512
"""Maximum number of layers of a model: four times as many as any has."""

AT_THE_START: tuple[LayerKind, ...] = ("embedding",)
AT_THE_END: tuple[LayerKind, ...] = ("mtp", "head", "loss")
"""Kinds that stand on the first and on the last stage, whatever else does: trainers put them nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerOption:
    """One way to run a layer: what it takes and holds for one microbatch.

    Attributes
    ----------
    name
        Such as ``none``, ``selective``, ``full`` or ``offload``; options of one name are chosen together on a stage.
    forward, backward_input, backward_weight
        Times of F, I and W, recomputation in I; seconds.
    activation_bytes
        Held on the GPU from F's start.
    weight_activation_bytes
        The part of it that only W frees; None: all of it.
    transfer_bytes
        Moved to the host behind F and back before I.
    transient_bytes
        What its backward holds besides, and frees at its end, on top of what the layers before it kept.

    Raises
    ------
    CostError
        For a time or size that is negative or not finite.
    """

    name: str
    forward: float
    backward_input: float
    backward_weight: float
    activation_bytes: float = 0.0
    weight_activation_bytes: float | None = None
    transfer_bytes: float = 0.0
    transient_bytes: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not 0 <= value < inf:
                words = each.name.replace("_", " ")
                raise CostError(f"{words} of a layer must be at least 0 and finite, not {value}", field="layers")

    @property
    def time(self) -> float:
        """Return the time of F, I and W together."""
        return self.forward + self.backward_input + self.backward_weight

    @property
    def freed_by_weight(self) -> float:
        """Return the bytes that only W frees."""
        return self.activation_bytes if self.weight_activation_bytes is None else self.weight_activation_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidLayer:
    """A layer, or several equal ones that follow one another, and how it can be run.

    Attributes
    ----------
    options
        The first is what it does where nothing is chosen, and where a stage's choice is not among its options.
    static_bytes
        Of parameters, gradients and optimizer state, of each.
    count
        How many.
    kind
        An embedding stands on the first stage; multi-token prediction, head and loss stand on the last.

    Raises
    ------
    CostError
        For a count below 1, a layer without options, two options of one name, bytes that cannot be.
    """

    options: tuple[LayerOption, ...]
    static_bytes: float = 0.0
    count: int = 1
    kind: LayerKind = "dense"

    def __post_init__(self) -> None:
        if not self.options:
            raise CostError("a layer needs at least one way to run it", field="layers")
        names = [option.name for option in self.options]
        if len(set(names)) < len(names):
            raise CostError(f"options of a layer have names of their own, not {', '.join(names)}", field="layers")
        if self.count < 1 or not (isfinite(self.static_bytes) and self.static_bytes >= 0):
            raise CostError(
                f"a layer's count is at least 1 and its static bytes at least 0, not {self.count} and {self.static_bytes}",
                field="layers",
            )

    def option(self, name: str) -> LayerOption:
        """The option of this name, or the first where there is none."""
        return next((option for option in self.options if option.name == name), self.options[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOption:
    """The option that the layers of a stage take.

    Attributes
    ----------
    name
        Of the option.
    layers
        How many of the stage's transformer layers do so, the first ones; None: all. The others do what the first option
        says.
    """

    name: str
    layers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestLayout:
    """The layout found, and how good it is.

    Attributes
    ----------
    layout
        Transformer layers on each stage; embedding, head, loss and multi-token prediction stand on the first and the last
        besides.
    options
        What each stage does.
    makespan
        Of the schedule with it; seconds.
    lower_bound
        What no layout can beat with this schedule's order, within the limits.
    proven
        Whether this is the best one but for rounding.
    even_layout, even_option, even_makespan
        The best even split that fits with one option for all stages; None and infinite where none does.
    peaks
        Bytes that each rank holds at most, static and transient ones included.
    simulated
        How many layouts were.
    """

    layout: tuple[int, ...]
    options: tuple[StageOption, ...]
    makespan: float
    lower_bound: float
    proven: bool
    even_layout: tuple[int, ...] | None
    even_option: StageOption | None
    even_makespan: float
    peaks: tuple[float, ...]
    simulated: int

    @property
    def gain(self) -> float:
        """Return the time saved over the best even split, as a share of the latter; 1 where no even split fits."""
        return 1.0 - self.makespan / self.even_makespan

    @property
    def gap(self) -> float:
        """Return the optimality gap: makespan over lower bound, less 1."""
        return self.makespan / self.lower_bound - 1.0 if self.lower_bound > 0 else inf


@dataclass(frozen=True, slots=True)
class LayerParts:
    """The layers of a model one by one: those bound to the first stage, those laid out, those bound to the last."""

    start: tuple[LaidLayer, ...]
    middle: tuple[LaidLayer, ...]
    end: tuple[LaidLayer, ...]


def parts_of(layers: Sequence[LaidLayer]) -> LayerParts:
    """The layers apart by where they may stand.

    Raises
    ------
    InputError
        For a model without transformer layers, with more than ``MOST_LAYERS``, or whose embedding or head stands between
        others.
    """
    if sum(layer.count for layer in layers) > MOST_LAYERS:
        raise InputError(f"{sum(layer.count for layer in layers):,} layers are more than {MOST_LAYERS}", field="layers")
    single = [replace(layer, count=1) for layer in layers for _ in range(layer.count)]
    start = tuple(takewhile(lambda layer: layer.kind in AT_THE_START, single))
    rest = single[len(start) :]
    end = tuple(takewhile(lambda layer: layer.kind in AT_THE_END, reversed(rest)))[::-1]
    middle = tuple(rest[: len(rest) - len(end)])
    if not middle:
        raise InputError("a model without transformer layers has no layout", field="layers")
    if stray := next(dropwhile(lambda layer: layer.kind not in (*AT_THE_START, *AT_THE_END), middle), None):
        raise InputError(
            f"the {stray.kind} stands between transformer layers; an embedding is the first layer, and multi-token "
            "prediction, head and loss are the last",
            field="layers",
        )
    return LayerParts(start, middle, end)
