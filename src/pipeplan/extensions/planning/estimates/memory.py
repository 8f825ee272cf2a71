"""Peak memory of every rank: parameters and their state, activations that the schedule keeps, and transients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

import numpy as np

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.memory_rules import MemoryRules, Unit, memory_rules
from pipeplan.extensions.planning.estimates.running import hides_exchanges
from pipeplan.extensions.planning.estimates.segments import is_exchange
from pipeplan.extensions.planning.estimates.software import gathers_weights, kept_whole, software
from pipeplan.extensions.planning.results import GpuMemory
from pipeplan.extensions.planning.workload import (
    Gemm,
    GroupedGemm,
    LayerWork,
    RankParameters,
    State,
    offloaded,
    state_bytes,
)
from pipeplan.model import Floats, Kind, Schedule, memory_levels

_LAYERS = frozenset({"dense", "moe", "mtp"})
"""Kinds of layers whose products use the layers' format and whose sharded parameters are gathered layer by layer."""


def rank_memory(
    stages: Sequence[Sequence[LayerWork]], schedule: Schedule, configuration: Configuration, message: float = 0.0
) -> tuple[GpuMemory, ...]:
    """Return the peak memory that the framework of every rank has allocated.

    The schedule is walked op by op: when a backward starts, its rank holds everything that forwards kept, plus the op's own
    transients. The walk uses no closed form, so it holds for every schedule. A pair that hides exchanges is walked layer by
    layer: each layer of the forward is held, with both ends of its exchange, before a layer of the backward is freed.

    ``stages`` are the layers of each in order, with recomputation applied; ``configuration.offload`` is applied here. Of the
    schedule, fewer microbatches than the step's suffice if they fill the pipeline. ``message`` is the bytes of one rank's
    message between stages.
    """
    rules = memory_rules(configuration.software)
    shares = np.broadcast_to(np.asarray(configuration.offload, np.float64), (len(stages),))
    held = [
        _Stage.of(layers, float(share), sharded=configuration.zero >= 3, unit=rules.gathers)
        for layers, share in zip(stages, shares, strict=True)
    ]
    peaks = _Peaks.of(schedule, held, layered=hides_exchanges(configuration))
    memory = []
    for rank in range(schedule.ranks):
        places = [int(stage) for copy in schedule.placement.table for stage in np.flatnonzero(copy == rank)]
        layers = [layer for stage in places for layer in stages[stage]]
        if rules.whole_embedding:
            layers = [_with_whole_embedding(layer, configuration.tensor) for layer in layers]
        state = _state(layers, configuration, rules)
        kept, transient = float(peaks.kept[rank]), float(peaks.transient[rank])
        transient += _placeholders(layers) if rules.placeholders else 0.0
        buffers, gathered = _buffers(layers, configuration, rules), _gathered(layers, configuration, rules)
        # What is reserved is the sum of what the streams' pools held at most; what is allocated peaks at one moment.
        torch = software(configuration.software).framework == "pytorch"
        if torch and gathers_weights(configuration) and not rules.reserved:
            kept, transient, gathered = _fullest_moment(layers, configuration, rules, share=float(shares[0]))
        if rules.keeps_messages:
            # Every stage but the first receives activations, every stage but the last gradients.
            received = sum((stage > 0) + (stage < len(stages) - 1) for stage in places)
            buffers += received * configuration.microbatches * message
        reserved = rules.reserved * (state.total + kept + transient + gathered + buffers)
        memory.append(
            GpuMemory.from_bytes(
                weights=state.weights,
                gradients=state.gradients,
                optimizer=state.optimizer,
                activations=kept,
                transient=transient,
                gathered=gathered,
                buffers=buffers + reserved,
            )
        )
    return tuple(memory)


def _with_whole_embedding(layer: LayerWork, tensor: int) -> LayerWork:
    return replace(layer, parameters=layer.parameters * tensor) if layer.kind == "embedding" else layer


def _buffers(layers: Sequence[LayerWork], configuration: Configuration, rules: MemoryRules) -> float:
    """Return the bytes of what exists for the whole step: workspaces, scores, and a pipeline's outputs."""
    size = rules.workspace
    if any(layer.parameters.expert for layer in layers):
        size += rules.grouped_workspace
    if rules.score_buffer:
        size += _score_buffer(layers)
    if rules.keeps_outputs and configuration.pipeline > 1:
        heads = (work for layer in layers for work in layer.forward if isinstance(work, Gemm) and work.name == "head")
        size += configuration.microbatches * sum(2.0 * work.rows * work.columns for work in heads)
    return size


@dataclass(frozen=True, slots=True)
class _Stage:
    """Bytes of one stage for one microbatch: kept by F, freed only by W, and transients of its backward.

    ``layers`` are the same of each layer in order, and the bytes of both ends of its largest exchange with experts.
    """

    kept: float
    until_weight: float
    transient: float
    layers: tuple[tuple[float, float, float, float], ...]

    @classmethod
    def of(cls, layers: Sequence[LayerWork], share: float, *, sharded: bool, unit: Unit) -> _Stage:
        """Return the bytes of a stage; a layer's transients come on top of what the layers before it kept."""
        # The backward goes from the last layer to the first: when a layer's backward runs, the layers after it have
        # freed their activations, so its transients are measured against what they kept.
        kept = until_weight = transient = 0.0
        sizes: dict[int, tuple[float, float, float]] = {}
        in_order: list[tuple[float, float, float, float]] = []
        for layer in reversed(layers):
            if id(layer) not in sizes:
                sizes[id(layer)] = _sizes(layer, share, unit if sharded else None)
            of_layer = sizes[id(layer)]
            exchanged = max((work.bytes for work in layer.forward if is_exchange(work)), default=0.0)
            in_order += [(*of_layer, 2.0 * exchanged)] * layer.count
            for _ in range(layer.count):
                transient = max(transient, of_layer[2] - kept)
                kept += of_layer[0]
                until_weight += of_layer[1]
        return cls(kept, until_weight, transient, tuple(reversed(in_order)))

    def beside(self, backward: _Stage, *, inputs: bool) -> tuple[float, float]:
        """Return what a forward of this stage and a backward hold at most, beyond what is held before both.

        The two numbers are activations and transients. ``inputs`` is True if W is still to come.
        """
        level, most = 0.0, (0.0, 0.0)
        for new, old in zip_longest(self.layers, reversed(backward.layers), fillvalue=(0.0, 0.0, 0.0, 0.0)):
            level += new[0]
            most = max(most, (level, old[2] + new[3]), key=sum)
            level -= old[0] - (old[1] if inputs else 0.0)
        return most


def _sizes(layer: LayerWork, share: float, unit: Unit | None) -> tuple[float, float, float]:
    """Return the bytes that a layer keeps, keeps until W, and needs in its backward.

    With sharded parameters, the backward also holds the whole gradient of the gathered unit, as far as it is trained: in 16
    bits, and in 32 bits for its reduction.
    """
    after = offloaded(layer, share)
    # 16-bit gradient plus its 32-bit copy for the reduction.
    gradient = (2 + 4) * _at_once(layer, layer.parameters, unit) if unit is not None and layer.kind in _LAYERS else 0.0
    return after.kept_bytes, after.bytes_until_weight, after.transient_bytes + gradient


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Activation bytes of each rank at its peak, and the transients of the op at that time; shape (ranks,)."""

    kept: Floats
    transient: Floats

    @classmethod
    def of(cls, schedule: Schedule, stages: Sequence[_Stage], *, layered: bool = False) -> _Peaks:
        """Walk the schedule: F's activations exist from its start, transients come on top of the level before.

        ``layered`` walks the two ops of a pair layer by layer.
        """
        columns, offsets = schedule.columns, schedule.offsets
        kept, until_weight, transients = np.array([(one.kept, one.until_weight, one.transient) for one in stages]).T
        after = memory_levels(schedule, kept, until_weight)
        # Level before each op: that after the previous op of the same rank, 0 at the start of a rank's row.
        before = np.concatenate(([0.0], after[:-1]))
        before[offsets[:-1][np.diff(offsets) > 0]] = 0.0
        # Only full and input backwards have transients on top of the level.
        of_op = (transients / schedule.slices)[columns.stage]
        transient = np.where(np.isin(columns.kind, (Kind.B, Kind.I)), of_op, 0.0)
        level = np.maximum(before + transient, after)
        besides = np.where(before + transient >= after, transient, 0.0)
        if layered:
            forward, backward = schedule.pairs
            first = np.minimum(forward, backward)
            ops = np.stack((columns.stage[forward], columns.stage[backward], columns.kind[backward] == Kind.I), axis=1)
            pairs, which = np.unique(ops, axis=0, return_inverse=True)
            sums = [stages[one].beside(stages[other], inputs=bool(inputs)) for one, other, inputs in pairs.tolist()]
            of_pair = np.array(sums).reshape(-1, 2)[which.ravel()]
            level[first], besides[first] = before[first] + of_pair.sum(axis=1), of_pair[:, 1]
            level[first + 1], besides[first + 1] = after[first + 1], 0.0
        held, most = np.zeros(schedule.ranks), np.zeros(schedule.ranks)
        for rank, (first, last) in enumerate(pairwise(offsets.tolist())):
            if first < last:
                peak = first + int(np.argmax(level[first:last]))
                held[rank], most[rank] = level[peak] - besides[peak], besides[peak]
        return cls(held, most)


_NONE = RankParameters()


def full_state(parameters: RankParameters, configuration: Configuration, frozen: RankParameters = _NONE) -> State:
    """Return the bytes of parameters, gradients and optimizer state during a step, without low-precision copies.

    Of ``frozen`` parameters, only the weights exist.

    Gradients and sharded parameters may stay whole until the step's last microbatch (:func:`kept_whole`); Megatron shards
    neither in a pipeline.
    """
    rules = memory_rules(configuration.software)
    shards, expert_shards = configuration.shards, configuration.expert_shards
    state, untrained = (
        state_bytes(
            held,
            zero=configuration.zero,
            shards=shards,
            expert_shards=expert_shards,
            gradient_bytes=rules.gradient_bytes,
            moment_bytes=rules.moment_bytes,
            masters=rules.masters,
        )
        for held in (parameters, frozen)
    )
    state = replace(state, weights=state.weights + untrained.weights)
    whole_weights, whole_gradients = kept_whole(configuration)
    if whole_weights:
        held = parameters + frozen
        gathered = (held.dense if shards > 1 else 0) + (held.expert if expert_shards > 1 else 0)
        state = replace(state, weights=state.weights + 2.0 * gathered)  # in 16 bits
    if whole_gradients:
        # The reduced gradients are in the memory of another stream, which the allocator does not share.
        reduced = state.gradients if rules.reserved else 0.0
        width = 4.0 if software(configuration.software).fp32_gradients else 2.0
        dense, expert = (width if ranks > 1 else rules.gradient_bytes for ranks in (shards, expert_shards))
        state = replace(state, gradients=dense * parameters.dense + expert * parameters.expert + reduced)
    return state


def _state(layers: Sequence[LayerWork], configuration: Configuration, rules: MemoryRules) -> State:
    trained, frozen = _parameters(layers)
    state = full_state(trained, configuration, frozen)
    if gathers_weights(configuration):
        return state
    in_layers = sum(
        (layer.weights.dense + layer.weights.expert) * layer.count for layer in layers if layer.kind in _LAYERS
    )
    return replace(state, weights=state.weights + rules.copy_bytes(configuration.precision) * in_layers)


def _parameters(layers: Sequence[LayerWork]) -> tuple[RankParameters, RankParameters]:
    """Return the trained and the frozen parameters of a rank.

    A copy of the embedding is among them if a layer needs it and the rank has none.
    """
    copied = max((layer.embedding_parameters for layer in layers), default=0)
    if any(layer.kind == "embedding" for layer in layers):
        copied = 0
    trained = sum((layer.parameters * layer.count for layer in layers), _NONE)
    frozen = sum((layer.frozen * layer.count for layer in layers), _NONE)
    copy = RankParameters(dense=copied)
    return (trained, frozen + copy) if frozen.dense else (trained + copy, frozen)


def _fullest_moment(
    layers: Sequence[LayerWork], configuration: Configuration, rules: MemoryRules, *, share: float
) -> tuple[float, float, float]:
    """Return kept, transient and gathered bytes at the fullest moment of a backward that gathers layer by layer.

    While a layer's backward runs, its weights and those of the layer before it are gathered, its 16-bit gradients grow, and
    the 32-bit copy of the last layer's gradients is being reduced. A group of both ends is reduced last. Source: PyTorch,
    ``torch/distributed/fsdp/_fully_shard``; a step of it on fake tensors has these parts.
    """
    order = [layer for layer in layers for _ in range(layer.count)]
    sizes = [_sizes(layer, share, None) for layer in order]
    level = np.cumsum([kept for kept, _, _ in sizes]).tolist()
    inside = [layer.kind in _LAYERS for layer in order]
    weights = [2.0 * (layer.weights.dense + layer.weights.expert) for layer in order]
    trained = [float(layer.parameters.dense + layer.parameters.expert) for layer in order]
    held = sum(size for size, within in zip(weights, inside, strict=True) if not within) if rules.keeps_ends else 0.0
    width = 4.0 if software(configuration.software).fp32_gradients else 2.0
    moments = []
    for place, (_, _, transient) in enumerate(sizes):
        before = weights[place - 1] if place and weights[place] and inside[place - 1] else 0.0
        own = weights[place] if inside[place] or not held else 0.0
        reduced = width * trained[place + 1] if place + 1 < len(order) and (inside[place] or not held) else 0.0
        grown = 2.0 * trained[place] if inside[place] else 0.0  # part of the transients at the ends
        moments.append((level[place], transient + reduced + grown, held + own + before))
    ends = sum(size for size, within in zip(trained, inside, strict=True) if not within)
    moments.append((level[0], (2.0 + width) * ends, held))
    return max(moments, key=sum)


def _gathered(layers: Sequence[LayerWork], configuration: Configuration, rules: MemoryRules) -> float:
    """Return the bytes of parameters gathered in 16 bits for products: both ends of the model, a layer, and the next one.

    FSDP2 gathers the ends for the whole microbatch, and each layer while the one before it runs. It gathers into a buffer
    of another stream, whose memory nothing else uses if the peak is what is reserved, and copies from there. Weights that
    stay whole are state.
    """
    unit = rules.gathers
    if configuration.zero < 3:
        return 0.0
    # 16-bit copies: both ends for the whole microbatch, and two of the largest layers (the current and the next one).
    ends = sum(layer.weights.dense for layer in layers if layer.kind not in _LAYERS)
    largest = max((_at_once(layer, layer.weights, unit) for layer in layers if layer.kind in _LAYERS), default=0.0)
    buffer = max(ends, largest) if rules.reserved else 0.0
    return 2.0 * (buffer + (ends + 2 * largest if gathers_weights(configuration) else 0.0))


def _at_once(layer: LayerWork, parameters: RankParameters, unit: Unit) -> float:
    """Return how many of a layer's parameters are gathered or reduced together: all of them, or those of a product.

    Backward has a product for the input of every weight: of its sizes, two are those of the weight.
    """
    if unit == "layer":
        return parameters.dense + parameters.expert
    sizes = [work.columns * work.inner for work in layer.backward_input if isinstance(work, Gemm) and work.copies == 1]
    grouped = [
        work.groups * work.columns * work.inner for work in layer.backward_input if isinstance(work, GroupedGemm)
    ]
    return min(max((*sizes, *grouped), default=0.0), parameters.dense + parameters.expert)


def _placeholders(layers: Sequence[LayerWork]) -> float:
    """Return the bytes of the 16-bit dummy tensors, one per weight shape, that replace gradients accumulated in place.

    Source: Transformer Engine from 2.3 on (``get_dummy_wgrad``); head and router are not its modules.
    """
    shapes: set[tuple[float, float]] = set()
    for layer in {id(layer): layer for layer in layers if layer.kind in _LAYERS}.values():
        for work in layer.backward_weight:
            if isinstance(work, Gemm) and work.name not in {"router", "head"}:
                shapes.add((work.rows, work.columns))
            if isinstance(work, GroupedGemm):
                shapes.add((work.columns, work.inner))
    return sum(2.0 * rows * columns for rows, columns in shapes)


def _score_buffer(layers: Sequence[LayerWork]) -> float:
    """Return the bytes of the largest score matrix (queries times keys) of unfused attention, in 16 bits."""
    works = (work for layer in {id(layer): layer for layer in layers}.values() for work in layer.forward)
    scores = (work for work in works if isinstance(work, Gemm) and work.name == "scores")
    return max((2.0 * work.rows * work.columns * work.copies for work in scores), default=0.0)
