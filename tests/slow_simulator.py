"""The obvious slow simulator: what the fast one, and every published formula, is compared with.

It shares nothing with ``pipeplan.model.dependency``: what waits for what is spelled out once more here, op by op, in
the words of the field, and ranks run their rows in order with plain Python dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pipeplan.costs import Costs, Settings
from pipeplan.errors import DeadlockError
from pipeplan.model import NO_GROUP, Kind, Op, Schedule, Timeline

Key = tuple[Kind, int, int, int]
Done = dict[Key, tuple[float, int]]
"""When each op that has run freed its rank, and which one that is."""


def slow_simulate(schedule: Schedule, costs: Costs) -> Timeline:
    """Every rank runs its row in order; an op starts when its rank is free and all that it waits for has arrived.

    Raises
    ------
    DeadlockError
        Where ranks still have work and none can start its next.
    """
    rows = [list(turns(schedule[rank])) for rank in range(schedule.ranks)]
    present = {key(op) for row in schedule for op in row}
    next_turn = [0] * schedule.ranks
    free = [0.0] * schedule.ranks
    done: Done = {}
    times: dict[Key, tuple[float, float]] = {}
    moved = True
    while moved:
        moved = False
        for rank, row in enumerate(rows):
            while next_turn[rank] < len(row):
                turn = row[next_turn[rank]]
                needed = [need for op in turn for need in needs(op, schedule, present)]
                if any(need not in done for need in needed):
                    break
                taken = max([free[rank], *(arrival(done[need], rank, schedule, costs) for need in needed)])
                start = taken + lost_before(turn, schedule, costs)
                end = start + duration(turn, schedule, costs)
                free[rank] = end + lost_behind(turn, schedule, costs)
                for op in turn:
                    times[key(op)], done[key(op)] = (start, end), (free[rank], rank)
                next_turn[rank] += 1
                moved = True
    stuck = [str(row[turn][0]) for row, turn in zip(rows, next_turn, strict=True) if turn < len(row)]
    if stuck:
        raise DeadlockError(f"nobody can go on: {', '.join(stuck)}")
    order = [key(op) for row in schedule for op in row]
    return Timeline(schedule, np.array([times[op][0] for op in order]), np.array([times[op][1] for op in order]))


def turns(row: tuple[Op, ...]) -> Iterator[tuple[Op, ...]]:
    """What a rank does one after the other: single ops, and overlapped pairs."""
    ops = list(row)
    while ops:
        together = 2 if len(ops) > 1 and ops[0].group != NO_GROUP and ops[0].group == ops[1].group else 1
        yield tuple(ops[:together])
        del ops[:together]


def key(op: Op) -> Key:
    """What tells an op from all others."""
    return op.kind, op.stage, op.microbatch, op.slice


def needs(op: Op, schedule: Schedule, present: set[Key]) -> Iterator[Key]:
    """The ops that must have ended before this one starts."""

    def backward(stage: int, slice: int) -> Key:
        full = (Kind.B, stage, op.microbatch, slice)
        return full if full in present else (Kind.I, stage, op.microbatch, slice)

    recompute = (Kind.R, op.stage, op.microbatch, op.slice)
    if op.kind == Kind.F:
        if op.stage > 0:
            yield Kind.F, op.stage - 1, op.microbatch, op.slice
        if op.slice > 0:
            yield Kind.F, op.stage, op.microbatch, op.slice - 1
    elif op.kind in (Kind.B, Kind.I):
        yield recompute if recompute in present else (Kind.F, op.stage, op.microbatch, op.slice)
        if op.stage < schedule.stages - 1:
            yield backward(op.stage + 1, op.slice)
        if op.slice < schedule.slices - 1:
            yield backward(op.stage, op.slice + 1)
    elif op.kind == Kind.W:
        yield Kind.I, op.stage, op.microbatch, op.slice
    elif op.kind == Kind.R:
        yield Kind.F, op.stage, op.microbatch, op.slice
    else:
        raise ValueError(f"the slow simulator adds transfers to the edges and knows no {op}")


def arrival(source: tuple[float, int], rank: int, schedule: Schedule, costs: Costs) -> float:
    """When what ended on one rank is there for another."""
    end, sender = source
    return end if sender == rank else end + costs.transfer.time(schedule.slices)


def duration(turn: tuple[Op, ...], schedule: Schedule, costs: Costs) -> float:
    """How long a turn occupies its rank."""
    times = {
        Kind.F: costs.forward,
        Kind.B: costs.backward,
        Kind.I: costs.backward_input,
        Kind.W: costs.backward_weight,
        Kind.R: costs.recompute,
    }
    alone = [float(times[op.kind][op.stage]) for op in turn]
    if len(turn) == 2 and costs.overlap is not None:
        forward = next(op for op in turn if op.kind == Kind.F)
        return max(float(costs.overlap[forward.stage]), *alone) / schedule.slices
    return sum(alone) / schedule.slices


def lost_before(turn: tuple[Op, ...], schedule: Schedule, costs: Costs) -> float:
    """Gaps, and what messages take that its rank receives: from the stage before for F, from the next for B and I.

    A pair with a cost of its own has one gap, and the messages of an F and a B of the forward's stage. It takes no less than
    either of its ops alone would with what it loses, and no more.
    """
    if len(turn) == 1 or costs.overlap is None:
        return sum(costs.overhead.op_gap + _received(op, schedule, costs) for op in turn)
    passes = _of_pair(turn)
    behind = lost_behind(turn, schedule, costs)
    whole = float(costs.overlap[passes[0].stage]) + costs.overhead.op_gap
    whole += sum(_received(op, schedule, costs) for op in passes) + behind
    for op in turn:
        alone = duration((op,), schedule, costs) + costs.overhead.op_gap
        whole = max(whole, alone + _received(op, schedule, costs) + _sent(op, schedule, costs))
    return max(whole - behind - duration(turn, schedule, costs), 0.0)


def lost_behind(turn: tuple[Op, ...], schedule: Schedule, costs: Costs) -> float:
    """What messages take that its rank sends: to the next stage for F, to the stage before for B and I."""
    passes = turn if len(turn) == 1 or costs.overlap is None else _of_pair(turn)
    return sum(_sent(op, schedule, costs) for op in passes)


def _of_pair(turn: tuple[Op, ...]) -> tuple[Op, Op]:
    forward = next(op for op in turn if op.kind == Kind.F)
    return forward, replace(forward, kind=Kind.B)


def _received(op: Op, schedule: Schedule, costs: Costs) -> float:
    return _message(op, -1 if op.kind == Kind.F else 1, schedule, costs)


def _sent(op: Op, schedule: Schedule, costs: Costs) -> float:
    return _message(op, 1 if op.kind == Kind.F else -1, schedule, costs)


PASSES = (Kind.F, Kind.B, Kind.I)


def _message(op: Op, step: int, schedule: Schedule, costs: Costs) -> float:
    """What a message between the op's stage and the one this many steps on takes from its rank, if there is one."""
    copy = op.microbatch * schedule.placement.copies // schedule.microbatches
    ranks, other = schedule.placement.rank_of[copy], op.stage + step
    crosses = op.kind in PASSES and 0 <= other < len(ranks) and ranks[other] != ranks[op.stage]
    return costs.overhead.message_time if crosses else 0.0


def peak_activations(schedule: Schedule) -> list[float]:
    """Each rank's peak, in activations: a stage's share held from the start of its F to the end of its B or W."""
    peaks = []
    for rank in range(schedule.ranks):
        held = peak = 0
        for turn in turns(schedule[rank]):
            held += sum(op.kind == Kind.F for op in turn)
            peak = max(peak, held)
            held -= sum(op.kind in (Kind.B, Kind.W) for op in turn)
        peaks.append(peak / schedule.placement.chunks / schedule.slices)
    return peaks


def worst_bubble(schedule: Schedule) -> float:
    """Idle time of the idlest rank in the units of :class:`~pipeplan.strategies.Strategy`: one rank's forward is 1."""
    timeline = slow_simulate(schedule, Settings().costs(schedule.placement))
    return float(timeline.idle.max())
