"""Lower bounds on step time and memory of a configuration: cheap, and never above its estimate, so pruning is lossless.

Time: the ops of a rank run one after the other. The first cannot start before a microbatch has reached the rank, and after
the last the backwards of earlier stages must still run: the head, work and tail of one machine (Carlier 1982). The optimizer
follows. Memory: a rank's parameters and their state, and what its schedule keeps when it keeps the most microbatches.

Layers are priced once and kept as cumulative sums, so the share of any stage is a difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.memory import full_state
from pipeplan.extensions.planning.estimates.running import PAIRED, may_hide
from pipeplan.extensions.planning.estimates.seconds import TimeFactors, WorkMachine
from pipeplan.extensions.planning.estimates.segments import exchange_seconds, pair_slowdown
from pipeplan.extensions.planning.estimates.software import gathers_weights, kept_whole, software
from pipeplan.extensions.planning.estimates.stages import (
    LayerCosts,
    even_layout,
    execution_of,
    layer_sums,
    machine_of,
    transfer_bytes,
    transfer_seconds,
)
from pipeplan.extensions.planning.hardware import Cluster, host_time, optimizer_time
from pipeplan.extensions.planning.workload import ModelShape, RankParameters, layers_of
from pipeplan.model import BACKWARD_KINDS, Floats, Kind, Placement, Schedule
from pipeplan.strategies import strategy

FORWARD, INPUT, WEIGHT, KEPT, UNTIL_WEIGHT, DENSE, EXPERT, HIDDEN = range(8)
"""Columns of a layer: seconds of F, I (including recomputation) and W; bytes kept from F, and until W; parameters; and
seconds of the exchanges of F and I that pairs hide at best, less what the computation beside them takes longer."""


WHOLE_BACKWARDS = frozenset({"1f1b", "interleaved-1f1b", "gpipe", "looped-bfs"})
"""Schedules whose ranks run whole backwards and pass a microbatch on in a loop, so that no work fills the ends of a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Layers in order, with their cumulative sums.

    Attributes
    ----------
    sums
        Cumulative columns of the layers before each; shape (layers + 1, 8).
    transient
        Transients of each layer's backward in bytes; shape (layers,).
    before, behind
        Number of layers before the first transformer layer, and after the last.
    longest
        Seconds of F, I and W of the longest layer, and of the longest one without its exchanges.
    """

    sums: Floats
    transient: Floats
    before: int
    behind: int
    longest: tuple[float, float]

    @classmethod
    def of(cls, layers: Sequence[LayerCosts], machine: WorkMachine | None) -> Sums:
        """Sum up all layers of a model; without a machine, nothing hides their exchanges."""
        row = {
            id(layer): (
                layer.forward,
                layer.backward_input,
                layer.backward_weight,
                layer.layer.kept_bytes,
                layer.layer.bytes_until_weight,
                layer.layer.parameters.dense,
                layer.layer.parameters.expert,
                0.0 if machine is None else exchange_seconds(machine, layer.layer) / pair_slowdown(machine),
            )
            for layer in {id(layer): layer for layer in layers}.values()
        }
        rows = np.array([row[id(layer)] for layer in layers])
        seconds = rows[:, [FORWARD, INPUT, WEIGHT]].sum(axis=1)
        kinds = [layer.layer.kind for layer in layers]
        inner = [index for index, kind in enumerate(kinds) if kind in {"dense", "moe"}]
        return cls(
            np.concatenate((np.zeros((1, rows.shape[1])), rows.cumsum(axis=0))),
            np.array([layer.layer.transient_bytes for layer in layers]),
            inner[0],
            len(kinds) - 1 - inner[-1],
            (float(seconds.max()), float((seconds - rows[:, HIDDEN]).max())),
        )

    @property
    def total(self) -> Floats:
        """Sums of the whole model; shape (8,)."""
        whole: Floats = self.sums[-1]
        return whole

    def balanced(self, count: int) -> tuple[int, ...] | None:
        """Return a layout whose first and last stage have fewer layers, for the model's ends; None if an even one does it.

        An end takes the place of as many layers as it is long, as in Megatron-LM's ``account_for_loss_in_pipeline_split``.
        """
        seconds = self.sums[:, [FORWARD, INPUT, WEIGHT]].sum(axis=1)
        inner = len(seconds) - 1 - self.before - self.behind
        start, end = float(seconds[self.before]), float(seconds[-1] - seconds[self.before + inner])
        layer = (float(seconds[-1]) - start - end) / inner
        first, last = round(start / layer), round(end / layer)
        while first or last:
            layout = list(even_layout(inner + first + last, count))
            if layout[0] >= first and layout[-1] >= last:
                layout[0] -= first
                layout[-1] -= last
                return tuple(layout)
            first, last = min(first, layout[0]), min(last, layout[-1])
        return None

    def edges(self, layout: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first layer of each stage of a layout, and the end of the last one; shape (stages + 1,)."""
        edges = np.concatenate(([0], np.cumsum(layout))) + self.before
        edges[0], edges[-1] = 0, len(self.sums) - 1
        return edges

    def of_stages(self, layout: NDArray[np.int64]) -> Floats:
        """Return the sums of each stage of a layout, including the model's ends; shape (stages, 8)."""
        stages: Floats = np.diff(self.sums[self.edges(layout)], axis=0)
        return stages

    def transients(self, layout: NDArray[np.int64]) -> Floats:
        """Return the transients of the backward of each stage's last layer in bytes; shape (stages,)."""
        edges = self.edges(layout)
        of_last: Floats = np.where(edges[1:] > edges[:-1], self.transient[np.maximum(edges[1:] - 1, 0)], 0.0)
        return of_last


class Pricing:
    """Cache of the sums of a model's layers on a cluster."""

    def __init__(self, model: ModelShape, cluster: Cluster, calibration: TimeFactors | None = None) -> None:
        self.model = model
        self.cluster = cluster
        self.calibration = calibration
        self._known: dict[Hashable, Sums] = {}
        self._parameters: dict[Hashable, tuple[float, float]] = {}

    def sums(self, configuration: Configuration) -> Sums:
        """Return the sums of a configuration's layers."""
        shards = (configuration.data * configuration.context, configuration.expert_data, configuration.replicate)
        key = (
            execution_of(configuration),
            configuration.software,
            configuration.recompute,
            shards if gathers_weights(configuration) else None,
            configuration.microbatches if kept_whole(configuration)[1] else 1,
        )
        sums = self._known.get(key)
        if sums is None:
            layers = layer_sums(self.model, self.cluster, configuration, calibration=self.calibration).layers
            machine = machine_of(self.cluster, configuration, self.calibration)
            sums = Sums.of(layers, machine if may_hide(configuration) else None)
            self._known[key] = sums
        return sums

    def parameters(self, configuration: Configuration) -> tuple[float, float]:
        """Return the dense and the experts' parameters of the whole model, divided by the degrees."""
        key = (configuration.tensor, configuration.expert, configuration.expert_tensor, configuration.software)
        parameters = self._parameters.get(key)
        if parameters is None:
            execution = replace(execution_of(configuration), microbatch_size=1, context=1)
            layers = [(layer.parameters, layer.count) for layer in layers_of(self.model, execution)]
            parameters = (
                float(sum(held.dense * count for held, count in layers)),
                float(sum(held.expert * count for held, count in layers)),
            )
            self._parameters[key] = parameters
        return parameters


@dataclass(frozen=True, slots=True, eq=False)
class SteadyMemory:
    """Microbatches that each rank holds when it holds the most.

    Attributes
    ----------
    table
        Rank of each stage; shape (copies, stages).
    whole, until_weight
        Microbatches that each rank holds of each stage, between F and I, and between I and W; shape (ranks, stages).
    next
        Stage whose backward comes next on each rank; -1 if another op does. Shape (ranks,).
    split
        Whether backwards are split into I and W.
    slices
        Slices of a microbatch's sequence: each takes its share of the times and is held separately.
    """

    table: NDArray[np.int64]
    whole: Floats
    until_weight: Floats
    next: NDArray[np.int64]
    split: bool
    slices: int = 1


@lru_cache(maxsize=1024)
def steady_memory(  # noqa: PLR0917 - the shape of a schedule
    name: str, ranks: int, microbatches: int, chunks: int, group_size: int | None, layered: bool = False
) -> SteadyMemory:
    """Return the steady memory of a strategy's schedule; twice as many microbatches as ranks fill any pipeline.

    A schedule that is built for costs and limits holds at least one microbatch of all of a rank's stages, like any other.
    ``layered``: the forward of a pair takes the place of what its backward frees.
    """
    rule = strategy(name)
    if rule.looks_at_costs:
        return _steady_memory_of_any(rule.placed(rule.shape(ranks, microbatches, chunks, group_size=group_size)))
    # Beyond 2p microbatches no rank holds more, so the peak of a short schedule is that of the step.
    few = microbatches if group_size is not None or microbatches < 2 * ranks else 2 * ranks
    return steady_memory_of(rule(rule.shape(ranks, few, chunks, group_size=group_size)), layered=layered)


def steady_memory_of(schedule: Schedule, *, layered: bool = False) -> SteadyMemory:
    """Return the steady memory of a schedule; see :func:`steady_memory`."""
    columns, offsets = schedule.columns, schedule.offsets
    kind, stage = columns.kind, columns.stage
    backward = np.isin(kind, BACKWARD_KINDS)
    # Walk each rank's row: F adds a microbatch, I or B frees it; between I and W a part of it waits.
    change = np.where(kind == Kind.F, 1, np.where(backward, -1, 0))
    waiting = np.where(kind == Kind.I, 1, np.where(kind == Kind.W, -1, 0))
    whole, until_weight = np.zeros((schedule.ranks, schedule.stages)), np.zeros((schedule.ranks, schedule.stages))
    following = np.full(schedule.ranks, -1, np.int64)
    # No moment within a pair is the fullest if its forward takes the place of its backward.
    within = schedule.begins_pair & layered
    for rank in range(schedule.ranks):
        first, end = int(offsets[rank]), int(offsets[rank + 1])
        fullest = first + int(np.argmax(np.where(within[first:end], -1, np.cumsum(change[first:end])))) + 1
        np.add.at(whole[rank], stage[first:fullest], change[first:fullest])
        np.add.at(until_weight[rank], stage[first:fullest], waiting[first:fullest])
        if fullest < end and backward[fullest]:
            following[rank] = stage[fullest]
    table = np.asarray(schedule.placement.table, np.int64)
    slices = schedule.slices
    return SteadyMemory(table, whole / slices, until_weight / slices, following, schedule.has(Kind.I), slices)


def _steady_memory_of_any(placement: Placement) -> SteadyMemory:
    """Return the memory that any schedule holds: one microbatch, after each rank's last stage and before its backward."""
    table = np.asarray(placement.table, np.int64)
    whole = np.zeros((placement.ranks, table.shape[1]))
    following = np.zeros(placement.ranks, np.int64)
    for stage, rank in enumerate(table[0]):
        whole[rank, stage] = 1
        following[rank] = stage
    return SteadyMemory(table, whole, np.zeros_like(whole), following, split=True)


class Least(NamedTuple):
    """Lower bound on an estimate: seconds of a step, and bytes of the fullest rank."""

    seconds: float
    bytes: float


class Bounds:
    """Lower bounds for the configurations of one frame: same degrees, microbatch size, software and sharding.

    Parameters
    ----------
    frame
        Configuration of the frame; its schedule, chunks, layout and savings are ignored.
    """

    def __init__(self, pricing: Pricing, frame: Configuration) -> None:
        self.frame = frame
        self._pricing = pricing
        self._gpu = pricing.cluster.gpu
        self._trainer = software(frame.software)
        self._hides = may_hide(frame)
        self._slowdown = pair_slowdown(machine_of(pricing.cluster, frame))
        self._state = state_of_one(frame)
        self._priced: dict[tuple[str, ...], Sums] = {}
        self._of_savings: dict[tuple[tuple[str, ...], float, float, bool], Least] = {}
        self._stages: dict[Hashable, tuple[Floats, Floats]] = {}

    @property
    def state(self) -> float:
        """Least bytes of the fullest rank's parameters and state over all layouts, without pricing layers."""
        dense, expert = self._pricing.parameters(self.frame)
        return float(self._state[0] * dense + self._state[1] * expert) / self.frame.pipeline

    def balanced(self, count: int) -> tuple[int, ...] | None:
        """Return the layout of this many stages that is tried; None: an even one. See :meth:`Sums.balanced`."""
        return self._sums(()).balanced(count) if count > 1 else None

    def of_sizes(self) -> float:
        """Return the bound on a step with any microbatch size that divides this frame's, whatever the order and savings.

        Kernels, messages and launches of n times the size take at most n times as long, so a sequence takes the least time
        in the largest microbatch.
        """
        frame, total = self.frame, self._sums(()).total
        work = self._in_pairs(total[FORWARD] + total[INPUT] + total[WEIGHT], total[HIDDEN])
        work_of_sequence = float(work) / frame.microbatch_size
        optimizer = self._optimizer(total[DENSE] / frame.pipeline, total[EXPERT] / frame.pipeline)
        return frame.global_batch / (frame.data * frame.pipeline) * work_of_sequence + optimizer

    def of_orders(self, orders: Sequence[Mapping[str, Any]]) -> float:
        """Return the bound on a step with any of these orders, without savings of memory.

        With whole backwards in a loop of stages, rank r waits for the r stages before its first one, in the forward and at
        the end in the backward: on average over the ranks for (p-1)/2 stages.
        """
        ranks, fill = self.frame.pipeline, 0.0
        if self._trainer.barrier and all(order["schedule"] in WHOLE_BACKWARDS for order in orders):
            fill = (ranks - 1) / 2 / (ranks * max(order["chunks"] for order in orders))
        pairs = any(self._hides_with(order["schedule"]) for order in orders)
        return self.of_saving((), 0.0, fill, pairs=pairs).seconds

    def _hides_with(self, schedule: str) -> bool:
        """Return True if the pairs of a schedule hide exchanges."""
        return self._hides and strategy(schedule).name in PAIRED

    def _in_pairs(self, work: Any, hidden: Any) -> Any:
        """Return the least seconds of work whose exchanges are hidden at best; they follow one another in any case."""
        return np.maximum(work - hidden, self._slowdown * hidden)

    def of_saving(self, recompute: tuple[str, ...], offload: float, fill: float = 0.0, *, pairs: bool = True) -> Least:
        """Return the bound for a recomputation and offload, whatever the schedule, the chunks and the layout.

        At best all ranks share work and memory equally, and wait for ``fill`` of the work on one microbatch. Each rank holds
        one microbatch of all its layers at some time, at the latest after that microbatch has passed the last of its stages.
        Unless ``pairs`` is False, exchanges may be hidden.
        """
        # Every order of the frame begins with the same savings.
        key = recompute, offload, fill, pairs
        if key not in self._of_savings:
            self._of_savings[key] = self._of_saving(*key)
        return self._of_savings[key]

    def _of_saving(self, recompute: tuple[str, ...], offload: float, fill: float, pairs: bool) -> Least:
        frame, sums = self.frame, self._sums(recompute)
        # No rank can do less than 1/p of the work, and none less than the longest layer, m times; one microbatch passes
        # all layers forward and backward.
        total = sums.total
        way = float(total[FORWARD] + total[INPUT])
        work = float(self._in_pairs(way + total[WEIGHT], total[HIDDEN] if pairs else 0.0))
        longest = sums.longest[pairs]
        seconds = max((frame.microbatches / frame.pipeline + fill) * work, frame.microbatches * longest, way)
        seconds += (1 if pairs and self._hides else 2) * frame.microbatches * self._trainer.op_gap
        seconds += self._optimizer(total[DENSE] / frame.pipeline, total[EXPERT] / frame.pipeline)
        held = self._state[0] * total[DENSE] + self._state[1] * total[EXPERT] + (1 - offload) * total[KEPT]
        return Least(seconds, float(held / frame.pipeline))

    def seconds(self, order: Mapping[str, Any], recompute: tuple[str, ...], offload: float) -> float:
        """Return the bound on a step with given chunks, schedule, group and layout."""
        stages, _ = self._of_stages(order, recompute)
        held = self._steady(order)
        if offload:
            stages = self._offloaded(stages, offload)
        ranks, copies = self.frame.pipeline, len(held.table)
        microbatches = self.frame.microbatches / copies
        forward, inputs, weights = stages[:, FORWARD], stages[:, INPUT], stages[:, WEIGHT]
        pairs = self._hides_with(order["schedule"])
        hidden = stages[:, HIDDEN] if pairs else np.zeros(len(stages))
        # No op takes less alone than in a pair, but its own delayed weights may hide exchanges of a backward.
        backward = inputs if held.split else np.maximum(inputs, inputs + weights - hidden)
        whole, most = (_by_rank(times, held.table, ranks) for times in (forward + inputs + weights, hidden))
        work = self._in_pairs(whole, most) * microbatches
        gaps = (1 if pairs else 2) * self._trainer.op_gap
        work += gaps * microbatches * _by_rank(np.ones(len(stages)), held.table, ranks)
        # Bidirectional schedules run half of the microbatches from either end, so their heads and tails overlap.
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
        """Return the bounds of a configuration of the frame that offloads the same fraction on every stage."""
        order = {name: getattr(configuration, name) for name in ("chunks", "schedule", "group_size", "layers")}
        offload = float(np.max(configuration.offload))
        return Least(
            self.seconds(order, configuration.recompute, offload), self.bytes(order, configuration.recompute, offload)
        )

    def _sums(self, recompute: tuple[str, ...]) -> Sums:
        sums = self._priced.get(recompute)
        if sums is None:
            sums = self._priced[recompute] = self._pricing.sums(replace(self.frame, recompute=recompute))
        return sums

    def _steady(self, order: Mapping[str, Any]) -> SteadyMemory:
        frame = self.frame
        shape = frame.pipeline, frame.microbatches, order["chunks"], order.get("group_size")
        return steady_memory(order["schedule"], *shape, self._hides_with(order["schedule"]))

    def _of_stages(self, order: Mapping[str, Any], recompute: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return the sums of each stage, and the transients of its last layer's backward."""
        layers, count = order.get("layers"), self.frame.pipeline * order["chunks"]
        stages = self._stages.get((recompute, count, layers))
        if stages is None:
            layout = np.array(even_layout(self._pricing.model.layers, count) if layers is None else layers, np.int64)
            sums = self._sums(recompute)
            stages = sums.of_stages(layout), sums.transients(layout)
            self._stages[(recompute, count, layers)] = stages
        return stages

    def _with_ends(self, held: SteadyMemory, forward: Floats, backward: Floats, weights: Floats, work: Floats) -> float:
        """Return the larger of two bounds: the busiest rank with its head and tail, and one microbatch's round trip."""
        place, ranks = held.table[0], self.frame.pipeline
        # Head of a stage: forwards of one microbatch through all earlier stages, with their messages; tail: its backwards.
        crossing = np.concatenate(([0.0], (place[1:] != place[:-1]) * self._message)).cumsum()
        head = (np.concatenate(([0.0], forward[:-1].cumsum())) + crossing) / held.slices
        tail = (np.concatenate(([0.0], backward[:-1].cumsum())) + crossing) / held.slices
        first_head, first_tail = np.full(ranks, np.inf), np.full(ranks, np.inf)
        np.minimum.at(first_head, place, head)
        np.minimum.at(first_tail, place, tail)
        way = float(head[-1] + (forward[-1] + backward[-1]) / held.slices + tail[-1])
        if not held.split:
            return max(way, float((first_head + work + first_tail).max()))
        # Weight backwards can fill a rank's tail, so only its F and I must precede the tail.
        inputs = work - _by_rank(weights, held.table, ranks) * self.frame.microbatches
        return max(way, float((first_head + np.maximum(work, inputs + first_tail)).max()))

    @cached_property
    def _message(self) -> float:
        """Seconds of a message between neighboring ranks."""
        message = transfer_bytes(self._pricing.model, self.frame)
        return transfer_seconds(self._pricing.cluster, self.frame, message)

    def _offloaded(self, stages: Floats, share: float) -> Floats:
        moved = stages.copy()
        copying = np.array([host_time(self._gpu, share * kept) for kept in stages[:, KEPT]])
        # A stage's F (or I) takes at least as long as its copy to (or from) the host.
        for column in (FORWARD, INPUT):
            moved[:, column] = np.maximum(stages[:, column], copying)
        return moved

    def _optimizer(self, dense: Floats | float, expert: Floats | float) -> float:
        """Return the seconds of updating a rank's share of the parameters; of the fullest rank if there are several."""
        frame = self.frame
        # Adam's update of the rank's share; norm and clipping are left out, so this is a lower bound.
        over = (1, 1) if frame.zero == 0 else (frame.shards, frame.expert_shards)
        return optimizer_time(self._gpu, float(np.max(dense / over[0] + expert / over[1])))


def state_of_one(frame: Configuration) -> tuple[float, float]:
    """Return the bytes per dense parameter and per expert parameter on a rank, without low-precision copies."""
    # A configuration of the frame may have one microbatch, and hold the least.
    frame = replace(frame, global_batch=frame.data * frame.microbatch_size)
    sizes = (full_state(one, frame).total for one in (RankParameters(dense=1), RankParameters(expert=1)))
    return next(sizes), next(sizes)


def _by_rank(values: Floats, table: NDArray[np.int64], ranks: int) -> Floats:
    sums = np.zeros(ranks)
    for copy in table:
        sums += np.bincount(copy, weights=values, minlength=ranks)
    return sums
