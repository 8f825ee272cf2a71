"""Finding and moving ops in a rank's row, which is the part of the order from ``start`` to before ``stop``."""

from pipeplan.kernels import inlined
from pipeplan.model import Ints


def find(order: Ints, start: int, stop: int, op_class: int, index: int) -> int:
    """The place at which a class stands in a row for the ``index``-th time, or -1."""
    for place in range(start, stop):
        if order[place] == op_class:
            if index == 0:
                return place
            index -= 1
    return -1


def index_of(order: Ints, start: int, place: int) -> int:
    """How many ops of the same class stand before an op in its row."""
    count = 0
    for other in range(start, place):
        if order[other] == order[place]:
            count += 1
    return count


def place_after(order: Ints, start: int, stop: int, place: int, distance: int) -> int:
    """Where an op comes to stand when it passes ``distance`` ops of other classes; it goes towards the front if below 0.

    Ops of its own class are no distance: the k-th of them is the k-th whichever moves.
    """
    op_class = order[place]
    step = 1 if distance > 0 else -1
    target = place
    while distance != 0:
        ahead = target + step
        while start <= ahead < stop and order[ahead] == op_class:
            ahead += step
        if not start <= ahead < stop:
            break
        target = ahead
        distance -= step
    return target


def rotate(order: Ints, place: int, target: int) -> None:
    """Move one op to another place of its row; those between move up."""
    op_class = order[place]
    step = 1 if target > place else -1
    while place != target:
        order[place] = order[place + step]
        place += step
    order[place] = op_class


@inlined
def mirrored(index: int, slices: int) -> int:
    """The index of the forward of a backward, and the other way round."""
    return index // slices * slices + slices - 1 - index % slices
