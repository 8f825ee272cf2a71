"""Can it run: does everything come after what it waits for, and does no rank wait for ever?

Runtimes buffer sends to different degrees: gloo and PyTorch's ``isend`` always, NCCL up to the size of its buffers, MPI's
``Ssend`` never. A schedule whose ranks come to every transfer in an order that lets them meet runs on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.finding import Finding
from pipeplan.checking.structure import SHOWN
from pipeplan.model import Dependencies, RowProgress, Schedule, disordered, progress, rendezvous


def check_order(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """On each rank, every op comes after those that it waits for there."""
    for sources, absent, late in disordered(schedule, needs):
        for op in absent[:SHOWN].tolist():
            message = "waits for an op that is not in the schedule: the rank would wait for ever"
            yield Finding("order", schedule.place(op), message, op)
        for op in late[:SHOWN].tolist():
            source = int(sources[op])
            message = f"waits for {schedule.op(source)}, which does not come before it on its rank"
            yield Finding("order", schedule.place(op), message, op)


def check_progress(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """No ranks wait for each other; where they do, the cycle op by op. Needs :func:`check_order` to find nothing."""
    run = progress(schedule, needs)
    if not run.complete:
        yield spelled_deadlock(schedule, run)


def spelled_deadlock(schedule: Schedule, run: RowProgress) -> Finding:
    """Return the cycle of waits in which a run that is not complete ended, op by op."""
    cycle = blocking_cycle(schedule, run)
    return Finding("deadlock", schedule.place(cycle[0]), _spell(schedule, run, cycle), cycle[0], tuple(cycle[1:]))


def blocking_cycle(schedule: Schedule, run: RowProgress) -> list[int]:
    """Positions of the ops that block each other, each waiting for the rank of the next."""
    rank = int(np.flatnonzero(run.reached < schedule.offsets[1:])[0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while rank not in seen:
        seen[rank] = len(path)
        path.append(_blocked(schedule, run, rank))
        rank = int(schedule.rank[run.source[path[-1]]])
    return path[seen[rank] :]


def _blocked(schedule: Schedule, run: RowProgress, rank: int) -> int:
    """The op that a rank cannot run: the one reached, or the second of its pair where that is the one that waits."""
    op = int(run.reached[rank])
    needed = run.source[op]
    return op if needed >= 0 and run.reached[schedule.rank[needed]] <= needed else op + 1


def _spell(schedule: Schedule, run: RowProgress, cycle: list[int]) -> str:
    steps = []
    for op, blocker in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        needed = int(run.source[op])
        behind = "" if needed == blocker else f", which cannot run before {schedule.op(blocker)}"
        steps.append(f"{schedule.op(op)} on rank {schedule.rank[op]} waits for {schedule.op(needed)}{behind}")
    return "ranks wait for each other and the step never ends: " + "; ".join(steps)


def check_rendezvous(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """No ranks block each other; where they do, the cycle op by op. Needs messages and channels to be right."""
    run = rendezvous(schedule, needs)
    if not run.complete:
        cycle = blocking_cycle(schedule, run)
        yield Finding(
            "rendezvous",
            schedule.place(cycle[0]),
            _spell_rendezvous(schedule, needs, run, cycle),
            cycle[0],
            tuple(cycle[1:]),
        )


def _spell_rendezvous(schedule: Schedule, needs: Dependencies, run: RowProgress, cycle: list[int]) -> str:
    steps = []
    for op, blocker in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        # The other end stands right behind the op that must be done first; see the docstring of rendezvous.
        other = int(run.source[op]) + 1
        does = "sends" if needs.arrival[other] == op else "receives"
        steps.append(
            f"rank {schedule.rank[op]} {does} at {schedule.op(op)} and blocks until rank {schedule.rank[other]} comes to "
            f"{schedule.op(other)}, which stands behind {schedule.op(blocker)}"
        )
    return (
        "where sends block until they are received, ranks wait for each other and the step never ends (buffered sends get "
        "through): " + "; ".join(steps)
    )
