"""How long it takes to lower about 100,000 ops for PyTorch and to check their channels.

Run with ``python -m benchmarks.lowering``. Asserts only known values: every channel in order, and a swapped pair found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.core import build, cpu
from pipeplan.checking import check
from pipeplan.checking.messages import check_channels, check_messages
from pipeplan.model import Kind, Schedule, dependencies
from pipeplan.passes import insert_communication, lower_for_torch


def check_messages_and_channels(schedule: Schedule) -> int:
    """How many problems there are with a schedule's messages."""
    return len([*check_messages(schedule), *check_channels(schedule, dependencies(schedule))])


def swapped(schedule: Schedule) -> Schedule:
    """The schedule with rank 1's first two receives from rank 0 changed about."""
    receives = schedule.where(Kind.RECV_F)
    first, second = receives[schedule.rank[receives] == 1][:2].tolist()
    order = np.arange(len(schedule))
    order[[first, second]] = second, first
    return replace(schedule, columns=schedule.columns[order])


def main() -> None:
    """Print the CPU seconds of each part."""
    print("ops with messages   lower     + whole-stage ops   channels   whole check")
    for name, microbatches in (("1f1b", 1600), ("interleaved-1f1b", 760), ("zbv", 480)):
        schedule = build(name, 16, microbatches, 1 if name == "1f1b" else 2)
        lower, lowered = cpu(lambda plan=schedule: insert_communication(plan))  # type: ignore[misc]
        full, _ = cpu(lambda plan=schedule: lower_for_torch(plan))  # type: ignore[misc]
        channels, problems = cpu(lambda plan=lowered: check_messages_and_channels(plan))  # type: ignore[misc]
        whole, report = cpu(lambda plan=lowered: check(plan))  # type: ignore[misc]
        assert problems == 0
        assert report.valid
        assert check_messages_and_channels(swapped(lowered)) == 1
        print(f"{name:17s} {len(lowered):7d} {lower:8.4f} s {full:8.4f} s {channels:8.4f} s {whole:8.4f} s")


if __name__ == "__main__":
    main()
