"""What a memory cap forces: lower bounds on how long a rank is under way, from its first start to its last end.

Idle ends
    Before a rank's first backward it can only run forwards, and no more than fit under its cap; the first microbatch's way
    to the last stage and back takes as long as it takes. After its last input backward it can only run weight backwards, and
    no more than the cap can have kept waiting. All other work lies between.

Held activations
    Every activation is held for at least its microbatch's round trip. Level times time is an area, and under the cap there
    is only so much of it: cap times the time under way, less what is lost while the level rises and falls, which
    it does no faster than forwards, and backwards, can follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.model import Floats, Placement
from pipeplan.simulation.memory import held_by_stage, static_bytes
from pipeplan.simulation.op_classes import FORWARD, INPUT, WEIGHT, RankClasses

SLACK = 1e-9
"""Share of a cap by which rounded sums may pass it."""


@dataclass(frozen=True, slots=True)
class RankMemory:
    """A rank's cap, and what one op of each of its classes holds: arrays of shape (classes,) in one unit.

    Attributes
    ----------
    cap
        The most that the rank may hold.
    activation
        Held from F's start.
    freed_by_weight
        The part of it, at most all, that W frees (or the end of a full backward).
    """

    cap: float
    activation: Floats
    freed_by_weight: Floats


def rank_memory(
    placement: Placement, costs: Costs, limits: Limits, classes: list[RankClasses], slices: int = 1
) -> list[RankMemory]:
    """Every rank's cap with what its classes hold."""
    activation, freed_by_weight = held_by_stage(placement, costs, in_activations=limits.in_activations)
    caps = limits.values if limits.in_activations else limits.values - static_bytes(placement, costs)
    return [
        RankMemory(
            float(cap),
            activation[here.stage] / slices,
            np.minimum(activation, freed_by_weight)[here.stage] / slices,
        )
        for cap, here in zip(caps, classes, strict=True)
    ]


def idle_ends(rank: RankClasses, memory: RankMemory, *, onward: bool) -> float:
    """How long a rank is under way at least, as it idles while it waits for its first and for its last microbatch.

    With ``onward``, up to the end of what the last microbatch does after it has left the rank.
    """
    wait = rank.head[INPUT].min() - rank.head[FORWARD]
    room: Floats = np.clip(wait / rank.time[FORWARD], 0.0, rank.count)
    before = min(rank.first_way, _most(rank.time[FORWARD], memory.activation, room, memory.cap))
    tail = float((rank.tail if onward else rank.time)[INPUT if onward else WEIGHT].min())
    after = min(tail, _most(rank.time[WEIGHT], memory.freed_by_weight, rank.count.astype(np.float64), memory.cap))
    return rank.first_way + max(float(rank.work.sum()) - before - after, 0.0) + tail


def _most(times: Floats, sizes: Floats, room: Floats, cap: float) -> float:
    """The most time that ops of these classes can take which fit under the cap together, parts of ops included."""
    worth = np.divide(times, sizes, out=np.full(len(sizes), np.inf), where=sizes > 0)
    order = np.argsort(-worth)
    wanted = (room * sizes)[order]
    over = np.clip(np.cumsum(wanted) - _usable(cap, sizes), 0.0, wanted)
    fitting = 1.0 - np.divide(over, wanted, out=np.zeros(len(order)), where=over > 0)
    return float(((room * times)[order] * fitting).sum())


def _usable(cap: float, sizes: Floats) -> float:
    """The cap, or where everything held is of one size, the part of it that such things can fill."""
    size = float(sizes[0])
    return int(cap * (1 + SLACK) / size) * size if size > 0 and bool((sizes == size).all()) else cap


def held_area(rank: RankClasses, memory: RankMemory) -> float:
    """How long a rank is under way at least, as the activations that it must hold do not all fit at once."""
    trip = rank.head[INPUT] + rank.time[INPUT] - rank.head[FORWARD]
    each = memory.activation * trip + memory.freed_by_weight * rank.time[WEIGHT]
    area = float((rank.count * each).sum())
    at_once = bool(((memory.freed_by_weight == 0) | (memory.freed_by_weight == memory.activation)).all())
    cap = _usable(memory.cap, memory.activation) if at_once else memory.cap
    cap = min(cap, float((rank.count * memory.activation).sum()))
    if cap <= 0:
        return 0.0
    rise = _fastest(memory.activation, rank.time[FORWARD])
    freed_by_input = _fastest(memory.activation - memory.freed_by_weight, rank.time[INPUT])
    fall = max(freed_by_input, _fastest(memory.freed_by_weight, rank.time[WEIGHT]))
    climb = max(cap - float(memory.activation.max()), 0.0)
    if area / cap < climb / rise + climb / fall:
        return area / cap
    return (area + climb**2 / (2 * rise) + climb**2 / (2 * fall)) / cap


def _fastest(changes: Floats, times: Floats) -> float:
    """The most that ops which change the level by so much and take so long can change it in a unit of time."""
    rates = np.divide(changes, times, out=np.where(changes > 0, np.inf, 0.0), where=(changes > 0) & (times > 0))
    return float(rates.max())
