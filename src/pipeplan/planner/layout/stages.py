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
BYTES = slice(3, 6)
"""Of the last axis of a table: F, I and W; activations, what of them only W frees, static bytes."""

FEATURES = 6

TRANSIENT = FEATURES
"""Behind them: the most that an op holds besides. It does not add up over layers or stages."""

_TRANSFER = FEATURES + 1


@dataclass(frozen=True)
class StageTables:
    """Tables of shape (choices, layers + 1, layers + 1, 7), by first layer and one past the last.

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
        layers, bound = self.layers, (*start, *end)
        base = np.array([_values(layer, layer.options[0]) for layer in self.parts.middle])
        chosen = np.array([_values(layer, layer.option(choice.name)) for layer in self.parts.middle])
        first, stop = np.indices((layers + 1, layers + 1))
        count = choice.layers
        until = stop if count is None else np.minimum(first + count, stop)
        sums = _between(chosen, first, until) + _between(base, until, stop)
        width = layers if count is None else count
        sums[..., TRANSIENT] = _largest(chosen[:, TRANSIENT], width)
        # Behind the chosen ones stand those that do what the first option says.
        behind = sums[: layers + 1 - width, :, TRANSIENT]
        np.maximum(behind, _largest(base[:, TRANSIENT], layers)[width:], out=behind)
        here = [_values(layer, layer.option(choice.name) if count is None else layer.options[0]) for layer in bound]
        for values in here:
            transient = np.maximum(sums[..., TRANSIENT], values[TRANSIENT])
            sums += values
            sums[..., TRANSIENT] = transient
        moved = sums[..., _TRANSFER] / self.host_bandwidth
        sums[..., 0] = np.maximum(sums[..., 0], moved)
        sums[..., 1] = np.maximum(sums[..., 1], moved)
        least = (0 if bound else 1) if count is None else count + 1
        sums[stop - first < least] = inf
        return sums[..., :_TRANSFER]


def _values(layer: LaidLayer, option: LayerOption) -> Floats:
    return np.array(
        [
            option.forward,
            option.backward_input,
            option.backward_weight,
            option.activation_bytes,
            option.freed_by_weight,
            layer.static_bytes,
            option.transient_bytes,
            option.transfer_bytes,
        ]
    )


def _between(values: Floats, first: NDArray[np.intp], stop: NDArray[np.intp]) -> Floats:
    """Sums of the layers from first to before stop."""
    before = np.concatenate((np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)))
    sums: Floats = before[stop] - before[first]
    return sums


def _largest(values: Floats, width: int) -> Floats:
    """``largest[first, stop]``: of the layers from first to before stop, at most ``width`` of them; 0 of none."""
    layers = len(values)
    largest = np.zeros((layers + 1, layers + 1))
    for first in range(layers):
        running = np.maximum.accumulate(values[first : first + width])
        largest[first, first + 1 : first + 1 + len(running)] = running
        largest[first, first + 1 + len(running) :] = running[-1]
    return largest
