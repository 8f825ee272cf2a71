"""Schedules with UNSHARD, RESHARD and REDUCE_GRAD in random legal places."""

from __future__ import annotations

from random import Random

from pipeplan.model import Kind, Op, Schedule, from_ops
from tests.slow_simulator import turns

COMPUTES = (Kind.F, Kind.B, Kind.I, Kind.W, Kind.R)


def sharded(schedule: Schedule, random: Random) -> Schedule:
    """Return a schedule whose ranks gather each stage once or more, and reduce its gradients behind the last of them.

    Every op that computes is between an UNSHARD and a RESHARD of its stage. About half of the reductions have an op that
    waits for them.
    """
    rows = [from_ops(_row([*turns(schedule[rank])], random)) for rank in range(schedule.ranks)]
    return Schedule.from_rows(
        schedule.placement, schedule.microbatches, rows, slices=schedule.slices, name=schedule.name
    )


def _row(row: list[tuple[Op, ...]], random: Random) -> list[Op]:
    # What comes before each turn of the rank; the last list is behind all of them.
    before: list[list[Op]] = [[] for _ in range(len(row) + 1)]

    def put(low: int, high: int, kind: Kind, stage: int) -> int:
        place = random.randint(low, high)
        before[place].append(Op(kind, stage))
        return place

    for stage in sorted({op.stage for turn in row for op in turn if op.kind in COMPUTES}):
        mine = [
            place for place, turn in enumerate(row) if any(op.stage == stage and op.kind in COMPUTES for op in turn)
        ]
        runs: list[list[int]] = []
        for place in mine:
            if not runs or random.random() < 0.3:
                runs.append([])
            runs[-1].append(place)
        since = 0
        for run, following in zip(runs, [*runs[1:], [len(row)]], strict=True):
            put(since, run[0], Kind.UNSHARD, stage)
            since = put(run[-1] + 1, following[0], Kind.RESHARD, stage)
        weights = (Kind.B, Kind.W)
        last = max(place for place in mine if any(op.stage == stage and op.kind in weights for op in row[place]))
        reduced = put(last + 1, len(row), Kind.REDUCE_GRAD, stage)
        if random.random() < 0.5:
            put(reduced, len(row), Kind.WAIT_REDUCE_GRAD, stage)
    return [op for place in range(len(before)) for op in (*before[place], *(row[place] if place < len(row) else ()))]
