"""A forward and a backward on a compute and a communication lane, event after event.

It shares nothing with :mod:`pipeplan.costs` but the record of lists: it takes them as users write them, and moves time
from one end of a piece to the next. Numbers may be floats, or fractions for exact answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, zip_longest
from random import Random
from typing import Any

from pipeplan.costs import OpSegments

Written = Sequence[tuple[str, Any]]
"""Segments of an op, as a user writes them: ``("compute", 1.2)``, ``("all_to_all", 0.4)``, ..."""


@dataclass(eq=False)
class Piece:
    """What a lane does at once for one op, after the piece that it waits for.

    ``op`` is ``f``, ``b``, or ``w`` for weights that the next communication does not wait for.
    """

    op: str
    lane: str
    left: Any
    after: Piece | None
    begin: Any = None
    end: Any = None


@dataclass(frozen=True)
class Ran:
    """Times of a pair, and its pieces in the order in which they ended."""

    time: Any
    exposed: Any
    hidden: Any
    pieces: tuple[Piece, ...]


@lru_cache(maxsize=100_000)
def pair(forward: Written, inputs: Written, weights: Written, slowdown: Any = 1, *, delayed: bool = False) -> Ran:
    """Run a forward beside a full backward; ``weights`` is empty for an I, ``forward`` for a backward alone."""
    beside, back = steps_of("f", forward), steps_of("b", backward(inputs, weights), delayed=delayed)
    lanes: dict[str, deque[Piece]] = {"compute": deque(), "communication": deque()}
    for pieces in zip_longest(back, beside, fillvalue=()):
        for piece in (piece for of_op in pieces for piece in of_op):
            lanes[piece.lane].append(piece)
    return run(lanes, slowdown)


def backward(inputs: Written, weights: Written) -> list[tuple[str, Any]]:
    """The list of a full backward: each computation of W, with what it sends, behind that of I, or all of W at the end."""
    late: list[list[tuple[str, Any]]] = [[]]
    for name, time in weights:
        if name == "compute" and any(before == "weights" for before, _ in late[-1]):
            late.append([])
        late[-1].append(("weights" if name == "compute" else name, time))
    if sum(name == "compute" for name, _ in inputs) != sum(name == "compute" for name, _ in weights):
        return [*inputs, *chain.from_iterable(late)]
    rest = iter(late)
    return [one for segment in inputs for one in (segment, *(next(rest) if segment[0] == "compute" else ()))]


def steps_of(op: str, segments: Written, *, delayed: bool = False) -> list[list[Piece]]:
    """The pieces of an op, step by step: a communication (none in the first step), and what computes behind it."""
    steps: list[list[Piece]] = [[]]
    before: Piece | None = None
    names = {"compute": op, "weights": "w" if delayed else op}
    for of, neighbors in groupby([("compute", 0), *segments], key=lambda one: names.get(one[0])):
        if of is None:
            before = Piece(op, "communication", sum(time for _, time in neighbors), before)
            steps.append([before])
            continue
        if of == op or steps[-1][-1].lane == "communication":
            # Behind a communication, weights wait for a computation of the op, be it of time 0.
            before = Piece(op, "compute", sum(time for _, time in neighbors) if of == op else 0, before)
            steps[-1].append(before)
        if of == "w":
            steps[-1].append(Piece("w", "compute", sum(time for _, time in neighbors), before))
    return steps


def run(lanes: dict[str, deque[Piece]], slowdown: Any) -> Ran:
    """Let both lanes work, each piece in its turn; the next moment is that at which a piece ends."""
    now, exposed, hidden, ended = 0, 0, 0, []
    while any(lanes.values()):
        first = {lane: queue[0] for lane, queue in lanes.items() if queue}
        working = {lane: piece for lane, piece in first.items() if piece.after is None or piece.after.end is not None}
        takes = {"communication": 1, "compute": slowdown if "communication" in working else 1}
        next_lane = min(working, key=lambda lane: working[lane].left * takes[lane])
        step = working[next_lane].left * takes[next_lane]
        for lane, piece in working.items():
            piece.begin = now if piece.begin is None else piece.begin
            piece.left -= step if takes[lane] == 1 else step / takes[lane]
        now += step
        exposed += step * ("compute" not in working)
        hidden += step * (len(working) == 2)
        ended.append(lanes[next_lane].popleft())
        ended[-1].end = now
    return Ran(now, exposed, hidden, tuple(ended))


def random_op(random: Random, value: Callable[[], Any], weights_talk: float = 0.2) -> tuple[Written, Written, Written]:
    """Lists of F, I and W: any order and number, neighbors of one lane, times of 0; W as many computations as I, or not."""
    forward, inputs = (_random_list(random, value, random.randint(1, 5)) for _ in range(2))
    computations = sum(name == "compute" for name, _ in inputs)
    count = computations if random.random() < 0.6 else random.randint(1, 4)
    weights: list[tuple[str, Any]] = []
    for number in range(count):
        weights += [(random.choice(COMMUNICATIONS), value())] * (random.random() < weights_talk)
        weights.append(("compute", value() * (number == 0 or random.random() < 0.8)))
    weights += [(random.choice(COMMUNICATIONS), value())] * (random.random() < weights_talk)
    return forward, inputs, tuple(weights)


def _random_list(random: Random, value: Callable[[], Any], computations: int) -> Written:
    segments = []
    for number in range(computations):
        while random.random() < 0.45:
            segments.append((random.choice(COMMUNICATIONS), value() * (random.random() < 0.8)))
        segments.append(("compute", value() * (number == 0 or random.random() < 0.85)))
    if random.random() < 0.3:
        segments.append((random.choice(COMMUNICATIONS), value()))
    return tuple(segments)


def of_lists(forward: Written, inputs: Written, weights: Written) -> OpSegments:
    """The lists of a stage or a layer as pipeplan takes them, in floats."""
    lists = (tuple((name, float(time)) for name, time in one) for one in (forward, inputs, weights))
    return OpSegments(**dict(zip(NAMES, lists, strict=True)))


NAMES = "forward", "backward_input", "backward_weight"
COMMUNICATIONS = ("all_to_all", "all_gather", "reduce_scatter", "all_reduce")
