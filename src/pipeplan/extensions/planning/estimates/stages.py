"""Costs of stages: work of each layer in seconds by kind, summed over the layers of each stage, for one microbatch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from pipeplan.costs import COMPUTE, OPS, OpSegments, in_sequence
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.memory_rules import memory_rules
from pipeplan.extensions.planning.estimates.seconds import (
    KINDS,
    UNCALIBRATED,
    TimeFactors,
    WorkMachine,
    collective_factor,
    exposed,
    work_seconds,
)
from pipeplan.extensions.planning.estimates.segments import layer_segments
from pipeplan.extensions.planning.estimates.software import gathers_weights, kept_whole, software
from pipeplan.extensions.planning.hardware import (
    FORMATS,
    Cluster,
    Gpu,
    collective_time,
    host_time,
    memory_time,
    p2p_time,
)
from pipeplan.extensions.planning.workload import (
    Execution,
    LayerWork,
    ModelShape,
    Operation,
    Precision,
    RankParameters,
    layers_of,
    recomputed,
)
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Floats


def format_peak(gpu: Gpu, precision: Precision) -> float:
    """Return the peak FLOP/s of a product's format; that of the next wider format if the GPU does not support it."""
    for form in (FORMATS[precision], "fp8", "bf16"):
        if form in gpu.peak and (form != "fp8" or FORMATS[precision] != "bf16"):
            return gpu.peak[form]
    return gpu.peak["bf16"]


def execution_of(configuration: Configuration) -> Execution:
    """Return how a rank runs its layers, before recomputation and offload, which may differ by stage."""
    trainer = software(configuration.software)
    return Execution(
        microbatch_size=configuration.microbatch_size,
        sequence=configuration.sequence,
        tensor=configuration.tensor,
        context=configuration.context,
        expert=configuration.expert,
        expert_tensor=configuration.expert_tensor,
        sequence_parallel=configuration.sequence_parallel and configuration.tensor > 1,
        precision=configuration.precision,
        attention=trainer.attention,
        dropout=trainer.dropout,
        fused_loss=trainer.fused_loss,
        loss_bytes=memory_rules(configuration.software).logit_bytes(configuration.tensor, configuration.expert),
        small_inputs=memory_rules(configuration.software).small_inputs,
        small_activations=memory_rules(configuration.software).small_activations,
        fused_activation=trainer.fused_activation,
        fused_norms=not trainer.apart_bytes,
        fp32_gradients=trainer.fp32_gradients,
        context_method=trainer.context_method,
        framework=trainer.framework,
        adapter_rank=configuration.lora_rank,
        adapter_bytes=trainer.adapter_bytes,
        adapted=trainer.adapts if configuration.lora_rank else frozenset(),
        document=configuration.document,
        gather_bytes=1.0 if trainer.gathers_small and configuration.precision == "fp8" else 2.0,
    )


@dataclass(frozen=True, slots=True, eq=False)
class LayerCosts:
    """Costs of one layer on one rank for one microbatch, after recomputation.

    ``seconds`` are those of F, I and W by kind of work, shape (3, kinds); ``recompute`` those of the kernels in I that run a
    second time.
    """

    layer: LayerWork
    seconds: Floats
    recompute: float

    @property
    def forward(self) -> float:
        """Seconds of F."""
        return float(self.seconds[0].sum())

    @property
    def backward_input(self) -> float:
        """Seconds of I."""
        return float(self.seconds[1].sum())

    @property
    def backward_weight(self) -> float:
        """Seconds of W."""
        return float(self.seconds[2].sum())


def layer_sums(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    *,
    recompute: tuple[str, ...] | None = None,
    calibration: TimeFactors | None = None,
) -> LayerSums:
    """Return the costs of every layer in order (embedding, transformer layers, MTP, head, loss) with cumulative sums.

    ``recompute`` are the modules to recompute; None: the configuration's.
    """
    modules = configuration.recompute if recompute is None else recompute
    machine = machine_of(cluster, configuration, calibration)
    return _summed(model, machine, frozenset(modules), _Sharding.of(configuration))


def machine_of(cluster: Cluster, configuration: Configuration, calibration: TimeFactors | None = None) -> WorkMachine:
    """Return what the times of a configuration's layers depend on."""
    execution = execution_of(configuration)
    return WorkMachine(cluster, software(configuration.software), execution, calibration or UNCALIBRATED)


@lru_cache(maxsize=4096)
def segments_of(machine: WorkMachine, costs: LayerCosts) -> OpSegments:
    """Return the segments of a layer."""
    return layer_segments(machine, costs.layer, costs.seconds)


@dataclass(frozen=True, slots=True)
class _Sharding:
    """Number of ranks over which parameters are sharded and gathered for every microbatch, and the distance between them.

    The third number is that of the copies of such a group, over which gradients are summed, too. ``scatters`` is the number
    of times that a microbatch's gradients are scattered: less than once if several are summed first.
    """

    dense: tuple[int, int, int]
    expert: tuple[int, int, int]
    scatters: float = 1.0

    @classmethod
    def of(cls, configuration: Configuration) -> _Sharding | None:
        """Return the sharding; None if a rank keeps its weights between microbatches."""
        if not gathers_weights(configuration):
            return None
        return cls(
            (configuration.shards, configuration.tensor, configuration.replicate),
            (
                configuration.expert_shards,
                configuration.expert * configuration.expert_tensor,
                configuration.expert_replicate,
            ),
            1 / configuration.microbatches if kept_whole(configuration)[1] else 1.0,
        )

    def seconds(self, machine: WorkMachine, parameters: RankParameters, operation: Operation, width: float) -> float:
        """Return the seconds of gathering parameters, or reducing their gradients, of ``width`` bytes each."""
        apart = machine.cluster.joined if machine.software.sharded_by == "ranks" else 1
        total = 0.0
        groups = ((parameters.dense, self.dense), (parameters.expert, self.expert))
        for size, (ranks, stride, copies) in groups:
            distance = max(stride, apart)
            factor = collective_factor(machine.factors, machine.cluster, ranks, distance)
            total += factor * collective_time(machine.cluster, operation, width * size, ranks, distance)
            if operation == "reduce_scatter":
                factor = collective_factor(machine.factors, machine.cluster, copies, distance * ranks)
                total += factor * collective_time(
                    machine.cluster, "all_reduce", width * size / ranks, copies, distance * ranks
                )
        return total


@lru_cache(maxsize=4096)
def _summed(model: ModelShape, machine: WorkMachine, modules: frozenset[str], sharding: _Sharding | None) -> LayerSums:
    layers: list[LayerCosts] = []
    costs: dict[_PlainLayer, LayerCosts] = {}
    for plain in _plain_layers(model, machine):
        if plain not in costs:
            costs[plain] = _costs_of(machine, plain, modules, sharding, model.hidden)
        layers.extend([costs[plain]] * plain.count)
    return LayerSums.of(tuple(layers))


@dataclass(frozen=True, slots=True, eq=False)
class _PlainLayer:
    """One of ``count`` equal layers in a row, and its seconds of F, I and W by kind of work without recomputation."""

    layer: LayerWork
    count: int
    seconds: Floats


@lru_cache(maxsize=2048)
def _plain_layers(model: ModelShape, machine: WorkMachine) -> tuple[_PlainLayer, ...]:
    """Return a model's layers in order; equal ones share one object. They are priced once for all recomputations."""
    layers = layers_of(model, machine.execution)
    distinct = {id(layer): layer for layer in layers}
    plain = {number: _plain(machine, layer) for number, layer in distinct.items()}
    return tuple(plain[id(layer)] for layer in layers)


def _plain(machine: WorkMachine, layer: LayerWork) -> _PlainLayer:
    works = (layer.forward, layer.backward_input, layer.backward_weight)
    seconds = np.array([work_seconds(machine, work, layer.kind) for work in works])
    return _PlainLayer(replace(layer, count=1), layer.count, seconds)


def _costs_of(
    machine: WorkMachine, plain: _PlainLayer, modules: frozenset[str], sharding: _Sharding | None, hidden: int
) -> LayerCosts:
    layer, seconds, again = plain.layer, plain.seconds.copy(), 0.0
    after = recomputed(layer, modules & layer.recomputable.keys())
    if after is not layer:
        # Recomputation changes only I: it is the additional kernel time there.
        seconds[1] = work_seconds(machine, after.backward_input, layer.kind)
        again = max(0.0, float((seconds[1] - plain.seconds[1])[:_KERNELS].sum()))
    if layer.kind in _DECODER:
        seconds[:, _MEMORY] += _further_passes(machine, hidden, again=bool(again))
    # Separate kernels that accumulate the weight gradients.
    size, fp16 = machine.software.adds_bytes, machine.software.adds_fp16_bytes
    if machine.execution.precision == "fp16" and fp16 is not None:
        size = fp16
    added = size * (after.parameters.dense + after.parameters.expert)
    seconds[2, _MEMORY] += memory_time(machine.cluster.gpu, added)
    if sharding is not None:
        _gather(machine, after, sharding, seconds)
    return LayerCosts(after, seconds, again)


_KERNELS = KINDS.index("host")
"""Number of kinds of work that are kernels; they precede host overhead and communication in ``KINDS``."""

_DATA, _MEMORY = KINDS.index("data"), KINDS.index("memory")
_DECODER = ("dense", "moe", "mtp")


def _further_passes(machine: WorkMachine, hidden: int, *, again: bool) -> Floats:
    """Return the seconds in F, I and W of a layer's passes that fused kernels would not need.

    Eager norms and rotary positions run once in F, twice in I, and a third time if they are recomputed (``again``). Of the
    scaling of operands, a quarter each belongs to F, recomputation, I and W.
    """
    run, gpu = machine.execution, machine.cluster.gpu
    numbers = run.tokens * hidden
    apart = memory_time(gpu, machine.software.apart_bytes * numbers / (run.tensor if run.sequence_parallel else 1))
    scaled = memory_time(gpu, machine.software.scaling_bytes * numbers / 4) if run.precision == "fp8" else 0.0
    return np.array([apart + scaled, (3 if again else 2) * apart + 2 * scaled, scaled])


def _gather(machine: WorkMachine, layer: LayerWork, sharding: _Sharding, seconds: Floats) -> None:
    """Add the gathering of weights for F and for the backward, and the scattering of gradients, overlapped with computation.

    Source: PyTorch FSDP, arXiv 2304.11277 sections 3.2 and 3.3: the next layer is gathered ahead.
    """
    width = 4.0 if machine.software.fp32_gradients else 2.0
    gathered = sharding.seconds(machine, layer.weights, "all_gather", 2.0)
    scattered = sharding.scatters * sharding.seconds(machine, layer.parameters, "reduce_scatter", width)
    held = machine.software.unpacks_bytes * (layer.weights.dense + layer.weights.expert)
    trained = layer.parameters.dense + layer.parameters.expert
    widened = 6.0 * trained if machine.software.fp32_gradients else 0.0  # read 16-bit gradients, write 32-bit ones
    for row, size in ((0, held), (1, held), (2, widened)):
        seconds[row, _MEMORY] += memory_time(machine.cluster.gpu, size)
    # Rows are F, I and W: weights are gathered for F and for I, gradients are scattered after W.
    for row, communication in ((0, gathered), (1, gathered), (2, scattered)):
        cover = float(seconds[row].sum()) if "data" in machine.software.hides else 0.0
        seconds[row, _DATA] += exposed(communication, cover)


@dataclass(frozen=True, slots=True, eq=False)
class LayerSums:
    """Layers with cumulative sums from the first one: seconds, and recomputation, kept bytes and bytes until W.

    ``before`` is the number of layers in front of the first transformer layer.
    """

    layers: tuple[LayerCosts, ...]
    seconds: Floats
    scalars: Floats
    before: int

    @classmethod
    def of(cls, layers: tuple[LayerCosts, ...]) -> LayerSums:
        """Return the cumulative sums of layers in order."""
        # Equal layers share one object, so its scalars are computed once.
        of_one = {
            number: (costs.recompute, costs.layer.kept_bytes, costs.layer.bytes_until_weight)
            for number, costs in {id(costs): costs for costs in layers}.items()
        }
        # The first row is zero: nothing precedes the first layer.
        seconds = np.array([np.zeros((3, len(KINDS))), *(costs.seconds for costs in layers)])
        scalars = np.array([(0.0, 0.0, 0.0), *(of_one[id(costs)] for costs in layers)])
        before = sum(costs.layer.kind == "embedding" for costs in layers)
        return cls(layers, seconds.cumsum(axis=0), scalars.cumsum(axis=0), before)


_EMPTY = OpSegments(**dict.fromkeys(OPS, ((COMPUTE, 0.0),)))


@dataclass(frozen=True, slots=True, eq=False)
class StageCosts:
    """Costs of every stage for one microbatch.

    Attributes
    ----------
    layout, layers
        Number of transformer layers of each stage, and all of its layers: the embedding on the first, MTP, head and loss on
        the last.
    seconds, recompute
        Seconds of F, I and W by kind of work, shape (stages, 3, kinds), and of the kernels in each stage's I that are run a
        second time, shape (stages,).
    activation_bytes, weight_activation_bytes
        Bytes held from F for one microbatch, and the part that only W frees; shape (stages,).
    transfer, transfer_bytes
        Message between stages: seconds, and bytes per rank.
    offload
        Seconds that copies to and from the host add to F and I beyond what is hidden; shape (stages, 2).
    machine
        What the times depend on.
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
    machine: WorkMachine

    @property
    def forward(self) -> Floats:
        """Seconds of F on each stage; shape (stages,)."""
        times: Floats = self.seconds[:, 0].sum(axis=1) + self.offload[:, 0]
        return times

    @property
    def backward_input(self) -> Floats:
        """Seconds of I on each stage, including recomputation; shape (stages,)."""
        times: Floats = self.seconds[:, 1].sum(axis=1) + self.offload[:, 1]
        return times

    @property
    def backward_weight(self) -> Floats:
        """Seconds of W on each stage; shape (stages,)."""
        times: Floats = self.seconds[:, 2].sum(axis=1)
        return times

    def segments(self, forward: Floats, inputs: Floats, weights: Floats) -> tuple[OpSegments, ...]:
        """Return the segments of each stage, whose last computations fill its times of F, I and W."""
        stages = []
        for layers, *times in zip(self.layers, forward, inputs, weights, strict=True):
            of_layers = in_sequence([segments_of(self.machine, layer) for layer in layers]) if layers else _EMPTY
            filled = {}
            for op, time in zip(OPS, times, strict=True):
                *others, (lane, last) = getattr(of_layers, op)
                filled[op] = (*others, (lane, max(0.0, last + float(time) - of_layers.time(op))))
            stages.append(OpSegments(**filled))
        return tuple(stages)


def even_layout(layers: int, stages: int) -> tuple[int, ...]:
    """Return an even split of layers over stages, with the remainder on the earlier stages."""
    least, more = divmod(layers, stages)
    return tuple(least + (stage < more) for stage in range(stages))


def layout_of(model: ModelShape, configuration: Configuration) -> tuple[int, ...]:
    """Return the number of transformer layers of each stage. Raises ShapeError if the layout has another number."""
    layout = configuration.layers
    if layout is None:
        return even_layout(model.layers, configuration.stages)
    if sum(layout) != model.layers or min(layout) < 0:
        raise ShapeError(f"layers add up to {sum(layout)}; expected {model.layers} for {model.name}", field="layers")
    return layout


def stage_costs(
    model: ModelShape, cluster: Cluster, configuration: Configuration, *, calibration: TimeFactors | None = None
) -> StageCosts:
    """Return the costs of each stage for one microbatch.

    Raises PipeplanError if the degrees do not divide the model, or the layout does not match the model or the stages.
    """
    layout = layout_of(model, configuration)
    by_stage = configuration.recompute_by_stage or (configuration.recompute,) * len(layout)
    sums_of = {
        modules: layer_sums(model, cluster, configuration, recompute=modules, calibration=calibration)
        for modules in dict.fromkeys(by_stage)
    }
    # A stage's costs are the difference of two cumulative sums; the ends get embedding, MTP, head and loss.
    stages: list[tuple[LayerCosts, ...]] = []
    seconds, scalars = [], []
    for stage, (start, end) in enumerate(pairwise(accumulate(layout, initial=0))):
        sums = sums_of[by_stage[stage]]
        first = 0 if stage == 0 else start + sums.before
        last = len(sums.layers) if stage == len(layout) - 1 else end + sums.before
        stages.append(sums.layers[first:last])
        seconds.append(sums.seconds[last] - sums.seconds[first])
        scalars.append(sums.scalars[last] - sums.scalars[first])
    times = np.maximum(np.array(seconds), 0.0)
    recompute, kept, until_weight = np.array(scalars).T
    # Copies of activations to the host overlap with F, copies back with I: only the time beyond these is added.
    share = np.broadcast_to(np.asarray(configuration.offload, np.float64), (len(layout),))
    beyond = np.zeros((len(layout), 2))
    if share.any():
        copying = np.array([host_time(cluster.gpu, moved) for moved in share * kept])
        beyond = np.maximum(copying[:, None] - times[:, :2].sum(axis=2), 0.0)
    message = transfer_bytes(model, configuration)
    return StageCosts(
        layout=layout,
        layers=tuple(stages),
        seconds=times,
        recompute=recompute,
        activation_bytes=kept * (1 - share),
        weight_activation_bytes=until_weight,
        transfer=transfer_seconds(cluster, configuration, message),
        transfer_bytes=message,
        offload=beyond,
        machine=machine_of(cluster, configuration, calibration),
    )


def transfer_bytes(model: ModelShape, configuration: Configuration) -> float:
    """Return the bytes of one rank's message between stages: its shard of the 16-bit activations."""
    tokens = configuration.microbatch_size * configuration.sequence / configuration.context
    # 2 bytes per number; tensor ranks send their shard, the receivers gather (arXiv 2104.04473 section 4.1).
    return 2.0 * tokens * model.hidden / configuration.tensor


def transfer_seconds(cluster: Cluster, configuration: Configuration, message: float) -> float:
    """Return the seconds of a message between neighboring pipeline ranks, which are t c d GPUs apart."""
    if configuration.pipeline == 1:
        return 0.0
    apart = configuration.tensor * configuration.context * configuration.data
    return p2p_time(cluster, message, apart, ranks=configuration.pipeline)
