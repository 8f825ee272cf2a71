"""Checks that a schedule can run: every op follows its sources, and no ranks wait for each other.

Runtimes buffer sends to different degrees: gloo and PyTorch's ``isend`` always, NCCL up to the size of its buffers,
MPI's ``Ssend`` never. A schedule whose ranks can meet at every transfer runs on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeplan.checking.findings import Finding, finding
from pipeplan.checking.structure import SHOWN
from pipeplan.model import Dependencies, RowProgress, Schedule, disordered, progress, rendezvous


def check_order(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the ops whose source is missing or does not precede them on their rank."""
    for sources, absent, late in disordered(schedule, needs):
        for op in absent[:SHOWN].tolist():
            message = "waits for an op that is not in the schedule: the rank would wait forever"
            yield finding("order", schedule.place(op), message, op)
        for op in late[:SHOWN].tolist():
            source = int(sources[op])
            message = f"waits for {schedule.op(source)}, which does not come before it on its rank"
            yield finding("order", schedule.place(op), message, op)


def check_progress(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the cycle of ranks that wait for each other, if there is one.

    :func:`check_order` must have found no problem.
    """
    run = progress(schedule, needs)
    if not run.complete:
        yield spelled_deadlock(schedule, run)


def spelled_deadlock(schedule: Schedule, run: RowProgress) -> Finding:
    """Return a finding with the cycle of waits in which an incomplete run ended, op by op."""
    cycle = blocking_cycle(schedule, run)
    return finding("deadlock", schedule.place(cycle[0]), _spell(schedule, run, cycle), cycle[0], tuple(cycle[1:]))


def blocking_cycle(schedule: Schedule, run: RowProgress) -> list[int]:
    """Return the positions of the ops that block each other, each waiting for the rank of the next."""
    # Every blocked rank waits for one other blocked rank, so following the waits from any of them ends in a cycle.
    rank = int(np.flatnonzero(run.reached < schedule.offsets[1:])[0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while rank not in seen:
        seen[rank] = len(path)
        path.append(_blocked(schedule, run, rank))
        rank = int(schedule.rank[run.source[path[-1]]])
    return path[seen[rank] :]


def _blocked(schedule: Schedule, run: RowProgress, rank: int) -> int:
    """Return the op that a rank cannot run: the one it reached, or the second op of that pair if only that one waits."""
    op = int(run.reached[rank])
    needed = run.source[op]
    return op if needed >= 0 and run.reached[schedule.rank[needed]] <= needed else op + 1


def _spell(schedule: Schedule, run: RowProgress, cycle: list[int]) -> str:
    steps = []
    for op, blocker in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        needed = int(run.source[op])
        behind = "" if needed == blocker else f", which cannot run before {schedule.op(blocker)}"
        steps.append(f"{schedule.op(op)} on rank {schedule.rank[op]} waits for {schedule.op(needed)}{behind}")
    return "deadlock, ranks wait for each other: " + "; ".join(steps)


def check_rendezvous(schedule: Schedule, needs: Dependencies) -> Iterator[Finding]:
    """Yield the cycle of ranks that block each other if sends block, if there is one.

    Messages and channels must be valid.
    """
    run = rendezvous(schedule, needs)
    if not run.complete:
        cycle = blocking_cycle(schedule, run)
        yield finding(
            "rendezvous",
            schedule.place(cycle[0]),
            _spell_rendezvous(schedule, needs, run, cycle),
            cycle[0],
            tuple(cycle[1:]),
        )


def _spell_rendezvous(schedule: Schedule, needs: Dependencies, run: RowProgress, cycle: list[int]) -> str:
    steps = []
    for op, blocker in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        # The other end directly follows the op that must be done first; see the docstring of rendezvous.
        other = int(run.source[op]) + 1
        does = "sends" if needs.arrival[other] == op else "receives"
        steps.append(
            f"rank {schedule.rank[op]} {does} at {schedule.op(op)} and blocks until rank {schedule.rank[other]} reaches "
            f"{schedule.op(other)}, which comes after {schedule.op(blocker)}"
        )
    return (
        "deadlock if sends block until they are received (buffered sends do not), ranks wait for each other: "
        + "; ".join(steps)
    )
