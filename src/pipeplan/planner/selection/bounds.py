"""Bounds"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.hardware import Cluster, host_time, optimizer_time
from pipeplan.model import BACKWARD_KINDS, Floats, Kind, Placement, Schedule
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.memory import memory_rules
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.planner.estimates.software import software
from pipeplan.planner.estimates.stages import (
    LayerCosts,
    even_layout,
    execution_of,
    layer_costs,
    transfer_bytes,
    transfer_seconds,
)
from pipeplan.strategies import strategy
from pipeplan.workload import ModelShape, RankParameters, layers_of, state_bytes

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


@dataclass(frozen=True, slots=True, eq=False)
class SteadyMemory:
    """The microbatches that ranks hold when they hold the most.

    Attributes
    ----------
    table
        Which rank holds each stage, shape (copies, stages).
    whole, until_weight
        Microbatches that each rank holds of each stage, between F and I, and between I and W; shape (ranks, stages).
    next
        The stage whose backward comes next on each rank; -1: another op does. Shape (ranks,).
    split
        Whether backwards are split into I and W.
    slices
        Of a microbatch's sequence: each takes its share of the times, and is held for itself.
    """

    table: NDArray[np.int64]
    whole: Floats
    until_weight: Floats
    next: NDArray[np.int64]
    split: bool
    slices: int = 1


@lru_cache(maxsize=1024)
def steady_memory(name: str, ranks: int, microbatches: int, chunks: int, group_size: int | None) -> SteadyMemory:
    """Return what a strategy's schedule holds; twice as many microbatches as ranks fill any pipeline.

    One that is made for costs and limits holds at least one microbatch of all of a rank's stages, as any does.
    """
    found = strategy(name)
    if found.looks_at_costs:
        return _steady_memory_of_any(found.placed(found.shape(ranks, microbatches, chunks, group_size=group_size)))
    few = microbatches if group_size is not None or microbatches < 2 * ranks else 2 * ranks
    return steady_memory_of(found(found.shape(ranks, few, chunks, group_size=group_size)))


def steady_memory_of(schedule: Schedule) -> SteadyMemory:
    """Return what the ranks of a schedule hold when they hold the most."""
    columns, offsets = schedule.columns, schedule.offsets
    kind, stage = columns.kind, columns.stage
    backward = np.isin(kind, BACKWARD_KINDS)
    change = np.where(kind == Kind.F, 1, np.where(backward, -1, 0))
    waiting = np.where(kind == Kind.I, 1, np.where(kind == Kind.W, -1, 0))
    whole, until_weight = np.zeros((schedule.ranks, schedule.stages)), np.zeros((schedule.ranks, schedule.stages))
    following = np.full(schedule.ranks, -1, np.int64)
    for rank in range(schedule.ranks):
        first, end = int(offsets[rank]), int(offsets[rank + 1])
        fullest = first + int(np.argmax(np.cumsum(change[first:end]))) + 1
        np.add.at(whole[rank], stage[first:fullest], change[first:fullest])
        np.add.at(until_weight[rank], stage[first:fullest], waiting[first:fullest])
        if fullest < end and backward[fullest]:
            following[rank] = stage[fullest]
    table = np.asarray(schedule.placement.table, np.int64)
    slices = schedule.slices
    return SteadyMemory(table, whole / slices, until_weight / slices, following, schedule.has(Kind.I), slices)


def _steady_memory_of_any(placement: Placement) -> SteadyMemory:
    """Return what is held when a microbatch has passed the last stage of its rank, before its first backward there."""
    table = np.asarray(placement.table, np.int64)
    whole = np.zeros((placement.ranks, table.shape[1]))
    following = np.zeros(placement.ranks, np.int64)
    for stage, rank in enumerate(table[0]):
        whole[rank, stage] = 1
        following[rank] = stage
    return SteadyMemory(table, whole, np.zeros_like(whole), following, split=True)


class Least(NamedTuple):
    """A lower bound on an estimate: seconds of a step, and bytes of the fullest rank."""

    seconds: float
    bytes: float


class Bounds:
    """Lower bounds on estimates of the configurations of one frame: same degrees, microbatch size, software and sharding.

    Parameters
    ----------
    frame
        A configuration of these; its schedule, chunks, layout and savings are not looked at.
    """

    def __init__(self, pricing: Pricing, frame: Configuration) -> None:
        self.frame = frame
        self._pricing = pricing
        self._gpu = pricing.cluster.gpu
        self._trainer = software(frame.software)
        self._state = state_of_one(frame)
        self._stages: dict[Hashable, tuple[Floats, Floats]] = {}
        self._transfer: float | None = None

    @property
    def state(self) -> float:
        """Return the least bytes of the parameters of the fullest rank over all layouts, without pricing anything."""
        dense, expert = self._pricing.parameters(self.frame)
        return float(self._state[0] * dense + self._state[1] * expert) / self.frame.pipeline

    def of_saving(self, recompute: tuple[str, ...], offload: float) -> Least:
        """Whatever the schedule, the chunks and the layout.

        Work and what is held is shared equally by all ranks at best; each holds one microbatch of all its layers, at the
        latest when that has passed through the last of its stages.
        """
        frame, sums = self.frame, self._sums(recompute)
        total = sums.total
        work = float(total[FORWARD] + total[INPUT] + total[WEIGHT])
        seconds = frame.microbatches * max(work / frame.pipeline, sums.longest)
        seconds += 2 * frame.microbatches * self._trainer.op_gap
        seconds += self._optimizer(total[DENSE] / frame.pipeline, total[EXPERT] / frame.pipeline)
        held = self._state[0] * total[DENSE] + self._state[1] * total[EXPERT] + (1 - offload) * total[KEPT]
        return Least(seconds, float(held / frame.pipeline))

    def seconds(self, order: Mapping[str, Any], recompute: tuple[str, ...], offload: float) -> float:
        """Return the bound on a step with chunks, schedule, group and layout."""
        stages, _ = self._of_stages(order, recompute)
        held = self._steady(order)
        if offload:
            stages = self._offloaded(stages, offload)
        ranks, copies = self.frame.pipeline, len(held.table)
        each = self.frame.microbatches / copies
        forward, inputs, weights = stages[:, FORWARD], stages[:, INPUT], stages[:, WEIGHT]
        backward = inputs if held.split else inputs + weights
        work = _by_rank(forward + inputs + weights, held.table, ranks) * each
        work += 2 * self._trainer.op_gap * each * _by_rank(np.ones(len(stages)), held.table, ranks)
        least = float(work.max())
        if self._trainer.barrier and copies == 1:
            least = max(least, self._with_ends(held, forward, backward, weights, work))
        parameters = [_by_rank(stages[:, column], held.table, ranks) for column in (DENSE, EXPERT)]
        return least + self._optimizer(*parameters)

    def bytes(self, order: Mapping[str, Any], recompute: tuple[str, ...], offload: float) -> float:
        """Return the bound on the bytes of the fullest rank."""
        stages, transients = self._of_stages(order, recompute)
        held = self._steady(order)
        ranks = self.frame.pipeline
        dense, expert = (_by_rank(stages[:, column], held.table, ranks) for column in (DENSE, EXPERT))
        kept = (1 - offload) * (held.whole @ stages[:, KEPT]) + held.until_weight @ stages[:, UNTIL_WEIGHT]
        besides = np.where(held.next >= 0, transients[held.next], 0.0) / held.slices
        return float((self._state[0] * dense + self._state[1] * expert + kept + besides).max())

    def of(self, configuration: Configuration) -> Least:
        """Return the bounds of a configuration of the frame that moves the same share from every stage."""
        order = {name: getattr(configuration, name) for name in ("chunks", "schedule", "group_size", "layers")}
        offload = float(np.max(configuration.offload))
        return Least(
            self.seconds(order, configuration.recompute, offload), self.bytes(order, configuration.recompute, offload)
        )

    def _sums(self, recompute: tuple[str, ...]) -> Sums:
        return self._pricing.sums(replace(self.frame, recompute=recompute))

    def _steady(self, order: Mapping[str, Any]) -> SteadyMemory:
        frame = self.frame
        return steady_memory(
            order["schedule"], frame.pipeline, frame.microbatches, order["chunks"], order.get("group_size")
        )

    def _of_stages(self, order: Mapping[str, Any], recompute: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return the sums of each stage, and what its last layer's backward holds besides."""
        layers, count = order.get("layers"), self.frame.pipeline * order["chunks"]
        known = self._stages.get((recompute, count, layers))
        if known is None:
            layout = np.array(even_layout(self._pricing.model.layers, count) if layers is None else layers, np.int64)
            sums = self._sums(recompute)
            known = sums.of_stages(layout), sums.transients(layout)
            self._stages[(recompute, count, layers)] = known
        return known

    def _with_ends(self, held: SteadyMemory, forward: Floats, backward: Floats, weights: Floats, work: Floats) -> float:
        """Return the time of the busiest rank with its head and its tail, or of a microbatch's way there and back."""
        place, ranks = held.table[0], self.frame.pipeline
        crossing = np.concatenate(([0.0], (place[1:] != place[:-1]) * self._message)).cumsum()
        head = (np.concatenate(([0.0], forward[:-1].cumsum())) + crossing) / held.slices
        tail = (np.concatenate(([0.0], backward[:-1].cumsum())) + crossing) / held.slices
        first_head, first_tail = np.full(ranks, np.inf), np.full(ranks, np.inf)
        np.minimum.at(first_head, place, head)
        np.minimum.at(first_tail, place, tail)
        way = float(head[-1] + (forward[-1] + backward[-1]) / held.slices + tail[-1])
        if not held.split:
            return max(way, float((first_head + work + first_tail).max()))
        # Weight backwards can fill the time behind the last input backward.
        inputs = work - _by_rank(weights, held.table, ranks) * self.frame.microbatches
        return max(way, float((first_head + np.maximum(work, inputs + first_tail)).max()))

    @property
    def _message(self) -> float:
        if self._transfer is None:
            message = transfer_bytes(self._pricing.model, self.frame)
            self._transfer = transfer_seconds(self._pricing.cluster, self.frame, message)
        return self._transfer

    def _offloaded(self, stages: Floats, share: float) -> Floats:
        moved = stages.copy()
        copying = np.array([host_time(self._gpu, share * kept) for kept in stages[:, KEPT]])
        for column in (FORWARD, INPUT):
            moved[:, column] = np.maximum(stages[:, column], copying)
        return moved

    def _optimizer(self, dense: Floats | float, expert: Floats | float) -> float:
        """Return the seconds of updating a rank's share of parameters; of the fullest of several ranks."""
        frame = self.frame
        over = (1, 1) if frame.zero == 0 else (frame.data * frame.context, max(frame.expert_data, 1))
        return optimizer_time(self._gpu, float(np.max(dense / over[0] + expert / over[1])))


def state_of_one(frame: Configuration) -> tuple[float, float]:
    """Return the bytes of one dense parameter and of one of an expert on a rank, without copies in small formats.

    Beside a pipeline, sharded parameters and gradients are whole from the first microbatch to the last.
    """
    rules = memory_rules(frame.software)
    pipelined = frame.pipeline > 1
    each = []
    for parameters in (RankParameters(dense=1), RankParameters(expert=1)):
        state = state_bytes(
            parameters,
            zero=frame.zero,
            shards=frame.data * frame.context,
            expert_shards=max(frame.expert_data, 1),
            gradient_bytes=rules.gradient_bytes,
            masters=rules.masters,
        )
        gathered = 2.0 if pipelined and frame.zero >= 3 else 0.0
        gradients = rules.gradient_bytes if pipelined and frame.zero >= 2 else state.gradients
        each.append(state.weights + gathered + gradients + state.optimizer)
    return each[0], each[1]


def _by_rank(values: Floats, table: NDArray[np.int64], ranks: int) -> Floats:
    sums = np.zeros(ranks)
    for copy in table:
        sums += np.bincount(copy, weights=values, minlength=ranks)
    return sums
