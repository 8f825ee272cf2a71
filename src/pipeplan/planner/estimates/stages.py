"""What every stage takes for one microbatch, its layers together: seconds by kind of work, what is kept, and a message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from pipeplan.errors import ShapeError
from pipeplan.hardware import Cluster, host_time, p2p_time
from pipeplan.model import Floats
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.per_layer import LayerCosts, LayerSums, layer_sums
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.workload import ModelShape


@dataclass(frozen=True, slots=True, eq=False)
class StageCosts:
    """What each stage takes for one microbatch.

    Attributes
    ----------
    layout
        Transformer layers on each stage.
    layers
        Of each stage: embedding first, MTP, head and loss last.
    seconds
        Of F, I and W by kind of work, shape (stages, 3, kinds).
    recompute
        Kernels in each stage's I that are run again; seconds, shape (stages,).
    activation_bytes, weight_activation_bytes
        Held from F on for one microbatch, and the part that only W frees; shape (stages,).
    transfer, transfer_bytes
        A message between stages: seconds, and bytes of one rank.
    offload
        What copying to and from the host adds to F and to I where it is not hidden; seconds, shape (stages, 2).
    """

    layout: tuple[int, ...]
    layers: tuple[tuple[LayerCosts, ...], ...]
    seconds: Floats
    recompute: Floats
    activation_bytes: Floats
    weight_activation_bytes: Floats
    transfer: float
    transfer_bytes: float
    offload: Floats

    @property
    def forward(self) -> Floats:
        """F of each stage; seconds, shape (stages,)."""
        times: Floats = self.seconds[:, 0].sum(axis=1) + self.offload[:, 0]
        return times

    @property
    def backward_input(self) -> Floats:
        """I, with what is recomputed before it; seconds, shape (stages,)."""
        times: Floats = self.seconds[:, 1].sum(axis=1) + self.offload[:, 1]
        return times

    @property
    def backward_weight(self) -> Floats:
        """W; seconds, shape (stages,)."""
        times: Floats = self.seconds[:, 2].sum(axis=1)
        return times


def even_layout(layers: int, stages: int) -> tuple[int, ...]:
    """Layers on each stage, as even as they go, earlier stages with more."""
    least, more = divmod(layers, stages)
    return tuple(least + (stage < more) for stage in range(stages))


def layout_of(model: ModelShape, configuration: Configuration) -> tuple[int, ...]:
    """Transformer layers on each stage.

    Raises
    ------
    ShapeError
        For a layout of another number of stages or layers.
    """
    if configuration.layers is None:
        return even_layout(model.layers, configuration.stages)
    layout = configuration.layers
    if len(layout) != configuration.stages:
        raise ShapeError(
            f"layers: {len(layout)} values for {configuration.stages} stages ({configuration.pipeline} ranks of "
            f"{configuration.chunks} chunks)",
            field="layers",
        )
    if sum(layout) != model.layers or min(layout) < 0:
        raise ShapeError(f"layers add up to {sum(layout)}, but {model.name} has {model.layers}", field="layers")
    return layout


def stage_costs(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    *,
    calibration: TimeFactors | None = None,
) -> StageCosts:
    """What each stage takes for one microbatch.

    Raises
    ------
    PipeplanError
        For degrees that do not split the model so, or a layout that is not of this model and these stages.
    """
    layout = layout_of(model, configuration)
    by_modules: dict[tuple[str, ...], LayerSums] = {}
    stages: list[tuple[LayerCosts, ...]] = []
    seconds, recompute, kept, until_weight = [], [], [], []
    for stage, (start, end) in enumerate(pairwise(accumulate(layout, initial=0))):
        modules = (
            configuration.recompute_by_stage[stage] if configuration.recompute_by_stage else configuration.recompute
        )
        if modules not in by_modules:
            by_modules[modules] = layer_sums(model, cluster, configuration, modules, calibration)
        sums = by_modules[modules]
        first, last = sums.of_stage(start, end, stage == 0, stage == len(layout) - 1)
        stages.append(sums.layers[first:last])
        seconds.append(sums.seconds[last] - sums.seconds[first])
        recompute.append(sums.scalars[last, 0] - sums.scalars[first, 0])
        kept.append(sums.scalars[last, 1] - sums.scalars[first, 1])
        until_weight.append(sums.scalars[last, 2] - sums.scalars[first, 2])
    message = transfer_bytes(model, configuration)
    costs = StageCosts(
        layout=layout,
        layers=tuple(stages),
        seconds=np.maximum(np.array(seconds), 0.0),
        recompute=np.array(recompute),
        activation_bytes=np.array(kept),
        weight_activation_bytes=np.array(until_weight),
        transfer=transfer_seconds(cluster, configuration, message),
        transfer_bytes=message,
        offload=np.zeros((len(layout), 2)),
    )
    return _offloaded(costs, cluster, configuration)


def transfer_bytes(model: ModelShape, configuration: Configuration) -> float:
    """Return the bytes of a message between stages from one rank: its shard of 16-bit activations."""
    tokens = configuration.microbatch_size * configuration.sequence / configuration.context
    return 2.0 * tokens * model.hidden / configuration.tensor


def transfer_seconds(cluster: Cluster, configuration: Configuration, message: float) -> float:
    """Return the seconds of a message between neighbouring pipeline ranks, which are t c d GPUs apart."""
    if configuration.pipeline == 1:
        return 0.0
    apart = configuration.tensor * configuration.context * configuration.data
    return p2p_time(cluster, message, apart, ranks=configuration.pipeline)


def _offloaded(costs: StageCosts, cluster: Cluster, configuration: Configuration) -> StageCosts:
    """Return the costs with a share of the kept bytes moved to the host, hidden behind F and I as far as these take."""
    share = np.broadcast_to(np.asarray(configuration.offload, np.float64), (len(costs.layout),))
    if not share.any():
        return costs
    copying = np.array([host_time(cluster.gpu, moved) for moved in share * costs.activation_bytes])
    busy = np.stack((costs.forward, costs.backward_input), axis=1)
    return replace(
        costs,
        activation_bytes=costs.activation_bytes * (1 - share),
        weight_activation_bytes=costs.weight_activation_bytes,
        offload=np.maximum(copying[:, None] - busy, 0.0),
    )
