"""The suite ``simulator``: random schedules on random costs, against the obvious slow simulator and sums over its times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

import numpy as np

from pipeplan.costs import Communication, Costs
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Floats, Kind, MemoryRule, Reason, Schedule, Timeline
from pipeplan.model.memory import memory_moments
from pipeplan.model.op import NO_GROUP, Op
from pipeplan.passes import insert_communication, without_communication
from pipeplan.simulation import Simulation, critical_path, idle_times, simulate
from tests.slow_simulator import Key, key, lost_before, lost_behind, slow_simulate, transfer_time, turns
from tests.torture import Found
from tests.torture.schedules.oracle import COMPUTE, COPIES, Oracle
from tests.torture.schedules.random_costs import random_costs, varied
from tests.torture.schedules.shapes import random_schedule, rows_of
from tests.torture.schedules.ways import as_machine_code, as_python, run_by

INTERPRETED = 300
"""Cases before the first with compiled kernels: a sample needs no compiler."""

CLOSE = 1e-9
"""The share by which sums of the same numbers in another order may differ."""


def attempt(seed: int, *, pairs: bool = False) -> None:
    """One schedule at one level of communication; every time, level, and sum; ``pairs``: of schedules with pairs."""
    random = Random(f"simulator {seed}")
    communication: Communication = random.choice(("edge", "edge", "contended", "blocking"))
    complete = random_schedule(random, messages=random.random() < 0.5, stage_wide=False, pairs=pairs)
    schedule = _lowered(random, complete, communication)
    whole = random.random() < 0.5
    costs = random_costs(random, schedule.placement, schedule.slices, whole=whole, pairs=pairs)
    costs = varied(random, costs, schedule.microbatches, whole=whole)
    compiled = seed >= INTERPRETED and random.random() < 0.5
    limit = random.choice((None, np.full(schedule.ranks, random.choice((0.5, 1.0, 2.0)))))
    what = f"{schedule!r}, {communication}, {'whole' if whole else 'any'} times{', compiled' * compiled}"
    with run_by(as_machine_code if compiled else as_python):
        fast = _simulated(schedule, costs, communication)
    if isinstance(slow := _slowly(schedule, costs, communication), str) or isinstance(fast, str):
        if isinstance(slow, str) and isinstance(fast, str):
            return
        raise Found(f"{what}: {fast} by the simulator, and {slow} by the slow one")
    _times(fast.timeline, slow, what, exactly=whole)
    _sums(fast.timeline, fast.costs, what)
    _memory(fast, costs, what)
    if fast.bound.value > slow.makespan * (1 + CLOSE):
        raise Found(f"{what}: the bound is {fast.bound.value}, and it takes {slow.makespan}")
    if communication == "edge":
        _beside(complete, costs, fast.timeline, what)
        _explained(fast.timeline, costs, what, limit)


def _lowered(random: Random, complete: Schedule, communication: Communication) -> Schedule:
    """With messages where they block, and else without."""
    bare = without_communication(complete)
    if communication != "blocking" or complete != bare:
        return bare if communication != "blocking" else complete
    return insert_communication(bare, receives=random.choice(("early", "late")))


def _simulated(schedule: Schedule, costs: Costs, communication: Communication) -> Simulation | str:
    try:
        return simulate(schedule, costs, communication=communication)
    except DeadlockError as error:
        return str(error)


def _slowly(schedule: Schedule, costs: Costs, communication: Communication) -> Timeline | str:
    try:
        return slow_simulate(schedule, costs, communication)
    except DeadlockError as error:
        return str(error)


def _times(fast: Timeline, slow: Timeline, what: str, *, exactly: bool) -> None:
    for name in ("start", "end"):
        ours, theirs = getattr(fast, name), getattr(slow, name)
        wrong = ours != theirs if exactly else ~np.isclose(ours, theirs, rtol=CLOSE, atol=CLOSE)
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            where = fast.schedule.place(place)
            raise Found(f"{what}: the {name} of {where} is {ours[place]}, and {theirs[place]} by the slow simulator")


def spans_of(timeline: Timeline, costs: Costs) -> list[float]:
    """Each rank's time from its first start to its last end, with what it loses before and behind, turn by turn."""
    spans = []
    place = 0
    for row in rows_of(timeline.schedule):
        first, last, lost_first, lost_last = np.inf, 0.0, 0.0, 0.0
        for turn in turns(tuple(row)):
            start, end = float(timeline.start[place]), float(timeline.end[place])
            if start < first:
                first, lost_first = start, _lost(turn, timeline.schedule, costs, lost_before)
            if end >= last:
                last, lost_last = end, _lost(turn, timeline.schedule, costs, lost_behind)
            place += len(turn)
        first = min(first, last)
        spans.append(last + lost_last - first + lost_first)
    return spans


def _sums(timeline: Timeline, costs: Costs, what: str) -> None:
    """Makespan, spans and idle times, added up turn by turn."""
    busy = []
    place = 0
    for row in rows_of(timeline.schedule):
        work = 0.0
        for turn in turns(tuple(row)):
            work += float(timeline.end[place] - timeline.start[place]) * (turn[0].kind in COMPUTE)
            place += len(turn)
        busy.append(work)
    makespan = float(timeline.end.max())
    _equal(f"{what}: the makespan", timeline.makespan, makespan)
    _equal(f"{what}: the spans", timeline.spans, spans_of(timeline, costs))
    _equal(f"{what}: the work", timeline.work, busy)
    _equal(f"{what}: the idle times", timeline.idle, makespan - np.array(busy))


def _lost(turn: tuple[Op, ...], schedule: Schedule, costs: Costs, rule: Callable[..., float]) -> float:
    return float(rule(turn, schedule, costs)) if turn[0].kind in COMPUTE else 0.0


def _equal(what: str, ours: object, theirs: object) -> None:
    if not np.allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=CLOSE, atol=CLOSE):
        raise Found(f"{what}: {ours}, and added up {theirs}")


# Memory


def _memory(fast: Simulation, costs: Costs, what: str) -> None:
    """What each rank holds after each op, in activations and in bytes, and when."""
    schedule, memory = fast.schedule, costs.memory
    share = 1 / schedule.placement.chunks_on[schedule.placement.table[0]]
    sizes = memory.activation, memory.freed_by_weight, memory.recompute_keeps, memory.offloaded
    units = {"activations": (share, *(share * part / sizes[0] for part in sizes[1:])), "bytes": sizes}
    for unit, (held, late, kept, moved) in units.items():
        limit = np.full(schedule.ranks, np.inf)
        rule = MemoryRule(held, late, limit, recompute_keeps=kept, offloaded=moved, factors=memory.factors)
        rows = list(_levels(schedule, rule))
        _equal(f"{what}: what is held in {unit}", getattr(fast.memory, unit), np.concatenate(rows))
        peaks = [max(row, default=0.0) for row in rows]
        static = fast.memory.static if unit == "bytes" else 0.0
        ours = fast.memory.peak_bytes if unit == "bytes" else fast.memory.peak_activation
        _equal(f"{what}: the peaks in {unit}", ours, np.maximum(peaks, 0.0) + static)
    timeline = fast.timeline
    moments = memory_moments(timeline)
    for first, stop in pairwise(schedule.offsets.tolist()):
        if (np.diff(moments[first:stop]) < -CLOSE).any():
            raise Found(f"{what}: memory changes out of order")
    for place, op in enumerate(op for row in schedule for op in row):
        when = timeline.start[place] if op.kind in {Kind.F, Kind.R} else timeline.end[place]
        if op.kind in COMPUTE and moments[place] != when:
            raise Found(f"{what}: memory changes at {moments[place]} for {schedule.place(place)}, not at {when}")


def _levels(schedule: Schedule, rule: MemoryRule) -> Iterator[list[float]]:
    oracle = Oracle(schedule.placement, schedule.microbatches, schedule.slices, rows_of(schedule))
    return (oracle.levels(rank, rule) for rank in range(schedule.ranks))


# Messages beside the ops


def _beside(complete: Schedule, costs: Costs, without: Timeline, what: str) -> None:
    """Messages in the rows change no op's times; a SEND stands at its op's end, a RECV ends where its message arrives."""
    times = _by_key(simulate(complete, costs).timeline)
    for one, (start, end) in _by_key(without).items():
        if times[one] != (start, end):
            raise Found(f"{what}: with messages beside it, {one} has other times")
    lost = {
        key(op): _lost(turn, without.schedule, costs, lost_behind)
        for row in without.schedule
        for turn in turns(row)
        for op in turn
    }
    for (kind, stage, microbatch, part), (start, end) in times.items():
        if kind not in SENDERS:
            continue
        kinds, step = SENDERS[kind]
        sender = next(one for one in ((of, stage + step, microbatch, part) for of in kinds) if one in times)
        sent = times[sender][1]
        if step:
            transfer = transfer_time(min(stage, stage + step), Op(*sender), complete, costs)
            _equal(f"{what}: the end of {kind.name} of {sender}", end, sent + lost[sender] + transfer)
        else:
            _equal(f"{what}: {kind.name} of {sender}", (start, end), (sent, sent))


SENDERS: dict[Kind, tuple[tuple[Kind, ...], int]] = {
    Kind.SEND_F: ((Kind.F,), 0),
    Kind.RECV_F: ((Kind.F,), -1),
    Kind.SEND_B: ((Kind.B, Kind.I), 0),
    Kind.RECV_B: ((Kind.B, Kind.I), 1),
}
"""Whose result each end of a message carries: kinds, and the step to the stage."""


def _by_key(timeline: Timeline) -> dict[Key, tuple[float, float]]:
    ops = (key(op) for row in timeline.schedule for op in row)
    return dict(zip(ops, zip(timeline.start.tolist(), timeline.end.tolist(), strict=True), strict=True))


# Why ranks idle


def _explained(timeline: Timeline, costs: Costs, what: str, limit: Floats | None) -> None:
    """Idle times with their reasons: in order, apart, between the ops, and all of the idle time; the longest chain."""
    idle = idle_times(timeline, costs, limit=limit)
    schedule = timeline.schedule
    _equal(f"{what}: the reasons' sum", idle.totals(schedule.ranks).sum(axis=1), timeline.idle)
    listed = np.zeros((schedule.ranks, len(Reason)))
    pieces = idle.pieces
    np.add.at(listed, (pieces.rank, pieces.reason), pieces.end - pieces.start)
    _equal(f"{what}: the sums by reason", idle.totals(schedule.ranks), listed)
    busy: list[list[tuple[float, float]]] = [[] for _ in range(schedule.ranks)]
    place = 0
    for rank, row in enumerate(rows_of(schedule)):
        for turn in turns(tuple(row)):
            if turn[0].kind in COMPUTE:
                busy[rank].append((float(timeline.start[place]), float(timeline.end[place])))
            place += len(turn)
    for rank, start, end in zip(pieces.rank.tolist(), pieces.start.tolist(), pieces.end.tolist(), strict=True):
        busy[rank].append((start, end))
    for rank, spells in enumerate(busy):
        clock = 0.0
        for start, end in sorted(spells):
            if abs(start - clock) > CLOSE * max(timeline.makespan, 1.0) or end <= start:
                raise Found(f"{what}: rank {rank} is neither busy nor idle, or both, at {min(start, clock)}")
            clock = end
        _equal(f"{what}: where the reasons of rank {rank} end", clock, timeline.makespan)
    path = critical_path(timeline, costs)
    length = sum(path.by_kind.values()) + path.overhead + path.transfer
    _equal(f"{what}: the longest chain", length, timeline.makespan)
    hop = costs.transfer.time(schedule.slices)
    if hop and (costs.factors is None or not costs.transfer.bytes):
        hops = path.transfer / hop
        if abs(hops - round(hops)) > 1e-6:
            raise Found(f"{what}: the longest chain waits for {hops} transfers")
    if any(op.group != NO_GROUP for row in schedule for op in row):
        return
    if schedule.kinds.isdisjoint(COPIES) and hop == 0 and path.transfer > CLOSE * timeline.makespan:
        raise Found(f"{what}: the longest chain waits {path.transfer} for nothing")
