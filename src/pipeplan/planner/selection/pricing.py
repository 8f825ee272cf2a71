"""What layers take and hold, as sums from the first on, so that any stage's share is a difference; each priced once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.hardware import Cluster
from pipeplan.model import Floats
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.per_layer import LayerCosts, execution_of, layer_costs
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.workload import ModelShape, layers_of

FORWARD, INPUT, WEIGHT, KEPT, UNTIL_WEIGHT, DENSE, EXPERT = range(7)
"""Columns of a layer: seconds of F, I (recomputation in it) and W; bytes kept from F on, and until W; parameters."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Layers in order, and their sums.

    Attributes
    ----------
    sums
        Of the columns over the layers before each; shape (layers + 1, 7).
    transient
        What the backward of each layer holds besides; bytes, shape (layers,).
    before, behind
        Layers that stand before the first transformer layer, and behind the last.
    longest
        F, I and W of the longest layer together; seconds.
    """

    sums: Floats
    transient: Floats
    before: int
    behind: int
    longest: float

    @classmethod
    def of(cls, layers: Sequence[LayerCosts]) -> Sums:
        """Sum up all layers of a model."""
        known = {id(layer): layer for layer in layers}
        row = {number: _row(layer) for number, layer in known.items()}
        rows = np.array([row[id(layer)] for layer in layers])
        kinds = [layer.layer.kind for layer in layers]
        inner = [index for index, kind in enumerate(kinds) if kind in {"dense", "moe"}]
        return cls(
            np.concatenate((np.zeros((1, rows.shape[1])), rows.cumsum(axis=0))),
            np.array([layer.layer.transient_bytes for layer in layers]),
            inner[0],
            len(kinds) - 1 - inner[-1],
            float(rows[:, [FORWARD, INPUT, WEIGHT]].sum(axis=1).max()),
        )

    @property
    def total(self) -> Floats:
        """Return the sums of the whole model, shape (7,)."""
        whole: Floats = self.sums[-1]
        return whole

    def edges(self, layout: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first layer of each stage of a layout, and the end of the last one, shape (stages + 1,)."""
        edges = np.concatenate(([0], np.cumsum(layout))) + self.before
        edges[0], edges[-1] = 0, len(self.sums) - 1
        return edges

    def of_stages(self, layout: NDArray[np.int64]) -> Floats:
        """Return the sums of each stage of a layout with the model's ends on the first and the last, shape (stages, 7)."""
        stages: Floats = np.diff(self.sums[self.edges(layout)], axis=0)
        return stages

    def transients(self, layout: NDArray[np.int64]) -> Floats:
        """Return the bytes that the backward of each stage's last layer holds besides, shape (stages,)."""
        edges = self.edges(layout)
        of_last: Floats = np.where(edges[1:] > edges[:-1], self.transient[np.maximum(edges[1:] - 1, 0)], 0.0)
        return of_last


def _row(layer: LayerCosts) -> tuple[float, ...]:
    work = layer.layer
    return (
        layer.forward,
        layer.backward_input,
        layer.backward_weight,
        work.kept_bytes,
        work.bytes_until_weight,
        work.parameters.dense,
        work.parameters.expert,
    )


class Pricing:
    """Sums of a model's layers on a cluster, by what they depend on."""

    def __init__(self, model: ModelShape, cluster: Cluster, calibration: TimeFactors | None = None) -> None:
        self.model = model
        self.cluster = cluster
        self.calibration = calibration
        self._known: dict[Hashable, Sums] = {}
        self._parameters: dict[Hashable, tuple[float, float]] = {}

    def sums(self, configuration: Configuration) -> Sums:
        """Return the sums of the layers of a configuration."""
        shards = (configuration.data * configuration.context, configuration.expert_data)
        key = (
            execution_of(configuration),
            configuration.software,
            configuration.recompute,
            shards if configuration.gathers_weights else None,
        )
        found = self._known.get(key)
        if found is None:
            found = Sums.of(layer_costs(self.model, self.cluster, configuration, calibration=self.calibration))
            self._known[key] = found
        return found

    def parameters(self, configuration: Configuration) -> tuple[float, float]:
        """Return the dense and the experts' parameters of the whole model, split by the degrees."""
        key = (configuration.tensor, configuration.expert, configuration.expert_tensor, configuration.software)
        known = self._parameters.get(key)
        if known is None:
            execution = replace(execution_of(configuration), microbatch_size=1, context=1)
            layers = [(layer.parameters, layer.count) for layer in layers_of(self.model, execution)]
            known = (
                float(sum(held.dense * count for held, count in layers)),
                float(sum(held.expert * count for held, count in layers)),
            )
            self._parameters[key] = known
        return known
