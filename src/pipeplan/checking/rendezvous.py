"""Would it run where a send blocks until its receive is there?

Runtimes buffer sends to different degrees: gloo and PyTorch's ``isend`` always, NCCL up to the size of its buffers, MPI's
``Ssend`` never. A schedule whose ranks come to every transfer in an order that lets them meet runs on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.checking.order import blocking_cycle
from pipeplan.checking.problem import Problem
from pipeplan.model import Dependencies, Progress, Schedule, rendezvous


def check_rendezvous(schedule: Schedule, needs: Dependencies) -> Iterator[Problem]:
    """No ranks block each other; where they do, the cycle op by op. Needs messages and channels to be right."""
    run = rendezvous(schedule, needs)
    if not run.complete:
        cycle = blocking_cycle(schedule, run)
        yield Problem(
            "rendezvous", schedule.place(cycle[0]), _spell(schedule, needs, run, cycle), cycle[0], tuple(cycle[1:])
        )


def _spell(schedule: Schedule, needs: Dependencies, run: Progress, cycle: list[int]) -> str:
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
