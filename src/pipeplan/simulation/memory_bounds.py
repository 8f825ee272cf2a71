"""The most work on things that fit into a space together: a fractional knapsack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.model import Floats, Placement, tolerances
from pipeplan.simulation.op_classes import FORWARD, INPUT, WEIGHT, RankClasses

Thing = tuple[float, float, float]
"""Something that can be held: its size, the work on it, how many of it there are at most."""


def by_worth(things: Iterable[Thing]) -> tuple[Thing, ...]:
    """Those with work on them, the most work for its size first."""
    kept = [thing for thing in things if thing[1] * thing[2] > 0]
    return tuple(sorted(kept, key=_worth, reverse=True))


def _worth(thing: Thing) -> float:
    size, work, _ = thing
    return work / size if size > 0 else inf


def most_work(things: Sequence[Thing], space: float) -> float:
    """The most work on things, sorted by worth, which fit into a space together; parts of them included."""
    total = 0.0
    for size, work, count in things:
        if size * count > space:
            return total + max(space, 0.0) / size * work
        total += work * count
        space -= size * count
    return total


def unit_of(*sizes: float) -> float:
    """The one size of all that is not empty; 0 where there are several, or none."""
    filled = {size for size in sizes if size > 0}
    return filled.pop() if len(filled) == 1 else 0.0


def filled(space: float, unit: float) -> float:
    """The part of a space that things of this size can fill; all of it where they are of several sizes."""
    space *= 1 + tolerances.MEMORY
    return int(space / unit) * unit if unit > 0 and space < inf else space


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


@dataclass(frozen=True, slots=True)
class HeldWork:
    """What a rank can hold, by the work that it is for.

    Attributes
    ----------
    forwards, backwards, owed
        Things held by forwards that are done; of which backwards are to come; of which only weight backwards are. Each is
        sorted by work for its size, most first.
    unit
        The size of each activation where all that is held is of one size, so that only whole ones count; else 0.
    """

    forwards: tuple[Thing, ...]
    backwards: tuple[Thing, ...]
    owed: tuple[Thing, ...]
    unit: float

    def forward(self, space: float) -> float:
        """The most work of forwards that are all still held, in this space."""
        return most_work(self.forwards, filled(space, self.unit))

    def backward(self, space: float) -> float:
        """The most work of I and W on what is held in this space."""
        return most_work(self.backwards, filled(space, self.unit))

    def weights(self, space: float) -> float:
        """The most work of W alone on what is held in this space."""
        return most_work(self.owed, filled(space, self.unit))


def held_work(rank: RankClasses, memory: RankMemory, *, weight_share: float = 1.0) -> HeldWork:
    """What a rank can hold; of the work of W only a share may count."""
    forwards: list[Thing] = []
    backwards: list[Thing] = []
    owed: list[Thing] = []
    activation, freed, counts = memory.activation.tolist(), memory.freed_by_weight.tolist(), rank.count.tolist()
    work = rank.work.tolist()
    for here in rank.by_copy():
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
