"""What a configuration takes and holds at least: cheap, and never more than its estimate, so that pruning loses nothing.

Time: every rank's ops run one after the other, the first not before a microbatch has come to it, and behind the last the
backwards of the stages before must still run (head, work and tail of one machine, Carlier 1982); then the optimizer. Memory:
what a rank's parameters hold, and what its schedule keeps at the moment at which it keeps the most microbatches.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.hardware import host_time, optimizer_time
from pipeplan.model import Floats
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.memory_rules import memory_rules
from pipeplan.planner.estimates.software import software
from pipeplan.planner.estimates.stages import transfer_bytes, transfer_seconds
from pipeplan.planner.selection.pricing import DENSE, EXPERT, FORWARD, INPUT, KEPT, UNTIL_WEIGHT, WEIGHT, Pricing, Sums
from pipeplan.planner.selection.standing import Standing, standing
from pipeplan.workload import RankParameters, state_bytes


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
        """Bytes that the parameters of the fullest rank hold at least, whatever the layout; nothing is priced for it."""
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
        """Of a step, with chunks, schedule, group and layout."""
        stages, _ = self._of_stages(order, recompute)
        held = self._standing(order)
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
        """Of the fullest rank."""
        stages, transients = self._of_stages(order, recompute)
        held = self._standing(order)
        ranks = self.frame.pipeline
        dense, expert = (_by_rank(stages[:, column], held.table, ranks) for column in (DENSE, EXPERT))
        kept = (1 - offload) * (held.whole @ stages[:, KEPT]) + held.until_weight @ stages[:, UNTIL_WEIGHT]
        besides = np.where(held.next >= 0, transients[held.next], 0.0) / held.slices
        return float((self._state[0] * dense + self._state[1] * expert + kept + besides).max())

    def of(self, configuration: Configuration) -> Least:
        """Of a configuration of the frame that moves the same share from every stage."""
        order = {name: getattr(configuration, name) for name in ("chunks", "schedule", "group_size", "layers")}
        offload = float(np.max(configuration.offload))
        return Least(
            self.seconds(order, configuration.recompute, offload), self.bytes(order, configuration.recompute, offload)
        )

    def _sums(self, recompute: tuple[str, ...]) -> Sums:
        return self._pricing.sums(replace(self.frame, recompute=recompute))

    def _standing(self, order: Mapping[str, Any]) -> Standing:
        frame = self.frame
        return standing(order["schedule"], frame.pipeline, frame.microbatches, order["chunks"], order.get("group_size"))

    def _of_stages(self, order: Mapping[str, Any], recompute: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Sums, and what the last layer's backward holds besides, by stage."""
        layers, count = order.get("layers"), self.frame.pipeline * order["chunks"]
        known = self._stages.get((recompute, count, layers))
        if known is None:
            layout = _even(self._pricing.model.layers, count) if layers is None else np.array(layers, np.int64)
            sums = self._sums(recompute)
            known = sums.of_stages(layout), sums.transients(layout)
            self._stages[(recompute, count, layers)] = known
        return known

    def _with_ends(self, held: Standing, forward: Floats, backward: Floats, weights: Floats, work: Floats) -> float:
        """The busiest rank with its head and its tail, and a microbatch's way there and back."""
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
        """Seconds of updating a rank's share of so many parameters; of the fullest of several ranks."""
        frame = self.frame
        over = (1, 1) if frame.zero == 0 else (frame.data * frame.context, max(frame.expert_data, 1))
        return optimizer_time(self._gpu, float(np.max(dense / over[0] + expert / over[1])))


def state_of_one(frame: Configuration) -> tuple[float, float]:
    """Bytes that one dense parameter and one of an expert hold on a rank; copies in small formats are left out.

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


def _even(layers: int, stages: int) -> NDArray[np.int64]:
    least, more = divmod(layers, stages)
    return least + (np.arange(stages) < more).astype(np.int64)


def _by_rank(values: Floats, table: NDArray[np.int64], ranks: int) -> Floats:
    sums = np.zeros(ranks)
    for copy in table:
        sums += np.bincount(copy, weights=values, minlength=ranks)
    return sums
