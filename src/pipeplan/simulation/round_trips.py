"""Round trips that cannot overlap: what a rank's limit costs all along its way, not at its ends alone.

Take one rank, and the last stage that it holds. From the start of a microbatch's forward there to the start of its
backward there, the rank holds everything that it ever holds of that microbatch. Where q microbatches fit, the first of
these backwards starts before the forward number q + 1 does, and so on: every q-th of these *trips* follows the one before,
and none of them can be shorter than the way to the last stage and back. Meanwhile the rank can run backwards only of what
it held when the trip began, and forwards only of what it still holds when the trip ends; for more it must wait.

Windows of time that follow one another without overlap, each with its least length and the most work in it:

``first``
    From the first start, or when that can be at the earliest, to the first backward: forwards alone, all of them still held.
``trip``
    Of microbatches q + 1, 2q + 1, ... as they enter the rank's last stage.
``last``
    From the last forward to the end: that forward, and backwards of what is held.
``owed``
    In place of the last: from the end of the last I to the end, with the weight backwards that can be owed.

The rank is under way at least as long as they take together, and the work that finds no place in them. The proof, step by
step, is in the documentation's page on bounds. It numbers what is alike by time, so nothing is assumed about the order of
microbatches, and holds for stages of any times and sizes. *Slices*: a trip is that of the last slice, when all slices are
held. *Copies*: trips of all copies are numbered together and as short as the shortest; one that passes another takes the
place of what it overtakes, and its work is counted. *Overlapped pairs*: times are the least that an op can take from its
rank, and the partner of the forward that opens a window is counted too. A link that carries one message at a time, or ranks
that wait for their messages, only make trips longer. Recomputed and offloaded microbatches are not held on their trip, so
nothing follows for them.
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
    """What must pass at least, whichever copy of the model it is of: from op to op, and to the end.

    Attributes
    ----------
    enter
        From the rank's first start to the start of its first I.
    around
        From the start of the F on the rank's last stage to the start of I there.
    leave
        From the start of that F to the end.
    drain
        From the end of the rank's last I to the end.
    opening
        The work of that F; where pairs overlap, with the most that can run beside it.
    """

    enter: float
    around: float
    leave: float
    drain: float
    opening: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many microbatches there are, and how many of them a rank may hold.

    Attributes
    ----------
    rank, begin
        Its number, and when the first microbatch can reach it; None where only its own time counts.
    microbatches, slices
        Of all copies of the model together, and of each sequence.
    whole
        What all stages of a rank hold for one microbatch; the least of all copies.
    fit
        How many of them its limit holds at once.
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
    """The windows that bind most on a rank; None where its limit keeps none apart.

    Parameters
    ----------
    number
        Of the rank.
    slowest
        The most that an op of one slice takes on each stage of the model or any behind it, shape (3, stages).
    onward
        Whether the end is that of what the last microbatch does after it has left the rank, or of the rank's own ops.
    pairs
        Whether forwards may overlap with backwards in less time than both take.
    """
    crowd = _crowd(number, rank, memory, slices=slices, onward=onward)
    if not 0 < crowd.fit < crowd.microbatches:
        return None
    trip = _shortest([_trip(rank, here, slowest, slices=slices, onward=onward, pairs=pairs) for here in rank.by_copy()])
    shares = _shares_of_weights(rank, memory)
    found = [_under_way(rank, memory, crowd, trip, share) for share in shares]
    return max(found, key=attrgetter("length"))


def _crowd(number: int, rank: RankClasses, memory: RankMemory, *, slices: int, onward: bool) -> Crowd:
    copies = rank.by_copy()
    microbatches = sum(int(rank.count[here[0]]) for here in copies) // slices
    whole = min(slices * float(memory.activation[here].sum()) for here in copies)
    bound = whole > 0 and memory.limit < inf
    fit = int(memory.limit * (1 + tolerances.MEMORY) / whole) if bound else microbatches
    return Crowd(number, rank.first_head if onward else None, microbatches, slices, whole, fit)


def _shares_of_weights(rank: RankClasses, memory: RankMemory) -> tuple[float, ...]:
    """Which parts of the work of W to look for in windows; the rest of all of it is taken to be in them."""
    owed_for_less = (memory.freed_by_weight < memory.activation) & (rank.time[WEIGHT] > 0)
    return (1.0, 0.5, 0.0) if owed_for_less.any() else (1.0,)


def _trip(rank: RankClasses, here: list[int], slowest: Floats, *, slices: int, onward: bool, pairs: bool) -> Trip:
    """Of one copy of the model, whose columns these are."""
    first, last = here[0], here[-1]
    stage = int(rank.stage[first])
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
    """How much later the last slice comes than the first, on a way on which the slowest op takes so long and holds it up."""
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
    """The most work of forwards that can come to the rank before its first I, and fit."""
    wait = trip.enter + rank.first_head - rank.head[FORWARD]
    room: Floats = np.clip(wait / rank.time[FORWARD], 0.0, rank.count)
    return most_that_fits(rank.time[FORWARD], memory.activation, room, memory.limit)


def _under_way(rank: RankClasses, memory: RankMemory, crowd: Crowd, trip: Trip, share: float) -> RoundTrips:
    """The windows with their work, of W a share of its time; the rest of W's time may all be in one or other of them."""
    counted = _ways(rank, memory, crowd, trip, share)
    alone = counted if share == 1 else _ways(rank, memory, crowd, trip, 1.0)
    hidden = (1.0 - share) * float(rank.work[WEIGHT].sum())
    total = float(rank.work.sum())
    found = (_together(crowd, *windows, total, hidden) for windows in zip(counted, alone, strict=True))
    return max(found, key=attrgetter("length"))


def _ways(rank: RankClasses, memory: RankMemory, crowd: Crowd, trip: Trip, share: float) -> tuple[Windows, Windows]:
    """The windows up to the last one, and those with one more trip in its place."""
    held, limit = held_work(rank, memory, weight_share=share), memory.limit
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
    """The most work on a trip besides the forward that opens it.

    Microbatches of one copy of the model cannot pass each other, numbered as they come. Of several, some that enter after
    the trip began may leave before it ends: for each of them there is one more that the rank holds all the while.
    """
    left = limit - crowd.whole
    most = held.forward(left) + held.backward(left)
    if not rank.copy.any():
        return most
    work = crowd.slices * rank.work / np.maximum(rank.count, 1)
    work[WEIGHT] *= share
    passing = max(float(work[:, here].sum()) for here in rank.by_copy())
    for passed in range(1, crowd.fit):
        left = limit - (1 + passed) * crowd.whole
        most = max(most, held.forward(left) + held.backward(left) + passed * passing)
    return most


def _together(crowd: Crowd, windows: Windows, alone: Windows, total: float, hidden: float) -> RoundTrips:
    """The windows one after the other, and beside them the work that finds no place in them.

    ``hidden`` is the most work in them all that they do not count; ``alone`` are the same windows, each with
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
