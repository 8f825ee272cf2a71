"""Findings of a check, and the text grid that marks the op at fault."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.foundation.errors import DeadlockError, InvalidScheduleError
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.model import Schedule


class Finding(Record, frozen=True, kw_only=True):
    """Problem of a schedule: the violated rule, the place, and a sentence.

    Attributes
    ----------
    rule
        The rule that is broken, in one word. For any schedule: ``incomplete``, ``duplicate``, ``microbatch``, ``rank``,
        ``overlap``, ``offload``, ``order``, ``deadlock``, ``memory``. For messages: ``message`` (missing or
        superfluous), ``channel`` (out of order), ``rendezvous``, ``streams``, ``buffers``, ``wait``. For stage-wide ops:
        ``reduce-grad``, ``sharding``. For a trainer: ``losses``, ``trainer``. For a
        simulated timeline: ``times``.
    where
        The place: rank, number of the op in its row, the op.
    message
        The problem and its consequence at run time.
    """

    rule: str
    where: str
    message: str

    position = Evidence[int | None]()
    """Position of the op at fault in the schedule's columns; None if no single op is."""

    others = Evidence[tuple[int, ...]]()
    """Positions of the other ops in a cycle of waits."""

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.message}" if self.where else f"{self.rule}: {self.message}"


def finding(rule: str, where: str, message: str, position: int | None = None, others: tuple[int, ...] = ()) -> Finding:
    """Return the finding of a rule at a place; ``position`` and ``others`` are the ops at fault."""
    return holding(Finding(rule=rule, where=where, message=message), position=position, others=others)


@dataclass(frozen=True, slots=True)
class Report:
    """Findings of a check, in the order in which they were made.

    Attributes
    ----------
    schedule
        The schedule that was checked.
    problems
        Problems of the schedule; empty if it is valid.
    notes
        Properties that are problems on some runtimes only, or that cost more than necessary.
    """

    schedule: Schedule
    problems: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()

    @property
    def valid(self) -> bool:
        """True if there are no problems."""
        return not self.problems

    def require_valid(self) -> None:
        """Raise the first problem as an error, if there is one.

        Raises
        ------
        DeadlockError
            If ranks wait for each other.
        InvalidScheduleError
            If there is any other problem; the message has the first problem and a grid that marks the op.
        """
        if self.valid:
            return
        first = self.problems[0]
        more = f"\n({len(self.problems) - 1} more; check lists them all)" if len(self.problems) > 1 else ""
        grid = "" if first.position is None else "\n" + marked_grid(self.schedule, first.position)
        error = DeadlockError if first.rule in ("deadlock", "rendezvous", "streams") else InvalidScheduleError
        raise error(f"{first}{grid}{more}")


def marked_grid(schedule: Schedule, position: int) -> str:
    """Return up to seven rows of nine ops around an op as text, with that op between ``>`` and ``<``."""
    width, height = 9, 7
    rank = int(schedule.rank[position])
    column = position - int(schedule.offsets[rank])
    left = max(column - width // 2, 0)
    top = max(min(rank - height // 2, schedule.ranks - height), 0)
    lines = []
    for row in range(top, min(top + height, schedule.ranks)):
        start = int(schedule.offsets[row]) + left
        ops = [str(op) for op in schedule.columns[start : min(start + width, int(schedule.offsets[row + 1]))]]
        if row == rank:
            ops[column - left] = f">{ops[column - left]}<"
        lines.append([f"rank {row}", *(["..."] if left else []), *ops])
    widths = [max((len(line[i]) for line in lines if i < len(line)), default=0) for i in range(width + 2)]
    return "\n".join("  ".join(cell.ljust(widths[i]) for i, cell in enumerate(line)).rstrip() for line in lines)
