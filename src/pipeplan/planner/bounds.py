"""What a configuration takes and holds at least: cheap, and never more than its estimate, so that pruning loses nothing.

Time: every rank's ops run one after the other, the first not before a microbatch has come to it, and behind the last the
backwards of the stages before must still run (head, work and tail of one machine, Carlier 1982); then the optimizer. Memory:
what a rank's parameters hold, and what its schedule keeps at the moment at which it keeps the most microbatches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.hardware import host_time, optimizer_time
from pipeplan.model import BACKWARD_KINDS, Floats, Kind
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.memory_rules import memory_rules
from pipeplan.planner.pricing import DENSE, EXPERT, FORWARD, INPUT, KEPT, UNTIL_WEIGHT, WEIGHT, Pricing, Sums
from pipeplan.planner.software import software
from pipeplan.planner.stage_costs import transfer_bytes, transfer_seconds
from pipeplan.strategies import strategy
from pipeplan.workload import RankParameters, state_bytes


class Least(NamedTuple):
    """A lower bound on an estimate: seconds of a step, and bytes of the fullest rank."""

    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What a schedule's ranks hold when they hold the most microbatches.

    Attributes
    ----------
    table
        Which rank holds each stage, shape (copies, stages).
    whole, until_weight
        Microbatches that each rank holds of each stage, between F and I, and between I and W; shape (ranks, stages).
    split
        Whether backwards are split into I and W.
    """

    table: NDArray[np.int64]
    whole: Floats
    until_weight: Floats
    split: bool


@lru_cache(maxsize=1024)
def standing(name: str, ranks: int, microbatches: int, chunks: int, group_size: int | None) -> Standing:
    """Of a strategy's schedule; twice as many microbatches as ranks fill any pipeline."""
    found = strategy(name)
    few = microbatches if group_size is not None or microbatches < 2 * ranks else 2 * ranks
    schedule = found(found.shape(ranks, few, chunks, group_size=group_size))
    columns, offsets = schedule.columns, schedule.offsets
    kind, stage = columns.kind, columns.stage
    change = np.where(kind == Kind.F, 1, np.where(np.isin(kind, BACKWARD_KINDS), -1, 0))
    waiting = np.where(kind == Kind.I, 1, np.where(kind == Kind.W, -1, 0))
    whole, until_weight = np.zeros((ranks, schedule.stages)), np.zeros((ranks, schedule.stages))
    for rank in range(ranks):
        here = slice(int(offsets[rank]), int(offsets[rank + 1]))
        fullest = int(np.argmax(np.cumsum(change[here]))) + 1
        upto = slice(here.start, here.start + fullest)
        np.add.at(whole[rank], stage[upto], change[upto])
        np.add.at(until_weight[rank], stage[upto], waiting[upto])
    table = np.asarray(schedule.placement.table, np.int64)
    return Standing(table, whole, until_weight, schedule.has(Kind.I))


class Bounds:
    """Lower bounds on estimates of configurations of one model on one cluster."""

    def __init__(self, pricing: Pricing) -> None:
        self.pricing = pricing
        self._gpu = pricing.cluster.gpu

    def of_frame(self, configuration: Configuration) -> Least:
        """Whatever the schedule, the chunks and the layout: work shared equally by all ranks.

        ``recompute`` and ``offload`` are the configuration's; ``schedule``, ``chunks`` and ``layers`` are not looked at.
        """
        sums = self.pricing.sums(configuration)
        total = sums.total
        work = float(total[FORWARD] + total[INPUT] + total[WEIGHT])
        microbatches, ranks = configuration.microbatches, configuration.pipeline
        seconds = max(microbatches * max(work / ranks, sums.longest), float(total[FORWARD] + total[INPUT]))
        gap = software(configuration.software).op_gap
        seconds += 2 * microbatches * gap
        seconds += self._optimizer(configuration, total[DENSE] / ranks, total[EXPERT] / ranks)
        held = self._state(configuration, total[DENSE] / ranks, total[EXPERT] / ranks)
        return Least(seconds, float(held))

    def of(self, configuration: Configuration) -> Least:
        """Of a configuration with its schedule, chunks and layout (even where it has none)."""
        sums = self.pricing.sums(configuration)
        layout = _layout(self.pricing.model.layers, configuration)
        stages = sums.of_stages(layout)
        held = standing(
            configuration.schedule,
            configuration.pipeline,
            configuration.microbatches,
            configuration.chunks,
            configuration.group_size,
        )
        share = float(np.max(configuration.offload))
        if share:
            stages = self._offloaded(stages, share)
        return Least(self._seconds(configuration, stages, held), self._bytes(configuration, stages, held))

    def _seconds(self, configuration: Configuration, stages: Floats, held: Standing) -> float:
        ranks, copies = configuration.pipeline, len(held.table)
        each = configuration.microbatches / copies
        trainer = software(configuration.software)
        forward, inputs, weights = stages[:, FORWARD], stages[:, INPUT], stages[:, WEIGHT]
        backward = inputs if held.split else inputs + weights
        work = _by_rank(forward + inputs + weights, held.table, ranks) * each
        work += 2 * trainer.op_gap * each * _by_rank(np.ones(len(stages)), held.table, ranks)
        least = float(work.max())
        if trainer.barrier and copies == 1:
            least = max(least, self._with_ends(configuration, held, forward, backward, weights, work))
        parameters = [_by_rank(stages[:, column], held.table, ranks) for column in (DENSE, EXPERT)]
        return least + max(self._optimizer(configuration, *pair) for pair in zip(*parameters, strict=True))

    def _with_ends(
        self,
        configuration: Configuration,
        held: Standing,
        forward: Floats,
        backward: Floats,
        weights: Floats,
        work: Floats,
    ) -> float:
        """The busiest rank with its head and its tail, and a microbatch's way there and back."""
        place = held.table[0]
        message = transfer_bytes(self.pricing.model, configuration)
        transfer = transfer_seconds(self.pricing.cluster, configuration, message)
        crossing = np.concatenate(([0.0], (place[1:] != place[:-1]) * transfer)).cumsum()
        head = np.concatenate(([0.0], forward[:-1].cumsum())) + crossing
        tail = np.concatenate(([0.0], backward[:-1].cumsum())) + crossing
        ranks = configuration.pipeline
        first_head, first_tail = np.full(ranks, np.inf), np.full(ranks, np.inf)
        np.minimum.at(first_head, place, head)
        np.minimum.at(first_tail, place, tail)
        way = float(head[-1] + forward[-1] + backward[-1] + tail[-1])
        if not held.split:
            return max(way, float((first_head + work + first_tail).max()))
        # Weight backwards can fill the time behind the last input backward.
        inputs = work - _by_rank(weights, held.table, ranks) * configuration.microbatches
        return max(way, float((first_head + np.maximum(work, inputs + first_tail)).max()))

    def _bytes(self, configuration: Configuration, stages: Floats, held: Standing) -> float:
        ranks = configuration.pipeline
        dense, expert = (_by_rank(stages[:, column], held.table, ranks) for column in (DENSE, EXPERT))
        kept = held.whole @ stages[:, KEPT] + held.until_weight @ stages[:, UNTIL_WEIGHT]
        state = np.array([self._state(configuration, *pair) for pair in zip(dense, expert, strict=True)])
        return float((state + kept).max())

    def _offloaded(self, stages: Floats, share: float) -> Floats:
        moved = stages.copy()
        copying = np.array([host_time(self._gpu, share * kept) for kept in stages[:, KEPT]])
        for column in (FORWARD, INPUT):
            moved[:, column] = np.maximum(stages[:, column], copying)
        moved[:, KEPT] *= 1 - share
        return moved

    def _state(self, configuration: Configuration, dense: float, expert: float) -> float:
        rules = memory_rules(configuration.software)
        state = state_bytes(
            RankParameters(dense=dense, expert=expert),  # type: ignore[arg-type]
            zero=configuration.zero,
            shards=configuration.data * configuration.context,
            expert_shards=max(configuration.expert_data, 1),
            gradient_bytes=rules.gradient_bytes,
            weight_bytes=rules.weight_bytes(configuration.precision),
            masters=rules.masters,
        )
        return state.total

    def _optimizer(self, configuration: Configuration, dense: float, expert: float) -> float:
        if configuration.zero == 0:
            return optimizer_time(self._gpu, float(dense + expert))
        local = dense / (configuration.data * configuration.context) + expert / max(configuration.expert_data, 1)
        return optimizer_time(self._gpu, float(local))


def _layout(layers: int, configuration: Configuration) -> NDArray[np.int64]:
    if configuration.layers is not None:
        return np.array(configuration.layers, np.int64)
    least, more = divmod(layers, configuration.stages)
    return least + (np.arange(configuration.stages) < more).astype(np.int64)


def _by_rank(values: Floats, table: NDArray[np.int64], ranks: int) -> Floats:
    sums = np.zeros(ranks)
    for copy in table:
        sums += np.bincount(copy, weights=values, minlength=ranks)
    return sums


__all__ = ["Bounds", "Least", "Standing", "Sums", "standing"]
