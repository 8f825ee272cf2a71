"""What a memory limit forces: lower bounds on how long a rank is under way, from its first start to its last end.

Idle ends
    Before a rank's first backward it can only run forwards, and no more than fit under its limit; the first microbatch's way
    to the last stage and back takes as long as it takes. After its last input backward it can only run weight backwards, and
    no more than fit under the limit while they waited. All other work lies between.

Held activations
    Every activation is held for at least its microbatch's round trip. Level times time is an area, and under the limit
    there is only so much of it: limit times the time under way, less what is lost while the level rises and falls, which
    it does no faster than forwards, and backwards, can follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.model import Floats, Placement
from pipeplan.simulation.fitting import by_worth, filled, most_work, unit_of
from pipeplan.simulation.op_classes import FORWARD, INPUT, WEIGHT, RankClasses


@dataclass(frozen=True, slots=True)
class RankMemory:
    """A rank's limit, and what one op of each of its classes holds: arrays of shape (classes,) in one unit.

    Attributes
    ----------
    limit
        The most that the rank may hold.
    activation
        Held from F's start.
    freed_by_weight
        The part of it, at most all, that W frees (or the end of a full backward).
    """

    limit: float
    activation: Floats
    freed_by_weight: Floats


def rank_memory(
    placement: Placement, costs: Costs, limits: Limits, classes: list[RankClasses], slices: int = 1
) -> list[RankMemory]:
    """Every rank's limit with what its classes hold."""
    rule = costs.memory.rule(placement, limits)
    at_most_all = np.minimum(rule.activation, rule.freed_by_weight)
    return [
        RankMemory(
            limit=float(limit),
            activation=rule.activation[here.stage] / slices,
            freed_by_weight=at_most_all[here.stage] / slices,
        )
        for limit, here in zip(rule.limit, classes, strict=True)
    ]


def idle_ends(rank: RankClasses, memory: RankMemory, *, onward: bool) -> float:
    """How long a rank is under way at least, as it idles while it waits for its first and for its last microbatch.

    With ``onward``, up to the end of what the last microbatch does after it has left the rank.
    """
    wait = rank.head[INPUT].min() - rank.head[FORWARD]
    room: Floats = np.clip(wait / rank.time[FORWARD], 0.0, rank.count)
    before = min(rank.first_way, most_that_fits(rank.time[FORWARD], memory.activation, room, memory.limit))
    tail = float((rank.tail if onward else rank.time)[INPUT if onward else WEIGHT].min())
    after = min(
        tail, most_that_fits(rank.time[WEIGHT], memory.freed_by_weight, rank.count.astype(np.float64), memory.limit)
    )
    return rank.first_way + max(float(rank.work.sum()) - before - after, 0.0) + tail


def most_that_fits(times: Floats, sizes: Floats, room: Floats, limit: float) -> float:
    """The most time that ops of these classes can take which fit under the limit together, parts of ops included."""
    things = zip(sizes.tolist(), times.tolist(), room.tolist(), strict=True)
    return most_work(by_worth(things), filled(limit, _unit(sizes)))


def _unit(sizes: Floats) -> float:
    return unit_of(*sizes.tolist())


def held_area(rank: RankClasses, memory: RankMemory) -> float:
    """How long a rank is under way at least, as the activations that it must hold do not all fit at once."""
    trip = rank.head[INPUT] + rank.time[INPUT] - rank.head[FORWARD]
    each = memory.activation * trip + memory.freed_by_weight * rank.time[WEIGHT]
    area = float((rank.count * each).sum())
    at_once = bool(((memory.freed_by_weight == 0) | (memory.freed_by_weight == memory.activation)).all())
    limit = filled(memory.limit, _unit(memory.activation)) if at_once else memory.limit
    limit = min(limit, float((rank.count * memory.activation).sum()))
    if limit <= 0:
        return 0.0
    rise = _fastest(memory.activation, rank.time[FORWARD])
    freed_by_input = _fastest(memory.activation - memory.freed_by_weight, rank.time[INPUT])
    fall = max(freed_by_input, _fastest(memory.freed_by_weight, rank.time[WEIGHT]))
    climb = max(limit - float(memory.activation.max()), 0.0)
    if area / limit < climb / rise + climb / fall:
        return area / limit
    return (area + climb**2 / (2 * rise) + climb**2 / (2 * fall)) / limit


def _fastest(changes: Floats, times: Floats) -> float:
    """The most that ops which change the level by so much and take so long can change it in a unit of time."""
    rates = np.divide(changes, times, out=np.where(changes > 0, np.inf, 0.0), where=(changes > 0) & (times > 0))
    return float(rates.max())
