"""What a stage takes and holds, for every run of layers that it can have and everything that these can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Floats
from pipeplan.planner.layout.laid import LaidLayer, LayerOption, Parts, StageOption

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

    parts: Parts
    choices: tuple[StageOption, ...]
    host_bandwidth: float = inf

    @property
    def layers(self) -> int:
        """How many are laid out."""
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
    """Sums of the layers from first to before stop."""
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
