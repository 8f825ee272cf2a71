"""Layers and their options, the stages made of them, and what ranks hold"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import dropwhile, takewhile
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import CostError, InputError
from pipeplan.model import Bools, Floats, Schedule, tolerances
from pipeplan.planner.layout.order import holdings
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


TIMES = slice(0, 3)
BYTES = slice(3, 7)
"""Of the last axis of a table: F, I and W; activations, what of them only W frees, what a backward holds besides, static
bytes."""

FEATURES = 7

_ACTIVATION, _TRANSIENT, _TRANSFER = 3, 5, FEATURES


@dataclass(frozen=True)
class StageTables:
    """Tables of shape (choices, layers + 1, layers + 1, features), by first layer and one past the last.

    Entries are infinite where there is no such stage: one that ends before it starts, that has no layer at all, or that has
    no more layers than a choice names.

    Attributes
    ----------
    parts
        The layers.
    choices
        What a stage can do.
    host_bandwidth
        To and from the host, each way; bytes/s.
    """

    parts: LayerParts
    choices: tuple[StageOption, ...]
    host_bandwidth: float = inf

    @property
    def layers(self) -> int:
        """Number of layers that are laid out."""
        return len(self.parts.middle)

    def of_stage(self, stage: int, stages: int) -> Floats:
        """The table of one of so many stages."""
        if stages == 1:
            return self._only
        return self._first if stage == 0 else self._last if stage == stages - 1 else self._middle

    @cached_property
    def _middle(self) -> Floats:
        return self._table((), ())

    @cached_property
    def _first(self) -> Floats:
        return self._table(self.parts.start, ())

    @cached_property
    def _last(self) -> Floats:
        return self._table((), self.parts.end)

    @cached_property
    def _only(self) -> Floats:
        return self._table(self.parts.start, self.parts.end)

    def _table(self, start: Sequence[LaidLayer], end: Sequence[LaidLayer]) -> Floats:
        return np.stack([self._of_choice(choice, start, end) for choice in self.choices])

    def _of_choice(self, choice: StageOption, start: Sequence[LaidLayer], end: Sequence[LaidLayer]) -> Floats:
        layers, count = self.layers, choice.layers
        base = np.array([_values(layer, layer.options[0]) for layer in self.parts.middle])
        chosen = np.array([_values(layer, layer.option(choice.name)) for layer in self.parts.middle])
        first, stop = np.indices((layers + 1, layers + 1))
        until = stop if count is None else np.minimum(first + count, stop)
        by_choice, others = _between(chosen, first, until), _between(base, until, stop)
        sums = by_choice + others
        besides = np.maximum(
            _besides(chosen)[first, until] - others[..., _ACTIVATION], _besides(base)[np.minimum(until, stop), stop]
        )
        for layer in end:
            values = _values(layer, layer.option(choice.name) if count is None else layer.options[0])
            sums, besides = sums + values, np.maximum(besides - values[_ACTIVATION], values[_TRANSIENT])
        for layer in reversed(start):
            values = _values(layer, layer.option(choice.name) if count is None else layer.options[0])
            besides = np.maximum(besides, values[_TRANSIENT] - sums[..., _ACTIVATION])
            sums = sums + values
        sums[..., _TRANSIENT] = np.maximum(besides, 0.0)
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
    """``besides[first, stop]``: the most that a backward of these layers holds beyond what they kept, by first and stop.

    Minus infinity of none. A backward goes from the last layer to the first: what one holds comes on top of what those
    before it kept.
    """
    layers = len(values)
    kept = np.concatenate(([0.0], np.cumsum(values[:, _ACTIVATION])))
    besides = np.full((layers + 1, layers + 1), -inf)
    for first in reversed(range(layers)):
        own = values[first, _TRANSIENT] - (kept[first + 1 :] - kept[first + 1])
        besides[first, first + 1 :] = np.maximum(besides[first + 1, first + 1 :], own)
    return besides


class RankPeaks:
    """Every rank's peak: the largest of its rows' sums over stages.

    Parameters
    ----------
    schedule
        Whose order says what is held at once.
    limits
        Bytes that each rank may hold; one number: all of them; None: any.

    Attributes
    ----------
    rows
        How often what each stage holds counts, shape (rows, stages, 4), in the order of :data:`BYTES`.
    rank
        Of each row, shape (rows,).
    limits
        Of each rank, with room for rounding, shape (ranks,).
    holds
        Whether a rank holds a stage, shape (ranks, stages).

    Raises
    ------
    CostError
        For limits that are not one a rank, or not more than 0.
    """

    def __init__(self, schedule: Schedule, limits: float | Sequence[float] | None = None) -> None:
        ranks, stages = schedule.ranks, schedule.stages
        given = np.atleast_1d(np.inf if limits is None else np.asarray(limits, np.float64))
        if len(given) not in (1, ranks) or not (given > 0).all():
            raise CostError(
                f"memory limits are one, or one for each of {ranks} ranks, of more than 0", field="memory_limit"
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
        self.limits: Floats = np.broadcast_to(given, (ranks,)) * (1 + tolerances.MEMORY)
        self.holds: Bools = copies > 0
        self._here = [np.flatnonzero(stages_of) for stages_of in self.holds]
        self._own = [
            self.rows[self.rank == rank][:, here].reshape(int((self.rank == rank).sum()), -1).T
            for rank, here in enumerate(self._here)
        ]

    @property
    def bounded(self) -> bool:
        """Whether any rank has a limit."""
        return bool(np.isfinite(self.limits).any())

    def peaks(self, features: Floats) -> Floats:
        """Return the peak of every rank, shape (..., ranks), for stages with these features, shape (..., stages, 7)."""
        most = np.empty((*features.shape[:-2], len(self.limits)))
        for rank, here in enumerate(self._here):
            own = features[..., here, BYTES].reshape(*features.shape[:-2], -1)
            most[..., rank] = (own @ self._own[rank]).max(axis=-1)
        return most

    def over(self, features: Floats) -> Floats:
        """Return the bytes by which all ranks exceed their limits, shape (...)."""
        if not self.bounded:
            return np.zeros(features.shape[:-2])
        excess: Floats = np.maximum(self.peaks(features) - self.limits, 0.0).sum(axis=-1)
        return excess
