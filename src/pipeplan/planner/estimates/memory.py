"""Memory of every rank at its peak: what its parameters hold, what the schedule keeps, and what an op holds besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipeplan.model import Floats, Kind, Schedule, memory_levels
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import RankMemory
from pipeplan.planner.estimates.memory_rules import MemoryRules, Unit, memory_rules
from pipeplan.workload import Gemm, GroupedGemm, LayerWork, RankParameters, State, offloaded, state_bytes

_LAYERS = frozenset({"dense", "moe", "mtp"})
"""Kinds with products in the layers' format, whose parameters a data group that shards them gathers layer by layer."""


def rank_memory(
    stages: Sequence[Sequence[LayerWork]], schedule: Schedule, configuration: Configuration
) -> tuple[RankMemory, ...]:
    """What every rank's framework has allocated at its peak.

    The schedule is walked op by op: at a backward's start its rank holds all that forwards kept, and the op's own transients
    come on top. No closed form is used, so it holds for every schedule.

    Parameters
    ----------
    stages
        Layers of each stage in order, after recomputation; ``configuration.offload`` is applied here.
    schedule
        Of as many stages; fewer microbatches than the step's will do where they fill the pipeline.
    """
    rules = memory_rules(configuration.software)
    shares = np.broadcast_to(np.asarray(configuration.offload, np.float64), (len(stages),))
    held = [
        _Stage.of(layers, float(share), sharded=configuration.zero >= 3, unit=rules.gathers)
        for layers, share in zip(stages, shares, strict=True)
    ]
    peaks = _Peaks.of(schedule, held)
    found = []
    for rank in range(schedule.ranks):
        places = [int(stage) for copy in schedule.placement.table for stage in np.flatnonzero(copy == rank)]
        layers = [layer for stage in places for layer in stages[stage]]
        state = _state(layers, configuration, rules)
        found.append(
            RankMemory(
                weights=state.weights,
                gradients=state.gradients,
                optimizer=state.optimizer,
                activations=float(peaks.kept[rank]),
                transient=float(peaks.transient[rank]) + (_placeholders(layers) if rules.placeholders else 0.0),
                buffers=rules.workspace
                + (rules.grouped_workspace if any(layer.parameters.expert for layer in layers) else 0.0)
                + _gathered(layers, configuration, rules.gathers)
                + (_score_buffer(layers) if rules.score_buffer else 0.0),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Bytes of one stage for one microbatch: kept by F, freed by W, and held by its backward besides."""

    kept: float
    until_weight: float
    transient: float

    @classmethod
    def of(cls, layers: Sequence[LayerWork], share: float, *, sharded: bool, unit: Unit) -> _Stage:
        """From the last layer to the first: what a layer's backward holds comes on top of what those before it kept."""
        kept = until_weight = transient = 0.0
        sizes: dict[int, tuple[float, float, float]] = {}
        for layer in reversed(layers):
            if id(layer) not in sizes:
                sizes[id(layer)] = _sizes(layer, share, unit if sharded else None)
            of_layer = sizes[id(layer)]
            for _ in range(layer.count):
                transient = max(transient, of_layer[2] - kept)
                kept += of_layer[0]
                until_weight += of_layer[1]
        return cls(kept, until_weight, transient)


def _sizes(layer: LayerWork, share: float, unit: Unit | None) -> tuple[float, float, float]:
    """Of a layer: kept, kept until W, and what its backward holds besides.

    Where parameters are sharded, that is also the whole gradient of what is gathered at once: in 16 bits, and in 32 for its
    reduction.
    """
    after = offloaded(layer, share)
    gradient = (2 + 4) * _at_once(layer, unit) if unit is not None and layer.kind in _LAYERS else 0.0
    return after.kept_bytes, after.bytes_until_weight, after.transient_bytes + gradient


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Of each rank where it holds most: what is kept, and what the op at that time holds besides; shape (ranks,)."""

    kept: Floats
    transient: Floats

    @classmethod
    def of(cls, schedule: Schedule, stages: Sequence[_Stage]) -> _Peaks:
        """Walk the schedule: F's level is there from its start, a backward's transients on top of the level before it."""
        columns, offsets = schedule.columns, schedule.offsets
        after = memory_levels(
            schedule, _values(each.kept for each in stages), _values(each.until_weight for each in stages)
        )
        before = np.concatenate(([0.0], after[:-1]))
        before[offsets[:-1][np.diff(offsets) > 0]] = 0.0
        of_stage = _values(each.transient for each in stages) / schedule.slices
        transient = np.where(np.isin(columns.kind, (Kind.B, Kind.I)), of_stage[columns.stage], 0.0)
        level = np.maximum(before + transient, after)
        besides = np.where(before + transient >= after, transient, 0.0)
        kept, most = np.zeros(schedule.ranks), np.zeros(schedule.ranks)
        for rank, (first, last) in enumerate(pairwise(offsets.tolist())):
            if first < last:
                peak = first + int(np.argmax(level[first:last]))
                kept[rank], most[rank] = level[peak] - besides[peak], besides[peak]
        return cls(kept, most)


def _values(values: Iterable[float]) -> Floats:
    return np.array(list(values))


def _state(layers: Sequence[LayerWork], configuration: Configuration, rules: MemoryRules) -> State:
    """What parameters hold throughout.

    With several pipeline ranks, gradients (and, sharded, parameters) stay whole until the step's last microbatch: to gather
    and reduce them for each would take m times as long (torchtitan does so; Megatron shards neither beside a pipeline).
    """
    parameters = _parameters(layers)
    whole = parameters.dense + parameters.expert
    pipelined = configuration.pipeline > 1
    state = state_bytes(
        parameters,
        zero=configuration.zero,
        shards=configuration.data * configuration.context,
        expert_shards=max(configuration.expert_data, 1),
        gradient_bytes=rules.gradient_bytes,
        masters=rules.masters,
    )
    in_layers = sum(
        (layer.parameters.dense + layer.parameters.expert) * layer.count for layer in layers if layer.kind in _LAYERS
    )
    copies = 0.0 if configuration.gathers_weights else rules.copy_bytes(configuration.precision) * in_layers
    return State(
        weights=state.weights + copies + (2.0 * whole if pipelined and configuration.zero >= 3 else 0.0),
        gradients=rules.gradient_bytes * whole if pipelined and configuration.zero >= 2 else state.gradients,
        optimizer=state.optimizer,
    )


def _parameters(layers: Sequence[LayerWork]) -> RankParameters:
    """Of all layers of a rank, and a copy of the embedding where some need it and none is it."""
    dense = sum(layer.parameters.dense * layer.count for layer in layers)
    expert = sum(layer.parameters.expert * layer.count for layer in layers)
    copied = max((layer.embedding_parameters for layer in layers), default=0)
    if any(layer.kind == "embedding" for layer in layers):
        copied = 0
    return RankParameters(dense=dense + copied, expert=expert)


def _gathered(layers: Sequence[LayerWork], configuration: Configuration, unit: Unit) -> float:
    """Parameters that are gathered in 16 bits for products: those of the two ends, a layer's, and the next one's.

    FSDP2 gathers the ends for the whole of a microbatch, and a layer while the one before it runs.
    """
    if not configuration.gathers_weights:
        return 0.0
    ends = sum(layer.parameters.dense for layer in layers if layer.kind not in _LAYERS)
    largest = max((_at_once(layer, unit) for layer in layers if layer.kind in _LAYERS), default=0.0)
    return 2.0 * (ends + 2 * largest)


def _at_once(layer: LayerWork, unit: Unit) -> float:
    """Parameters of a layer that are gathered together: all, or those of its largest product."""
    if unit == "layer":
        return layer.parameters.dense + layer.parameters.expert
    sizes = [work.rows * work.columns for work in layer.backward_weight if isinstance(work, Gemm)]
    grouped = [
        work.groups * work.columns * work.inner for work in layer.backward_weight if isinstance(work, GroupedGemm)
    ]
    return max((*sizes, *grouped), default=0.0)


def _placeholders(layers: Sequence[LayerWork]) -> float:
    """A 16-bit tensor of each shape of weights, which stands for gradients that were added in place.

    Transformer Engine from 2.3 on (``get_dummy_wgrad``); head and router are not its.
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
    """The largest product of queries and keys of unfused attention, in 16 bits."""
    works = (work for layer in {id(layer): layer for layer in layers}.values() for work in layer.forward)
    scores = (work for work in works if isinstance(work, Gemm) and work.name == "scores")
    return max((2.0 * work.rows * work.columns * work.copies for work in scores), default=0.0)
