r"""Lower bounds on a rank's span under a memory limit, and the most work that fits into memory.

Three parts: the fractional knapsack, the bounds, and what a rank can hold at once. A rank's *span* is the time from its
first start to its last end.

Idle ends
    Before its first backward a rank can only run forwards, and no more than fit under its limit; the way of the first
    microbatch to the last stage and back takes its time. After its last input backward it can only run weight backwards, and
    no more than fitted under the limit while they waited. All other work lies between::

        |- way of the first microbatch -|---- all other work ----|- what follows the last I -|
           forwards that fit, then idle                            weight backwards that fit, then idle

Held activations
    Every activation is held for at least the round trip of its microbatch. Level times time is an area, and the limit leaves
    only so much of it: limit times span, minus what is lost while the level rises and falls, which it does no faster than
    forwards, and backwards, follow each other::

        limit   ______________
               /              \         area of all round trips <= limit * span - the two triangles
              /                \
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.model import Floats, Placement, tolerances
from pipeplan.simulation.op_classes import FORWARD, INPUT, WEIGHT, RankClasses

Thing = tuple[float, float, float]
"""An activation to hold: its size, the work on it, and how many of it there are."""


def by_worth(things: Iterable[Thing]) -> tuple[Thing, ...]:
    """Sort things by work per size, largest first, and drop those without work."""
    kept = [thing for thing in things if thing[1] * thing[2] > 0]
    return tuple(sorted(kept, key=_worth, reverse=True))


def _worth(thing: Thing) -> float:
    size, work, _ = thing
    return work / size if size > 0 else inf


def most_work(things: Sequence[Thing], space: float) -> float:
    """Return the most work on things that fit into a space together; ``things`` are sorted by :func:`by_worth`.

    Parts of a thing count, so the greedy choice is optimal (fractional knapsack: Dantzig, "Discrete-variable extremum
    problems", Operations Research 5, 1957) and an upper bound for whole things. Into a space below 0, what is held
    throughout being above the limit, goes as much as into none.
    """
    total, space = 0.0, max(space, 0.0)
    for size, work, count in things:
        if size * count > space:
            return total + space / size * work
        total += work * count
        space -= size * count
    return total


def unit_of(*sizes: float) -> float:
    """Return the size that all positive sizes have in common; 0 if there are several, or none."""
    filled = {size for size in sizes if size > 0}
    return filled.pop() if len(filled) == 1 else 0.0


def filled(space: float, unit: float) -> float:
    """Return the part of a space that whole things of one size can fill; all of it if ``unit`` is 0 (several sizes)."""
    space *= 1 + tolerances.MEMORY
    return int(space / unit) * unit if unit > 0 and space < inf else space


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Memory limit of a rank, and the memory of one op of each of its classes: arrays of shape (classes,), all in one unit.

    Attributes
    ----------
    limit
        Most memory that the rank may hold.
    activation
        Memory held from the start of F.
    freed_by_weight
        Part of ``activation`` that W, or the end of a full backward, frees.
    """

    limit: float
    activation: Floats
    freed_by_weight: Floats


def rank_memory(
    placement: Placement, costs: Costs, limits: Limits, classes: list[RankClasses], slices: int = 1
) -> list[RankMemory]:
    """Return the limit of every rank, and the memory of its classes."""
    rule = costs.memory.rule(placement, limits)
    at_most_all = np.minimum(rule.activation, rule.freed_by_weight)
    factors = rule.factors if rule.factors.size else np.ones((placement.stages, 1))
    sizes = [factors[here.stage, np.minimum(here.microbatch, factors.shape[1] - 1)] / slices for here in classes]
    return [
        RankMemory(
            limit=float(limit),
            activation=rule.activation[here.stage] * size,
            freed_by_weight=at_most_all[here.stage] * size,
        )
        for limit, here, size in zip(rule.limit, classes, sizes, strict=True)
    ]


def idle_ends(rank: RankClasses, memory: RankMemory, *, onward: bool, pairs: bool) -> float:
    """Return a lower bound on the span of a rank that idles while it waits for its first and for its last microbatch.

    With ``onward`` the span lasts until the last microbatch has also been through the ranks after this one. ``pairs``: a
    forward and a backward may overlap in less time than both take.
    """
    # Forwards that can arrive, and fit, before the first backward.
    wait = rank.head[INPUT].min() - rank.head[FORWARD]
    room: Floats = np.clip(wait / rank.time[FORWARD], 0.0, rank.count)
    before = min(rank.first_way, most_that_fits(rank.time[FORWARD], memory.activation, room, memory.limit))
    if pairs:
        # They run alone, in their whole times: less of the least work is done meanwhile.
        things = zip(rank.time[FORWARD].tolist(), rank.least[FORWARD].tolist(), room.tolist(), strict=True)
        before = min(before, most_work(by_worth(things), rank.first_way))
    # Weight backwards that can be left, and fitted, after the last input backward.
    tail = float((rank.tail if onward else rank.time)[INPUT if onward else WEIGHT].min())
    after = min(
        tail, most_that_fits(rank.time[WEIGHT], memory.freed_by_weight, rank.count.astype(np.float64), memory.limit)
    )
    return rank.first_way + max(float(rank.work.sum()) - before - after, 0.0) + tail


def most_that_fits(times: Floats, sizes: Floats, room: Floats, limit: float) -> float:
    """Return the most time of ops that fit under the limit together; ``room`` is the number of ops of each class."""
    things = zip(sizes.tolist(), times.tolist(), room.tolist(), strict=True)
    return most_work(by_worth(things), filled(limit, unit_of(*sizes.tolist())))


def held_area(rank: RankClasses, memory: RankMemory) -> float:
    """Return a lower bound on the span of a rank whose activations do not all fit at once."""
    # Area that each activation takes: all of it from F to the end of I, what W frees until the end of W.
    trip = rank.head[INPUT] + rank.time[INPUT] - rank.head[FORWARD]
    held = memory.activation * trip + memory.freed_by_weight * rank.time[WEIGHT]
    area = float((rank.count * held).sum())
    # Where I frees all of an activation, or W does, the level moves in whole activations.
    at_once = bool(((memory.freed_by_weight == 0) | (memory.freed_by_weight == memory.activation)).all())
    limit = filled(memory.limit, unit_of(*memory.activation.tolist())) if at_once else memory.limit
    limit = min(limit, float((rank.count * memory.activation).sum()))
    if limit <= 0:
        return 0.0
    # The level climbs from one activation to the limit, and back, no faster than this.
    rise = _fastest(memory.activation, rank.time[FORWARD])
    freed_by_input = _fastest(memory.activation - memory.freed_by_weight, rank.time[INPUT])
    fall = max(freed_by_input, _fastest(memory.freed_by_weight, rank.time[WEIGHT]))
    climb = max(limit - float(memory.activation.max()), 0.0)
    # Too little area to reach the limit: the triangles would overlap, so they are left out.
    if area / limit < climb / rise + climb / fall:
        return area / limit
    return (area + climb**2 / (2 * rise) + climb**2 / (2 * fall)) / limit


def _fastest(changes: Floats, times: Floats) -> float:
    """Return the largest change of the level per unit of time, for ops with these changes and times."""
    rates = np.divide(changes, times, out=np.where(changes > 0, np.inf, 0.0), where=(changes > 0) & (times > 0))
    return float(rates.max())


@dataclass(frozen=True, slots=True)
class HeldWork:
    """Activations that a rank can hold, with the work on them.

    What is held is filled from the front: if a rank holds a slice of a microbatch on one of its stages, and the backward
    there is still to come, it holds the slice on all its earlier stages, too. So the things to hold are runs of a rank's
    stages from its first one on and, if I is done and W is not, what W frees on one stage.

    Attributes
    ----------
    forwards
        Activations with the work of the forwards that made them.
    backwards
        Activations with the work of the backwards to come.
    owed
        Activations with the work of W where I is done.
    unit
        The size of an activation if all have the same, so that only whole ones count; else 0.
    """

    forwards: tuple[Thing, ...]
    backwards: tuple[Thing, ...]
    owed: tuple[Thing, ...]
    unit: float

    def forward(self, space: float) -> float:
        """Return the most work of forwards whose activations are all held in this space."""
        return most_work(self.forwards, filled(space, self.unit))

    def backward(self, space: float) -> float:
        """Return the most work of I and W on activations held in this space."""
        return most_work(self.backwards, filled(space, self.unit))

    def weights(self, space: float) -> float:
        """Return the most work of W alone on activations held in this space."""
        return most_work(self.owed, filled(space, self.unit))


def held_work(rank: RankClasses, memory: RankMemory, *, weight_share: float = 1.0) -> HeldWork:
    """Return the activations that a rank can hold; of the work of W only ``weight_share`` counts."""
    forwards: list[Thing] = []
    backwards: list[Thing] = []
    owed: list[Thing] = []
    activation, freed, counts = memory.activation.tolist(), memory.freed_by_weight.tolist(), rank.count.tolist()
    work = rank.work.tolist()
    for here in rank.by_group():
        # Runs of stages from the first one on: sizes and work add up.
        size = forward = backward = 0.0
        for column in here:
            count = counts[column]
            weight = weight_share * work[WEIGHT][column] / count
            size += activation[column]
            forward += work[FORWARD][column] / count
            backward += work[INPUT][column] / count + weight
            forwards.append((size, forward, count))
            backwards.append((size, backward, count))
            owed.append((freed[column], weight, count))
    return HeldWork(by_worth(forwards), by_worth(backwards + owed), by_worth(owed), unit_of(*activation, *freed))
