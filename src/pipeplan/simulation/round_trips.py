"""Round trips that cannot overlap: a lower bound on a rank's span from its memory limit all along the step.

Take one rank, and the last stage that it holds. From the start of a microbatch's forward there to the start of its
backward there, the rank holds everything that it ever holds of that microbatch. If q microbatches fit, the first of
these backwards starts before forward number q + 1 does, and so on: every q-th of these *trips* follows the one before::

    q = 2    |-- trip of 0 --|-- trip of 2 --|-- trip of 4 --|
                 |-- trip of 1 --|-- trip of 3 --|

No trip is shorter than the way to the last stage and back. Meanwhile the rank can run backwards only of what it held when
the trip began, and forwards only of what it still holds when the trip ends; for more it must wait.

The bound adds up windows of time that do not overlap, each with its least length and the most work in it:

``first``
    From the first start, or when that can be at the earliest, to the first backward: forwards alone, all of them still held.
``trip``
    Of microbatches q + 1, 2q + 1, ... as they enter the rank's last stage.
``last``
    From the last forward to the end: that forward, and backwards of what is held.
``owed``
    In place of the last: from the end of the last I to the end, with the weight backwards that can be owed.

The rank's span is at least the windows' lengths and the work that finds no place in them. The page ``explanation/bounds`` of
the documentation proves it in seven steps, which the comments below refer to. It numbers microbatches by time, so nothing is
assumed about their order, and holds for stages of any times and sizes. *Slices*: a trip is that of the last slice, when all
slices are held. *Groups*: trips of all copies, and of microbatches that differ, are numbered together and as short as the
shortest, and as many fit as of the smallest microbatch; one that passes another takes the place of what it overtakes, and
its work is counted. *Overlapped pairs*: times are the least that an op can take from its rank, and the partner of the
forward that opens a window is counted too. A link that carries one message at a time, or ranks that wait for their messages,
only make trips longer. Recomputed and offloaded microbatches are not held on their trip, so nothing follows for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from operator import attrgetter

import numpy as np

from pipeplan.model import Floats, tolerances
from pipeplan.simulation.memory_bounds import HeldWork, RankMemory, held_work, most_that_fits
from pipeplan.simulation.op_classes import FORWARD, INPUT, WEIGHT, RankClasses
from pipeplan.simulation.windows import RoundTrips, Window, WindowKind

Windows = tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class Trip:
    """Least times between a rank's ops, the smallest over all copies of the model.

    Attributes
    ----------
    enter
        Time from the rank's first start to the start of its first I.
    around
        Time from the start of F on the rank's last stage to the start of I there: a trip.
    leave
        Time from the start of that F to the end of the window ``last``.
    drain
        Time from the end of the rank's last I to the end of the window ``owed``.
    opening
        Work of that F; if pairs overlap, with the most work that can overlap it.
    """

    enter: float
    around: float
    leave: float
    drain: float
    opening: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """Number of microbatches, and how many of them a rank may hold.

    Attributes
    ----------
    rank
        Number of the rank.
    begin
        Earliest time at which a microbatch can reach the rank; None if the bound is on the rank's own span.
    microbatches
        Number of microbatches over all copies of the model.
    slices
        Number of slices per sequence.
    whole
        Memory of one microbatch on all stages of the rank, the least over all copies.
    fit
        Number of microbatches that the limit holds at once: q in the proof.
    """

    rank: int
    begin: float | None
    microbatches: int
    slices: int
    whole: float
    fit: int


def round_trips(
    number: int, rank: RankClasses, memory: RankMemory, slowest: Floats, *, slices: int = 1, onward: bool, pairs: bool
) -> RoundTrips | None:
    """Return the windows with the largest bound for a rank; None if its limit does not keep round trips apart.

    Parameters
    ----------
    number
        Number of the rank.
    rank, memory
        Its classes, its limit and what they hold.
    slowest
        Longest time of an op of one slice on each stage of the model or any later one, shape (3, stages).
    slices
        Number of slices per sequence.
    onward
        True if the bound is on the makespan, including the last microbatch's way after this rank; else on the rank's span.
    pairs
        True if a forward and a backward may overlap in less time than both take.
    """
    crowd = _crowd(number, rank, memory, slices=slices, onward=onward)
    if not 0 < crowd.fit < crowd.microbatches:
        return None
    trip = _shortest(
        [_trip(rank, here, slowest, slices=slices, onward=onward, pairs=pairs) for here in rank.by_group()]
    )
    candidates = [_span(rank, memory, crowd, trip, share) for share in _shares_of_weights(rank, memory)]
    return max(candidates, key=attrgetter("length"))


def _crowd(number: int, rank: RankClasses, memory: RankMemory, *, slices: int, onward: bool) -> Crowd:
    groups = rank.by_group()
    microbatches = sum(int(rank.count[here[0]]) for here in groups) // slices
    # Step 2: on a trip, the rank holds all its stages' activations of the microbatch.
    whole = min(slices * float(memory.activation[here].sum()) for here in groups)
    bound = whole > 0 and memory.limit < inf
    fit = int(memory.limit * (1 + tolerances.MEMORY) / whole) if bound else microbatches
    return Crowd(number, rank.first_head if onward else None, microbatches, slices, whole, fit)


def _shares_of_weights(rank: RankClasses, memory: RankMemory) -> tuple[float, ...]:
    """Return the shares of the work of W to count in windows; the rest of W is assumed to run inside them."""
    owed_for_less = (memory.freed_by_weight < memory.activation) & (rank.time[WEIGHT] > 0)
    return (1.0, 0.5, 0.0) if owed_for_less.any() else (1.0,)


def _trip(rank: RankClasses, here: list[int], slowest: Floats, *, slices: int, onward: bool, pairs: bool) -> Trip:
    """Return the least times of one copy of the model, whose columns are ``here`` (step 5)."""
    first, last = here[0], here[-1]
    stage = int(rank.stage[first])
    # To the end of the makespan, or to the end of the rank's own last op.
    if onward:
        leave = float(rank.time[FORWARD, last] + rank.tail[FORWARD, last])
        drain = float(rank.tail[INPUT, first])
    else:
        ends = rank.head[INPUT, here] + rank.time[INPUT, here] + rank.time[WEIGHT, here]
        leave = float((ends - rank.head[FORWARD, last]).max())
        drain = float(rank.time[WEIGHT, first])
    beside = float(((rank.work[INPUT] + rank.work[WEIGHT]) / np.maximum(rank.count, 1)).max()) if pairs else 0.0
    return Trip(
        enter=float(rank.head[INPUT, last]) - rank.first_head + _behind(slowest[FORWARD, stage], slices),
        around=float(rank.head[INPUT, last] - rank.head[FORWARD, last]),
        leave=leave + _behind(slowest[INPUT, 0 if onward else stage], slices),
        drain=drain,
        opening=float(rank.work[FORWARD, last] / rank.count[last]) + beside,
    )


def _behind(slowest: float, slices: int) -> float:
    """Return how much later the last slice arrives than the first on a way whose slowest op takes ``slowest``."""
    return (slices - 1) * float(slowest) if slices > 1 else 0.0


def _shortest(trips: list[Trip]) -> Trip:
    return Trip(
        enter=min(trip.enter for trip in trips),
        around=min(trip.around for trip in trips),
        leave=min(trip.leave for trip in trips),
        drain=min(trip.drain for trip in trips),
        opening=max(trip.opening for trip in trips),
    )


def _room_before(rank: RankClasses, memory: RankMemory, trip: Trip) -> float:
    """Return the most work of forwards that can reach the rank before its first I, and fit."""
    wait = trip.enter + rank.first_head - rank.head[FORWARD]
    room: Floats = np.clip(wait / rank.time[FORWARD], 0.0, rank.count)
    return most_that_fits(rank.time[FORWARD], memory.activation, room, memory.limit)


def _span(rank: RankClasses, memory: RankMemory, crowd: Crowd, trip: Trip, share: float) -> RoundTrips:
    """Return the windows with a share of W counted in each; the rest of W counts once for all windows."""
    counted = _ways(rank, memory, crowd, trip, share)
    alone = counted if share == 1 else _ways(rank, memory, crowd, trip, 1.0)
    hidden = (1.0 - share) * float(rank.work[WEIGHT].sum())
    total = float(rank.work.sum())
    candidates = (_added_up(crowd, *windows, total, hidden) for windows in zip(counted, alone, strict=True))
    return max(candidates, key=attrgetter("length"))


def _ways(rank: RankClasses, memory: RankMemory, crowd: Crowd, trip: Trip, share: float) -> tuple[Windows, Windows]:
    """Return two sets of windows (step 4): one ends with ``last``, the other with one more trip and ``owed``."""
    held, limit = held_work(rank, memory, weight_share=share), memory.limit
    # Steps 3 and 6: every q-th trip is apart from the one before; the work in a window fits into memory.
    trips = (crowd.microbatches - 1) // crowd.fit
    before = min(held.forward(limit), _room_before(rank, memory, trip))
    between = trip.opening + _work_on_trip(rank, held, limit, crowd, share)
    first = _window("first", 1, trip.enter, before)
    return (
        (
            first,
            _window("trip", trips - 1, trip.around, between),
            _window("last", 1, trip.leave, trip.opening + held.backward(limit)),
        ),
        (first, _window("trip", trips, trip.around, between), _window("owed", 1, trip.drain, held.weights(limit))),
    )


def _window(kind: WindowKind, count: int, length: float, work: float) -> Window:
    return Window(kind, count, length, min(length, work))


def _work_on_trip(rank: RankClasses, held: HeldWork, limit: float, crowd: Crowd, share: float) -> float:
    """Return the most work during a trip besides the forward that opens it (step 6).

    Microbatches that are alike, numbered in order of arrival, cannot pass each other. Those of another group may enter after
    the trip began and leave before it ends: for each of them there is one more that the rank holds all the while.
    """
    left = limit - crowd.whole
    most = held.forward(left) + held.backward(left)
    if not rank.group.any():
        return most
    work = crowd.slices * rank.work / np.maximum(rank.count, 1)
    work[WEIGHT] *= share
    passing = max(float(work[:, here].sum()) for here in rank.by_group())
    # For each number of microbatches that pass, the space that is left for others.
    for passed in range(1, crowd.fit):
        left = limit - (1 + passed) * crowd.whole
        most = max(most, held.forward(left) + held.backward(left) + passed * passing)
    return most


def _added_up(crowd: Crowd, windows: Windows, alone: Windows, total: float, hidden: float) -> RoundTrips:
    """Add up the windows and the work that finds no place in them (step 7).

    ``hidden`` is the most work in all windows together that they do not count; ``alone`` are the same windows, each with
    all the work that can be in it.
    """
    length = sum(window.count * window.length for window in windows)
    idle = max(sum(window.count * window.idle for window in windows) - hidden, 0.0)
    return RoundTrips(
        rank=crowd.rank,
        begin=crowd.begin,
        fit=crowd.fit,
        length=max(length, total + idle),
        windows=tuple(window for window in alone if window.count),
        idle=idle,
    )
