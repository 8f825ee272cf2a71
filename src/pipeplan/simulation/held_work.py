"""The most work on what a rank holds together.

What is held is filled from the front: a slice of a microbatch that a rank holds on one stage, and whose backward there is
still to come, it holds on all its earlier stages too. So the things to hold are runs of a rank's stages from its first one
on, and, where I is done and W is not, what W frees of one stage.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.simulation.fitting import Thing, by_worth, filled, most_work, unit_of
from pipeplan.simulation.memory_bounds import RankMemory
from pipeplan.simulation.op_classes import FORWARD, INPUT, WEIGHT, RankClasses


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
