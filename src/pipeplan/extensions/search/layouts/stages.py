"""Layers with their options, times and bytes of stages for every run of layers, and the peaks of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import dropwhile, takewhile
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import OpSegments
from pipeplan.extensions.search.layouts.order import holdings
from pipeplan.foundation.errors import CostError, InputError
from pipeplan.model import Bools, Floats, LayerKind, Schedule, tolerances

MOST_LAYERS = 512
"""Maximum number of layers of a model: four times as many as any published model has."""

AT_THE_START: tuple[LayerKind, ...] = ("embedding",)
AT_THE_END: tuple[LayerKind, ...] = ("mtp", "head", "loss")
"""Kinds of layers that are on the first and on the last stage: trainers put them nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerOption:
    """Way to run a layer: its times and bytes for one microbatch.

    Attributes
    ----------
    name
        Name such as ``none``, ``selective``, ``full`` or ``offload``; a stage uses options of one name together.
    forward, backward_input, backward_weight
        Seconds of F, I and W; recomputation is part of I.
    activation_bytes
        Bytes held on the GPU from F's start.
    weight_activation_bytes
        Part of the activation bytes that only W frees; None: all of them.
    transfer_bytes
        Bytes moved to the host after F and back before I.
    transient_bytes
        Additional bytes during its backward, on top of what the layers before it kept.
    segments
        Computation and communication of its ops, which add up to their times; None: they only compute.

    Raises
    ------
    CostError
        If a time or size is negative or not finite.
    """

    name: str
    forward: float
    backward_input: float
    backward_weight: float
    activation_bytes: float = 0.0
    weight_activation_bytes: float | None = None
    transfer_bytes: float = 0.0
    transient_bytes: float = 0.0
    segments: OpSegments | None = None

    def __post_init__(self) -> None:
        for own in fields(self):
            value = getattr(self, own.name)
            if isinstance(value, int | float) and not 0 <= value < inf:
                words = own.name.replace("_", " ")
                raise CostError(f"invalid layer: {words} is {value}, expected a finite number >= 0", field="layers")

    @property
    def time(self) -> float:
        """Seconds of F, I and W together."""
        return self.forward + self.backward_input + self.backward_weight

    @property
    def freed_by_weight(self) -> float:
        """Bytes that only W frees."""
        return self.activation_bytes if self.weight_activation_bytes is None else self.weight_activation_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidLayer:
    """Layer, or several equal layers in a row, with the ways to run it.

    Attributes
    ----------
    options
        Options; the first one is the default, also if a stage's choice is not among them.
    static_bytes
        Bytes of parameters, gradients and optimizer state per layer.
    count
        Number of equal layers.
    kind
        Kind of layer: an embedding is on the first stage; MTP, head and loss are on the last.

    Raises
    ------
    CostError
        If the count is below 1, there are no options, two options share a name, or a size is invalid.
    """

    options: tuple[LayerOption, ...]
    static_bytes: float = 0.0
    count: int = 1
    kind: LayerKind = "dense"

    def __post_init__(self) -> None:
        if not self.options:
            raise CostError("a layer has no options: expected at least one", field="layers")
        names = [option.name for option in self.options]
        if len(set(names)) < len(names):
            raise CostError(f"duplicate option names of a layer: {', '.join(names)}", field="layers")
        if self.count < 1 or not (isfinite(self.static_bytes) and self.static_bytes >= 0):
            raise CostError(
                f"invalid layer with count {self.count} and static bytes {self.static_bytes}: expected >= 1 and >= 0",
                field="layers",
            )

    def option(self, name: str) -> LayerOption:
        """Return the option of a name, or the first one if there is none."""
        return next((option for option in self.options if option.name == name), self.options[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOption:
    """Option that the layers of a stage use.

    Attributes
    ----------
    name
        Name of the option.
    layers
        Number of the stage's first transformer layers that use it; None: all. The others use their first option.
    """

    name: str
    layers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestLayout:
    """Best layout found, with its bounds.

    Attributes
    ----------
    layout
        Transformer layers of each stage; embedding, head, loss and MTP are on the first and the last stage in addition.
    options
        Option of each stage.
    makespan
        Makespan of the schedule with this layout, in seconds.
    lower_bound
        Lower bound on the makespan of every layout with this op order and these limits.
    proven
        Whether the layout is optimal up to rounding.
    even_layout, even_option, even_makespan
        Best even split that fits with one option on all stages; None and infinity if none does.
    peaks
        Peak bytes of each rank, including static and transient ones.
    simulated
        Number of layouts that were simulated.
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
        """Time saved over the best even split, as a fraction of it; 1 if no even split fits."""
        return 1.0 - self.makespan / self.even_makespan

    @property
    def gap(self) -> float:
        """Optimality gap: makespan over lower bound, minus 1."""
        return self.makespan / self.lower_bound - 1.0 if self.lower_bound > 0 else inf


@dataclass(frozen=True, slots=True)
class LayerParts:
    """Layers of a model one by one: those fixed to the first stage, those to lay out, those fixed to the last."""

    start: tuple[LaidLayer, ...]
    middle: tuple[LaidLayer, ...]
    end: tuple[LaidLayer, ...]


def parts_of(layers: Sequence[LaidLayer]) -> LayerParts:
    """Split the layers by the stages that they may be on.

    Raises
    ------
    InputError
        If the model has no transformer layers or more than ``MOST_LAYERS``, or its embedding or head is between others.
    """
    if sum(layer.count for layer in layers) > MOST_LAYERS:
        raise InputError(
            f"{sum(layer.count for layer in layers):,} layers are too many: expected at most {MOST_LAYERS}",
            field="layers",
        )
    single = [replace(layer, count=1) for layer in layers for _ in range(layer.count)]
    start = tuple(takewhile(lambda layer: layer.kind in AT_THE_START, single))
    rest = single[len(start) :]
    end = tuple(takewhile(lambda layer: layer.kind in AT_THE_END, reversed(rest)))[::-1]
    middle = tuple(rest[: len(rest) - len(end)])
    if not middle:
        raise InputError("the model has no transformer layers to lay out", field="layers")
    if stray := next(dropwhile(lambda layer: layer.kind not in (*AT_THE_START, *AT_THE_END), middle), None):
        raise InputError(
            f"a {stray.kind} layer is between transformer layers: expected the embedding first, and multi-token "
            "prediction, head and loss last",
            field="layers",
        )
    return LayerParts(start, middle, end)


TIMES = slice(0, 3)
BYTES = slice(3, 7)
"""Features of a stage, on the last axis of a table. ``TIMES``: F, I and W. ``BYTES``: activations, the part of them that
only W frees, transients of a backward, static bytes."""

FEATURES = 7

_ACTIVATION, _TRANSIENT, _TRANSFER = 3, 5, FEATURES


@dataclass(frozen=True)
class StageTables:
    """Times and bytes of stages: tables of shape (choices, layers + 1, layers + 1, features), by first layer and end.

    An entry is infinite if there is no such stage: it ends before it starts, has no layer at all, or has no more layers than
    its choice names.

    Attributes
    ----------
    parts
        Layers of the model.
    choices
        Choices of a stage.
    host_bandwidth
        Bandwidth to and from the host, bytes/s each way.
    """

    parts: LayerParts
    choices: tuple[StageOption, ...]
    host_bandwidth: float = inf
    _made: dict[tuple[bool, bool], Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def layers(self) -> int:
        """Number of layers to lay out."""
        return len(self.parts.middle)

    def of_stage(self, stage: int, stages: int) -> Floats:
        """Return the table of a stage, given the number of stages; made once for each kind of stage."""
        first, last = stage == 0, stage == stages - 1
        if (first, last) not in self._made:
            start, end = self.parts.start if first else (), self.parts.end if last else ()
            self._made[first, last] = np.stack([self._of_choice(choice, start, end) for choice in self.choices])
        return self._made[first, last]

    def _of_choice(self, choice: StageOption, start: Sequence[LaidLayer], end: Sequence[LaidLayer]) -> Floats:
        layers, count = self.layers, choice.layers
        base = np.array([_values(layer, layer.options[0]) for layer in self.parts.middle])
        chosen = np.array([_values(layer, layer.option(choice.name)) for layer in self.parts.middle])
        # [first, until) use the choice, [until, stop) the first option.
        first, stop = np.indices((layers + 1, layers + 1))
        until = stop if count is None else np.minimum(first + count, stop)
        by_choice, others = _between(chosen, first, until), _between(base, until, stop)
        sums = by_choice + others
        besides = np.maximum(
            _besides(chosen)[first, until] - others[..., _ACTIVATION], _besides(base)[np.minimum(until, stop), stop]
        )
        # The end's backward runs first, the start's last: fold them in from the inside out.
        for layer in end:
            values = _values(layer, layer.option(choice.name) if count is None else layer.options[0])
            sums, besides = sums + values, np.maximum(besides - values[_ACTIVATION], values[_TRANSIENT])
        for layer in reversed(start):
            values = _values(layer, layer.option(choice.name) if count is None else layer.options[0])
            besides = np.maximum(besides, values[_TRANSIENT] - sums[..., _ACTIVATION])
            sums = sums + values
        sums[..., _TRANSIENT] = np.maximum(besides, 0.0)
        # A stage's F (or I) takes at least as long as its copy to (or from) the host.
        moved = sums[..., _TRANSFER] / self.host_bandwidth
        sums[..., 0] = np.maximum(sums[..., 0], moved)
        sums[..., 1] = np.maximum(sums[..., 1], moved)
        least = (0 if start or end else 1) if count is None else count + 1
        sums[stop - first < least] = inf
        return sums[..., :FEATURES]


def _values(layer: LaidLayer, option: LayerOption) -> Floats:
    return np.array(
        [
            option.forward,
            option.backward_input,
            option.backward_weight,
            option.activation_bytes,
            option.freed_by_weight,
            option.transient_bytes,
            layer.static_bytes,
            option.transfer_bytes,
        ]
    )


def _between(values: Floats, first: NDArray[np.intp], stop: NDArray[np.intp]) -> Floats:
    before = np.concatenate((np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)))
    sums: Floats = before[stop] - before[first]
    return sums


def _besides(values: Floats) -> Floats:
    """Return ``besides[first, stop]``, the peak transients of the backward of a run of layers beyond what the layers kept.

    It is minus infinity for an empty run. The backward goes from the last layer to the first, and its transients come on top
    of what the layers before it kept.
    """
    layers = len(values)
    kept = np.concatenate(([0.0], np.cumsum(values[:, _ACTIVATION])))
    besides = np.full((layers + 1, layers + 1), -inf)
    for first in reversed(range(layers)):
        own = values[first, _TRANSIENT] - (kept[first + 1 :] - kept[first + 1])
        besides[first, first + 1 :] = np.maximum(besides[first + 1, first + 1 :], own)
    return besides


class RankPeaks:
    """Peak memory of every rank: the largest of its rows' sums over stages.

    Parameters
    ----------
    schedule
        Schedule whose order decides what is held at the same time.
    limits
        Maximum bytes of each rank; one number: the same for every rank; None: unlimited.

    Attributes
    ----------
    rows
        How often each stage's bytes count in each row, shape (rows, stages, 4), in the order of :data:`BYTES`.
    rank
        Rank of each row, shape (rows,).
    limits
        Of each rank, with room for rounding, shape (ranks,).
    holds
        Whether a rank holds a stage, shape (ranks, stages).

    Raises
    ------
    CostError
        If there is not one limit per rank, or a limit is not positive.
    """

    def __init__(self, schedule: Schedule, limits: float | Sequence[float] | None = None) -> None:
        ranks, stages = schedule.ranks, schedule.stages
        values = np.atleast_1d(np.inf if limits is None else np.asarray(limits, np.float64))
        if len(values) not in (1, ranks) or not (values > 0).all():
            raise CostError(
                f"invalid memory limits: expected one, or one for each of {ranks} ranks, above 0", field="memory_limit"
            )
        copies = np.zeros((ranks, stages))
        for copy in schedule.placement.table:
            np.add.at(copies, (copy, np.arange(stages)), 1.0)
        held = holdings(schedule)
        static = [
            np.broadcast_to(copies[rank][None, :, None], (len(rows), stages, 1)) for rank, rows in enumerate(held)
        ]
        self.rows: Floats = np.concatenate(
            [np.concatenate((rows, of_rank), axis=2) for rows, of_rank in zip(held, static, strict=True)]
        )
        self.rank = np.repeat(np.arange(ranks), [len(rows) for rows in held])
        self.limits: Floats = np.broadcast_to(values, (ranks,)) * (1 + tolerances.MEMORY)
        self.holds: Bools = copies > 0
        self._here = [np.flatnonzero(stages_of) for stages_of in self.holds]
        self._own = [
            self.rows[self.rank == rank][:, here].reshape(int((self.rank == rank).sum()), -1).T
            for rank, here in enumerate(self._here)
        ]

    @property
    def bounded(self) -> bool:
        """True if any rank has a limit."""
        return bool(np.isfinite(self.limits).any())

    def peaks(self, features: Floats) -> Floats:
        """Return the peak of every rank, shape (..., ranks), for stages with these features, shape (..., stages, 7)."""
        most = np.empty((*features.shape[:-2], len(self.limits)))
        for rank, here in enumerate(self._here):
            own = features[..., here, BYTES].reshape(*features.shape[:-2], -1)
            most[..., rank] = (own @ self._own[rank]).max(axis=-1)
        return most

    def over(self, features: Floats) -> Floats:
        """Return the bytes by which all ranks together exceed their limits, shape (...)."""
        if not self.bounded:
            return np.zeros(features.shape[:-2])
        excess: Floats = np.maximum(self.peaks(features) - self.limits, 0.0).sum(axis=-1)
        return excess
