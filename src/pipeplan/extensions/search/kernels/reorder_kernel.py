"""Orders of microbatches for a schedule whose ops stay where they are: timing, and annealing by exchanges.

Arrays: ``turn`` has the microbatch that each one of the schedule stands for; ``ops`` the ops in an order in which each can
be timed after those before it, whatever they take; ``times``, ``delays`` and ``sizes`` what ops take, by row (one per kind
and stage) and microbatch. One step, with three microbatches::

    turn     2 0 1      becomes   1 0 2
    op 1F0              takes times[row of 1F, 1] instead of times[row of 1F, 2]
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pipeplan.extensions.search.kernels.random_kernel import draw
from pipeplan.extensions.search.kernels.row_kernel import copy_numbers
from pipeplan.model import Floats, Ints


class FixedOps(NamedTuple):
    """A schedule of ops that compute, as flat arrays.

    Attributes
    ----------
    ops
        Ops in the order in which they can be timed.
    rank, source, joined
        Rank of an op, the op of another rank that it waits for (-1: none), and 1 for the second of a pair.
    row, microbatch
        Row of what it takes, and its microbatch in the schedule.
    growth
        Memory that it adds to its rank for a microbatch of factor 1.
    beside
        Memory of any microbatch that its rank holds beside that from its start on: gradients.
    limit
        Most memory of each rank.
    """

    ops: Annotated[Ints, "ops"]
    rank: Annotated[Ints, "ops"]
    source: Annotated[Ints, "ops"]
    joined: Annotated[Ints, "ops"]
    row: Annotated[Ints, "ops"]
    microbatch: Annotated[Ints, "ops"]
    growth: Annotated[Floats, "ops"]
    beside: Annotated[Floats, "ops"]
    limit: Annotated[Floats, "ranks"]


class Taken(NamedTuple):
    """Costs of ops by row and microbatch, a cell for each.

    Attributes
    ----------
    times, delays, sizes
        Time of an op, time of the transfer of its result, and factor on its memory.
    """

    times: Annotated[Floats, "cells"]
    delays: Annotated[Floats, "cells"]
    sizes: Annotated[Floats, "cells"]


class Cooling(NamedTuple):
    """Course of an annealing: its steps, first temperature, and the factor of the temperature per step.

    ``waits`` are quantiles of the exponential distribution.
    """

    waits: Annotated[Floats, "quantiles > 0"]
    steps: int
    temperature: float
    factor: float


class TurnOrders(NamedTuple):
    """Orders of an annealing, which writes all of them.

    Attributes
    ----------
    turn, best
        The current order and the best one.
    value, random
        Value of the best one, and the state of the random numbers.
    """

    turn: Annotated[Ints, "microbatches > 0"]
    best: Annotated[Ints, "microbatches"]
    value: Annotated[Floats, "1"]
    random: Annotated[Ints, "1"]


class Clocks(NamedTuple):
    """Scratch of a timing: the end of each op; when each rank is free, then what it holds."""

    end: Annotated[Floats, "ops"]
    free: Annotated[Floats, "2 * ranks"]


PENALTY = 1e3
"""Factor of the memory above a limit, as a share of it: an order that fits is better than any other."""


def reordered(fixed: FixedOps, taken: Taken, cooling: Cooling, orders: TurnOrders, clocks: Clocks) -> None:
    """Anneal ``orders.turn`` by exchanges of two microbatches, and moves of one; the best goes to ``orders.best``."""
    turn, random, waits = orders.turn, orders.random, cooling.waits
    microbatches = len(turn)
    current = value_of(fixed, taken, turn, clocks)
    orders.value[0] = current
    copy_numbers(turn, orders.best)
    temperature = cooling.temperature
    for _ in range(cooling.steps):
        # Draw two places, and whether the microbatch of the first moves to the second or both are exchanged.
        temperature *= cooling.factor
        one = draw(random, microbatches)
        other = draw(random, microbatches)
        moves = draw(random, 2) == 0
        change(turn, one, other, moves)
        result = value_of(fixed, taken, turn, clocks)
        # Not accepted: take it back.
        if result > current + temperature * waits[draw(random, len(waits))]:
            change(turn, other, one, moves)
            continue
        current = result
        if result < orders.value[0]:
            orders.value[0] = result
            copy_numbers(turn, orders.best)


def change(turn: Ints, one: int, other: int, moves: bool) -> None:
    """Move the microbatch of one place to another, those between making room, or exchange the two."""
    microbatch = turn[one]
    if moves:
        step = 1 if other > one else -1
        for place in range(one, other, step):
            turn[place] = turn[place + step]
    else:
        turn[one] = turn[other]
    turn[other] = microbatch


def value_of(fixed: FixedOps, taken: Taken, turn: Ints, clocks: Clocks) -> float:
    """Return the makespan of the schedule with these microbatches; more if they do not fit into memory."""
    end, free = clocks.end, clocks.free
    microbatches = len(turn)
    ranks = len(fixed.limit)
    for rank in range(2 * ranks):
        free[rank] = 0.0
    makespan = 0.0
    over = 0.0
    for place in range(len(fixed.ops)):
        op = fixed.ops[place]
        if fixed.joined[op] == 1:
            continue
        # The op, and the next one where both run as a pair, which starts when all inputs are there.
        rank = fixed.rank[op]
        last = op
        if op + 1 < len(fixed.joined) and fixed.joined[op + 1] == 1:
            last = op + 1
        clock = free[rank]
        time = 0.0
        held = free[ranks + rank]
        for member in range(op, last + 1):
            source = fixed.source[member]
            if source >= 0:
                sent = fixed.row[source] * microbatches + turn[fixed.microbatch[source]]
                clock = max(clock, end[source] + taken.delays[sent])
            cell = fixed.row[member] * microbatches + turn[fixed.microbatch[member]]
            time += taken.times[cell]
            # A backward holds its gradients beside what it frees at its end; a forward adds memory at its start.
            before = held
            held += fixed.growth[member] * taken.sizes[cell]
            over = max(over, (max(before, held) + fixed.beside[member]) / fixed.limit[rank])
        # Both end together; the rank is free from then on.
        clock += time
        for member in range(op, last + 1):
            end[member] = clock
        free[rank] = clock
        free[ranks + rank] = held
        makespan = max(makespan, clock)
    return makespan * (1.0 + PENALTY * max(over - 1.0 - 1e-9, 0.0))
