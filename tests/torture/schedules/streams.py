"""The suite ``streams``: lowered orders, with messages moved about, on every kind of streams.

Whether one hangs is for the checker, the simulator, an executor with queues and an event-driven simulation to say, each by
itself; the times are for the last two.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np

from pipeplan.checking import check
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Kind, Schedule, Streams, from_ops
from pipeplan.simulation import simulate
from tests.slow_streams import Executor, slow_streams
from tests.torture.schedules.oracle import MESSAGES, key
from tests.torture.schedules.random_costs import random_costs, varied
from tests.torture.schedules.shapes import random_schedule, rows_of
from tests.torture.suite import Found

TIMED = 4
"""One case in so many is timed, too."""


def attempt(seed: int, folder: Path) -> str:
    """One order on one kind of streams."""
    random = Random(f"streams {seed}")
    streams: Streams = random.choice(("rank", "rank", "direction", "edge"))
    schedule = _moved(random, random_schedule(random, messages=True, stage_wide=False))
    report = check(schedule, streams=streams)
    wrong = {problem.rule for problem in report.problems}
    stuck = Executor(schedule, streams).stuck
    what = f"{schedule!r} with streams per {streams}"
    if ("streams" in wrong) != stuck:
        raise Found(f"{what} {'hangs' if stuck else 'runs'}, and the checker says {report.problems}")
    if wrong - {"streams", "channel"}:
        raise Found(f"{what}: {report.problems}")
    if seed % TIMED == 0:
        _timed(random, schedule, streams, what, stuck=stuck)
    return "stuck" if stuck else "out of order on a channel" if wrong else "runs"


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


def _timed(random: Random, schedule: Schedule, streams: Streams, what: str, *, stuck: bool) -> None:
    costs = random_costs(random, schedule.placement, schedule.slices, whole=True)
    costs = varied(random, costs, schedule.microbatches, whole=True)
    try:
        slow = slow_streams(schedule, costs, streams)
    except DeadlockError:
        slow = None
    try:
        fast = simulate(schedule, costs, communication="streams", streams=streams).timeline
    except DeadlockError:
        fast = None
    if stuck or slow is None or fast is None:
        if not stuck or slow is not None or fast is not None:
            raise Found(f"{what}: only some of checker, simulator and slow simulator say that it hangs")
        return
    wrong = np.flatnonzero((fast.start != slow.start) | (fast.end != slow.end))
    if wrong.size:
        op = int(wrong[0])
        times = f"{fast.start[op]} to {fast.end[op]}, and {slow.start[op]} to {slow.end[op]}"
        raise Found(f"{what}: {schedule.place(op)} is from {times} by the slow simulator")
