"""Memory of every rank at its peak: what its parameters hold, what the schedule keeps, and what an op holds besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeplan.model import Floats, Kind, Schedule, memory_levels
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import RankMemory
from pipeplan.planner.memory_rules import MemoryRules, memory_rules
from pipeplan.workload import Gemm, GroupedGemm, LayerWork, RankParameters, offloaded, state_bytes


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
    held = [_Stage.of(layers, float(share)) for layers, share in zip(stages, shares, strict=True)]
    levels = memory_levels(schedule, _values(each.kept for each in held), _values(each.until_weight for each in held))
    transients = np.zeros((len(Kind), len(held)))
    transients[Kind.B] = transients[Kind.I] = _values(each.transient for each in held)
    return tuple(
        _rank(rank, stages, schedule, configuration, rules, levels, transients) for rank in range(schedule.ranks)
    )


def _values(values: Iterable[float]) -> Floats:
    return np.array(list(values))


@dataclass(frozen=True, slots=True)
class _Stage:
    """Bytes of one stage for one microbatch: kept by F, freed by W, and held by its backward besides."""

    kept: float
    until_weight: float
    transient: float

    @classmethod
    def of(cls, layers: Sequence[LayerWork], share: float) -> _Stage:
        kept = until_weight = transient = 0.0
        sizes: dict[int, tuple[float, float]] = {}
        for layer in reversed(layers):
            if id(layer) not in sizes:
                after = offloaded(layer, share)
                sizes[id(layer)] = after.kept_bytes, after.bytes_until_weight
            of_layer = sizes[id(layer)]
            for _ in range(layer.count):
                transient = max(transient, layer.transient_bytes - kept)
                kept += of_layer[0]
                until_weight += of_layer[1]
        return cls(kept, until_weight, transient)


def _rank(
    rank: int,
    stages: Sequence[Sequence[LayerWork]],
    schedule: Schedule,
    configuration: Configuration,
    rules: MemoryRules,
    levels: Floats,
    transients: Floats,
) -> RankMemory:
    table = schedule.placement.table
    here = [stages[stage] for copy in table for stage in np.flatnonzero(copy == rank)]
    first, last = schedule.offsets[rank], schedule.offsets[rank + 1]
    columns = schedule.columns
    kinds, places, after = columns.kind[first:last], columns.stage[first:last], levels[first:last]
    before = np.concatenate(([0.0], after[:-1]))
    backward = np.isin(kinds, (Kind.B, Kind.I))
    kept = np.maximum(np.where(backward, before, after), before)
    besides = transients[kinds, places]
    peak = int(np.argmax(kept + besides)) if len(kept) else None
    state = state_bytes(
        _parameters(here),
        zero=configuration.zero,
        shards=configuration.data * configuration.context,
        expert_shards=max(configuration.expert_data, 1),
        gradient_bytes=rules.gradient_bytes,
        weight_bytes=rules.weight_bytes(configuration.precision),
        masters=rules.masters,
    )
    return RankMemory(
        weights=state.weights,
        gradients=state.gradients,
        optimizer=state.optimizer,
        activations=0.0 if peak is None else float(kept[peak]),
        transient=(0.0 if peak is None else float(besides[peak]))
        + (_placeholders(here) if rules.placeholders else 0.0)
        + rules.workspace,
        buffers=0.0,
    )


def _parameters(stages: Sequence[Sequence[LayerWork]]) -> RankParameters:
    """Of all layers of a rank, and a copy of the embedding where some need it and none is it."""
    layers = [layer for stage in stages for layer in stage]
    dense = sum(layer.parameters.dense * layer.count for layer in layers)
    expert = sum(layer.parameters.expert * layer.count for layer in layers)
    copied = max((layer.embedding_parameters for layer in layers), default=0)
    if any(layer.kind == "embedding" for layer in layers):
        copied = 0
    return RankParameters(dense=dense + copied, expert=expert)


def _placeholders(stages: Sequence[Sequence[LayerWork]]) -> float:
    """A 16-bit tensor of each shape of weights, which stands for gradients that were added to the accumulated ones at once."""
    shapes: set[tuple[float, float]] = set()
    seen: set[int] = set()
    for layer in (layer for stage in stages for layer in stage):
        if id(layer) in seen or layer.kind in {"embedding", "head", "loss"}:
            continue
        seen.add(id(layer))
        for work in layer.backward_weight:
            if isinstance(work, Gemm) and work.name not in {"router", "head"}:
                shapes.add((work.rows, work.columns))
            if isinstance(work, GroupedGemm):
                shapes.add((work.columns, work.inner))
    return sum(2.0 * rows * columns for rows, columns in shapes)
