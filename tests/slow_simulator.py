"""The obvious slow simulator: what the fast one, and every published formula, is compared with.

It shares nothing with ``pipeplan.model.dependency``: what waits for what is spelled out once more here, op by op, in
the words of the field, and ranks run their rows in order with plain Python dictionaries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from pipeplan.costs import Costs, Settings
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import NO_GROUP, Kind, Op, Schedule, Timeline
from tests.costs.two_lanes import pair

Key = tuple[Kind, int, int, int]
Done = dict[Key, tuple[float, int]]
"""When each op that has run freed its rank, and which one that is."""


def slow_simulate(schedule: Schedule, costs: Costs, communication: str = "edge") -> Timeline:
    """Every rank runs its row in order; an op starts when its rank is free and all that it waits for has arrived.

    Under ``contended``, a link from one rank to another carries one message at a time. Under ``blocking``, SEND and RECV
    occupy both ranks and meet. A rank's link to its host, and the one back, carry one copy at a time.

    Raises
    ------
    DeadlockError
        Where ranks still have work and none can start its next.
    """
    run = _Run(schedule, costs, communication)
    while sum(run.advance(rank) for rank in range(schedule.ranks)):
        pass
    stuck = [str(row[turn][0]) for row, turn in zip(run.rows, run.next_turn, strict=True) if turn < len(row)]
    if stuck:
        raise DeadlockError(f"nobody can go on: {', '.join(stuck)}")
    order = [key(op) for row in schedule for op in row]
    return Timeline(
        schedule, np.array([run.times[op][0] for op in order]), np.array([run.times[op][1] for op in order])
    )


class _Run:
    """How far every rank is, and when its links are free."""

    def __init__(self, schedule: Schedule, costs: Costs, communication: str) -> None:
        self.schedule, self.costs, self.communication = schedule, costs, communication
        self.rows = [list(turns(schedule[rank])) for rank in range(schedule.ranks)]
        self.present = {key(op) for row in schedule for op in row if op.kind not in PARTNERS}
        self.next_turn = [0] * schedule.ranks
        self.free = [0.0] * schedule.ranks
        self.to_host, self.from_host = [0.0] * schedule.ranks, [0.0] * schedule.ranks
        self.links: dict[tuple[int, int], float] = {}
        self.done: Done = {}
        self.arrived: dict[tuple[Key, int], float] = {}
        self.times: dict[Key, tuple[float, float]] = {}

    def advance(self, rank: int) -> bool:
        """Run a rank's next turn if it can; whether it could."""
        if self.next_turn[rank] == len(self.rows[rank]):
            return False
        turn = self.rows[rank][self.next_turn[rank]]
        if turn[0].kind in (Kind.OFFLOAD, Kind.RELOAD):
            return self._copy(rank, turn[0])
        if turn[0].kind in PARTNERS:
            return self._meet(rank, turn[0])
        needed = [need for op in turn for need in needs(op, self.present, self.schedule.stages, self.schedule.slices)]
        if any(need not in self.done for need in needed):
            return False
        taken = max([self.free[rank], *(self._arrival(need, rank) for need in needed)])
        # Where both ends meet, what a message takes from its ranks passes then, and not beside the ops.
        costs = self.costs
        if self.communication == "blocking":
            costs = replace(costs, overhead=replace(costs.overhead, message_time=0.0))
        start = taken + lost_before(turn, self.schedule, costs)
        end = start + duration(turn, self.schedule, costs)
        self._finish(rank, turn, start, end, end + lost_behind(turn, self.schedule, costs))
        if self.communication == "contended":
            for op in turn:
                self._send(op, rank)
        return True

    def _finish(self, rank: int, turn: tuple[Op, ...], start: float, end: float, freed: float) -> None:
        self.free[rank] = freed
        for op in turn:
            self.times[key(op)], self.done[key(op)] = (start, end), (freed, rank)
        self.next_turn[rank] += 1

    def _copy(self, rank: int, op: Op) -> bool:
        """A copy to the host begins behind its forward, and its rank waits for it; one back begins now, and it does not."""
        time = self.costs.require_offload()[op.stage] * size(op.stage, op, self.costs) / self.schedule.slices
        if op.kind == Kind.OFFLOAD:
            forward, _ = self.done[Kind.F, op.stage, op.microbatch, op.slice]
            start = max(forward, self.to_host[rank])
            end = self.to_host[rank] = start + time
            self._finish(rank, (op,), start, end, max(self.free[rank], end))
            return True
        assert (Kind.OFFLOAD, op.stage, op.microbatch, op.slice) in self.done
        start = max(self.free[rank], self.from_host[rank])
        end = self.from_host[rank] = start + time
        self._finish(rank, (op,), start, end, self.free[rank])
        self.done[key(op)] = (end, rank)
        return True

    def _meet(self, rank: int, op: Op) -> bool:
        """Both ends of a message, where both ranks have come to it."""
        kind, step = PARTNERS[op.kind]
        other = Op(kind, op.stage + step, op.microbatch, op.slice)
        peer = next(r for r, row in enumerate(self.rows) if (other,) in row)
        if self.next_turn[peer] == len(self.rows[peer]) or self.rows[peer][self.next_turn[peer]] != (other,):
            return False
        start = max(self.free[rank], self.free[peer])
        end = start + transfer_time(min(op.stage, other.stage), op, self.schedule, self.costs)
        end += self.costs.overhead.message_time
        self._finish(rank, (op,), start, end, end)
        self._finish(peer, (other,), start, end, end)
        return True

    def _send(self, op: Op, rank: int) -> None:
        """What an op hands to another rank leaves when it is done and the link is free."""
        stage = op.stage + (1 if op.kind == Kind.F else -1)
        copy = op.microbatch * self.schedule.placement.copies // self.schedule.microbatches
        ranks = self.schedule.placement.rank_of[copy]
        if op.kind not in PASSES or not 0 <= stage < len(ranks) or ranks[stage] == rank:
            return
        link = rank, ranks[stage]
        sent = max(self.done[key(op)][0], self.links.get(link, 0.0))
        arrived = sent + transfer_time(min(op.stage, stage), op, self.schedule, self.costs)
        self.links[link] = self.arrived[key(op), ranks[stage]] = arrived

    def _arrival(self, need: Key, rank: int) -> float:
        """When what an op waits for is there, on this rank."""
        end, sender = self.done[need]
        if sender == rank or self.communication == "blocking":
            return end
        if self.communication == "contended":
            return self.arrived[need, rank]
        kind, stage, microbatch, part = need
        across = stage if kind == Kind.F else stage - 1
        return end + transfer_time(across, Op(kind, stage, microbatch, part), self.schedule, self.costs)


PARTNERS = {
    Kind.SEND_F: (Kind.RECV_F, 1),
    Kind.RECV_F: (Kind.SEND_F, -1),
    Kind.SEND_B: (Kind.RECV_B, -1),
    Kind.RECV_B: (Kind.SEND_B, 1),
}
"""The other end of a message, and how many stages on it stands."""


FACING = {Kind.RECV_F: (Kind.SEND_F, -1), Kind.RECV_B: (Kind.SEND_B, 1)}
"""Who sends what a receive gets: the kind, and the step to its stage."""

WITHOUT_MICROBATCH = {Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD}

BEFORE = {
    Kind.W: Kind.I,
    Kind.RELOAD: Kind.OFFLOAD,
    Kind.WAIT_SEND_F: Kind.SEND_F,
    Kind.WAIT_SEND_B: Kind.SEND_B,
}
"""What other ops wait for on their stage; those that are not named wait for the forward."""


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


def needs(op: Op, present: Collection[Key], stages: int, slices: int) -> Iterator[Key]:
    """What must be done before an op, whoever does it; some of it may be missing from the schedule."""
    kind, stage, microbatch, part = key(op)

    def way_back(stage: int, part: int) -> Key:
        full = Kind.B, stage, microbatch, part
        return full if full in present else (Kind.I, stage, microbatch, part)

    def sent(receive: Kind, otherwise: Key) -> Key:
        message = receive, stage, microbatch, part
        return message if message in present else otherwise

    if kind == Kind.F:
        if stage > 0 or (Kind.RECV_F, stage, microbatch, part) in present:
            yield sent(Kind.RECV_F, (Kind.F, stage - 1, microbatch, part))
        if part > 0:
            yield Kind.F, stage, microbatch, part - 1
    elif kind in {Kind.B, Kind.I}:
        saved = [(again, stage, microbatch, part) for again in (Kind.R, Kind.RELOAD, Kind.F)]
        yield next((one for one in saved if one in present), saved[-1])
        if stage < stages - 1 or (Kind.RECV_B, stage, microbatch, part) in present:
            yield sent(Kind.RECV_B, way_back(stage + 1, part))
        if part < slices - 1:
            yield way_back(stage, part + 1)
    elif kind in FACING:
        sender, step = FACING[kind]
        if 0 <= stage + step < stages:
            yield sender, stage + step, microbatch, part
    elif kind == Kind.SEND_B:
        yield way_back(stage, part)
    elif kind not in WITHOUT_MICROBATCH:
        yield BEFORE.get(kind, Kind.F), stage, microbatch, part


def duration(turn: tuple[Op, ...], schedule: Schedule, costs: Costs) -> float:
    """How long a turn occupies its rank."""
    times = {
        Kind.F: costs.forward,
        Kind.B: costs.backward,
        Kind.I: costs.backward_input,
        Kind.W: costs.backward_weight,
        Kind.R: costs.recompute,
    }
    alike = [float(times[op.kind][op.stage]) for op in turn]
    factors = [longer(op, schedule, costs) for op in turn]
    alone = sum(one * more for one, more in zip(alike, factors, strict=True))
    if len(turn) == 2 and (costs.overlap is not None or costs.segments is not None):
        forward, backward = sorted(turn, key=lambda op: op.kind != Kind.F)
        saved = sum(alike) - pair_time(forward, backward, costs)
        return (alone - saved * min(factors)) / schedule.slices
    return alone / schedule.slices


def pair_time(forward: Op, backward: Op, costs: Costs) -> float:
    """How long a whole forward and a whole B or I take together, on two lanes or by a list or matrix of times."""
    if costs.segments is not None:
        stages = costs.segments.stages
        weights = stages[backward.stage].backward_weight if backward.kind == Kind.B else ()
        lists = stages[forward.stage].forward, stages[backward.stage].backward_input, weights
        return float(pair(*lists, costs.segments.slowdown, delayed=costs.segments.delayed_weights).time)
    assert costs.overlap is not None
    times = costs.backward if backward.kind == Kind.B else costs.backward_input
    together = costs.overlap[forward.stage] if costs.overlap.ndim == 1 else costs.overlap[forward.stage, backward.stage]
    return float(max(together, costs.forward[forward.stage], times[backward.stage]))


def longer(op: Op, schedule: Schedule, costs: Costs) -> float:
    """How many times the time of its stage an op takes: a full backward as much as its two halves together."""
    if op.kind != Kind.B:
        return factor(op, costs) * of_slice(op, schedule, costs)
    halves = [
        (float(times[op.stage]), longer(replace(op, kind=kind), schedule, costs))
        for kind, times in ((Kind.I, costs.backward_input), (Kind.W, costs.backward_weight))
    ]
    return sum(time * more for time, more in halves) / sum(time for time, _ in halves)


def of_slice(op: Op, schedule: Schedule, costs: Costs) -> float:
    """How many times the mean time of its slices an op takes: attention to itself and to all slices before it."""
    if costs.slice_attention is None:
        return 1.0
    forward = float(costs.slice_attention.forward[op.stage])
    share = {Kind.I: 2 * forward / (1 + forward), Kind.W: 0.0}.get(op.kind, forward)
    attended = op.slice + 0.5
    return 1 - share + share * attended / (schedule.slices / 2)


def factor(op: Op, costs: Costs) -> float:
    """How many times the time of its stage an op of its microbatch takes; not for full backwards."""
    if costs.factors is None:
        return 1.0
    tables = {Kind.I: costs.factors.backward_input, Kind.W: costs.factors.backward_weight}
    return float(tables.get(op.kind, costs.factors.forward)[op.stage, op.microbatch])


def size(stage: int, op: Op, costs: Costs) -> float:
    """How many times the bytes of a stage an op's microbatch has there."""
    return 1.0 if costs.factors is None else float(costs.factors.size[stage, op.microbatch])


def transfer_time(stage: int, op: Op, schedule: Schedule, costs: Costs) -> float:
    """How long the message of an op's microbatch takes between a stage and the next one."""
    sent = costs.transfer.bytes * size(stage, op, costs) / schedule.slices
    return costs.transfer.latency + sent / costs.transfer.bandwidth


def lost_before(turn: tuple[Op, ...], schedule: Schedule, costs: Costs) -> float:
    """Gaps, and what messages take that its rank receives: from the stage before for F, from the next for B and I.

    A pair with a cost of its own has one gap.
    """
    gaps = len(turn) if costs.overlap is None and costs.segments is None else 1
    return gaps * costs.overhead.op_gap + sum(_received(op, schedule, costs) for op in turn)


def lost_behind(turn: tuple[Op, ...], schedule: Schedule, costs: Costs) -> float:
    """What messages take that its rank sends: to the next stage for F, to the stage before for B and I."""
    return sum(_sent(op, schedule, costs) for op in turn)


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


def peak_activations(schedule: Schedule, keeps: float = 0.0, moved: float = 1.0) -> list[float]:
    """Each rank's peak, in activations: a stage's share held from the start of its F to the end of its B or W.

    Parameters
    ----------
    keeps
        The part of it that a recomputed F keeps.
    moved
        The part of it that is copied to the host where it is offloaded.
    """
    peaks = []
    for rank in range(schedule.ranks):
        again = {(op.stage, op.microbatch, op.slice) for op in schedule[rank] if op.kind == Kind.R}
        held = peak = 0.0
        for op in schedule[rank]:
            recomputed = (op.stage, op.microbatch, op.slice) in again
            first = keeps if recomputed else 1.0
            held += {Kind.F: first, Kind.R: 1.0 - keeps, Kind.RELOAD: moved}.get(op.kind, 0.0)
            # The two of an overlapped pair are held at once: what the backward frees, it frees at their end.
            peak = max(peak, held)
            held -= {Kind.B: 1.0, Kind.W: 1.0, Kind.OFFLOAD: moved}.get(op.kind, 0.0)
        peaks.append(peak / schedule.placement.chunks / schedule.slices)
    return peaks


def worst_bubble(schedule: Schedule) -> float:
    """Idle time of the idlest rank in the units of :class:`~pipeplan.strategies.Strategy`: one rank's forward is 1."""
    timeline = slow_simulate(schedule, Settings().costs(schedule.placement))
    return float(timeline.idle.max())
