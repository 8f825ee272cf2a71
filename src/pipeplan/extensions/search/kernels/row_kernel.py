"""Finding and moving ops in a rank's row, and copying rows.

Arrays: ``order`` has the class that runs at each place, rank after rank; a rank's row is the part of it from ``start`` to
before ``stop``. A step of each, on the row of two forwards and two backwards::

    place    0   1   2   3
    order    F0  F1  I0  I1        find I1: 3; index of F1: 1; the place of F1 after 1 op of another class: 2
    rotate   F0  I0  F1  I1        F1 from place 1 to 2
"""

from pipeplan.foundation.kernels import inlined
from pipeplan.model import Ints


def find(order: Ints, start: int, stop: int, op_class: int, index: int) -> int:
    """Return the place of a class's ``index``-th op in a row, or -1."""
    for place in range(start, stop):
        if order[place] == op_class:
            if index == 0:
                return place
            index -= 1
    return -1


def index_of(order: Ints, start: int, place: int) -> int:
    """Return the number of ops of the same class before an op in its row."""
    count = 0
    for other in range(start, place):
        if order[other] == order[place]:
            count += 1
    return count


def place_after(order: Ints, start: int, stop: int, place: int, distance: int) -> int:
    """Return the new place of an op that passes ``distance`` ops of other classes, towards the front if below 0.

    Ops of its own class do not count: the k-th of them is the k-th whichever moves. ``F0 F1 I0 I1``, F1 by 1: ``F0 I0 F1
    I1``.
    """
    op_class = order[place]
    step = 1 if distance > 0 else -1
    target = place
    while distance != 0:
        ahead = target + step
        # Step over ops of its own class; the end of the row stops it.
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
    # Each op on the way moves up by one, into the place that is free.
    while place != target:
        order[place] = order[place + step]
        place += step
    order[place] = op_class


@inlined
def copy_numbers(source: Ints, target: Ints) -> None:
    """Copy one array onto another of the same length."""
    for place in range(len(source)):
        target[place] = source[place]


@inlined
def mirrored(index: int, slices: int) -> int:
    """Return the index of the forward of a backward, or of the backward of a forward.

    Forwards of a microbatch run slice by slice, its backwards in reverse order.
    """
    return index // slices * slices + slices - 1 - index % slices
