"""The suite ``streams``: lowered orders, with messages moved about, on every kind of streams.

The checker, the simulator and an event-driven simulation each say whether one hangs; the last two give the same times.
"""

from __future__ import annotations

from random import Random

import numpy as np

from pipeplan.checking import check
from pipeplan.costs import Costs
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Kind, Schedule, Streams, Timeline, from_ops
from pipeplan.simulation import simulate
from tests.slow_simulator import key
from tests.slow_streams import slow_streams
from tests.torture import Found
from tests.torture.schedules.oracle import MESSAGES
from tests.torture.schedules.random_costs import random_costs, varied
from tests.torture.schedules.shapes import random_schedule, rows_of


def attempt(seed: int) -> None:
    """One order on one kind of streams: the same ops hang for all, and the times are the same."""
    random = Random(f"streams {seed}")
    streams: Streams = random.choice(("rank", "rank", "direction", "edge"))
    schedule = _moved(random, random_schedule(random, messages=True, stage_wide=False))
    costs = random_costs(random, schedule.placement, schedule.slices, whole=True)
    costs = varied(random, costs, schedule.microbatches, whole=True)
    problems = check(schedule, streams=streams).problems
    wrong = {problem.rule for problem in problems}
    slow, fast = _slowly(schedule, costs, streams), _simulated(schedule, costs, streams)
    what = f"{schedule!r} with streams per {streams}"
    if not ("streams" in wrong) == (slow is None) == (fast is None) or wrong - {"streams", "channel"}:
        times = ("no times" if timeline is None else "times" for timeline in (fast, slow))
        raise Found(f"{what}: {' by the simulator, '.join(times)} by the slow one, and the checker says {problems}")
    if slow is not None and fast is not None:
        different = np.flatnonzero((fast.start != slow.start) | (fast.end != slow.end))
        if different.size:
            op = int(different[0])
            pair = f"{fast.start[op]} to {fast.end[op]}, and {slow.start[op]} to {slow.end[op]}"
            raise Found(f"{what}: {schedule.place(op)} is from {pair} by the slow simulator")


def _slowly(schedule: Schedule, costs: Costs, streams: Streams) -> Timeline | None:
    try:
        return slow_streams(schedule, costs, streams)
    except DeadlockError:
        return None


def _simulated(schedule: Schedule, costs: Costs, streams: Streams) -> Timeline | None:
    try:
        return simulate(schedule, costs, communication="streams", streams=streams).timeline
    except DeadlockError:
        return None


def _moved(random: Random, schedule: Schedule) -> Schedule:
    """Some ends of messages further on or back: a send anywhere behind its op, a receive anywhere before its own."""
    rows = rows_of(schedule)
    share, far = random.choice((0.0, 0.05, 0.2, 0.6)), random.choice((2, 6, 100))
    for row in rows:
        for op in [op for op in row if op.kind in MESSAGES and random.random() < share]:
            at = row.index(op)
            row.pop(at)
            kinds = (Kind.F,) if op.kind in (Kind.SEND_F, Kind.RECV_F) else (Kind.B, Kind.I)
            own = next(
                place for place, other in enumerate(row) if other.kind in kinds and key(other)[1:] == key(op)[1:]
            )
            first, last = (own + 1, len(row)) if op.kind in (Kind.SEND_F, Kind.SEND_B) else (0, own)
            least = min(max(first, at - far), last)
            to = random.randint(least, max(min(last, at + far), least))
            inside = 0 < to < len(row) and row[to].group >= 0 and row[to].group == row[to - 1].group
            row.insert(to + (1 if first > 0 else -1) * inside, op)
    columns = [from_ops(row) for row in rows]
    return Schedule.from_rows(
        schedule.placement, schedule.microbatches, columns, slices=schedule.slices, name=schedule.name
    )
