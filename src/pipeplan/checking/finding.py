"""What a check finds, and the picture that points at it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.errors import DeadlockError, InvalidScheduleError
from pipeplan.model import Schedule


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a schedule.

    Attributes
    ----------
    rule
        The rule it breaks, in one word. Of any schedule: ``incomplete``, ``duplicate``, ``microbatch``, ``rank``,
        ``overlap``, ``order``, ``deadlock``, ``memory``. Of messages: ``message`` (missing or one too many), ``channel``
        (out of order), ``rendezvous``, ``buffers``, ``wait``. Of whole stages: ``reduce-grad``, ``sharding``. Of a
        trainer: ``losses``, ``trainer``. Of a simulated timeline: ``times``.
    where
        The place: rank, number of the op in its row, the op.
    message
        What is wrong and what would happen at run time.
    position
        Where the faulty op stands in the schedule's columns; None where no single op is at fault.
    others
        Where the other ops of a circle of waits stand.
    """

    rule: str
    where: str
    message: str
    position: int | None = None
    others: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.message}" if self.where else f"{self.rule}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a check, in the order in which they were made.

    Attributes
    ----------
    schedule
        Which one.
    problems
        What is wrong with it; none means it is right.
    notes
        What is not wrong by itself, but would be on some runtimes or costs more than it must.
    """

    schedule: Schedule
    problems: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def require_valid(self) -> None:
        """Do nothing for a schedule that is right.

        Raises
        ------
        DeadlockError
            If ranks wait for each other.
        InvalidScheduleError
            If anything else is wrong; the message has the first problem and a grid that marks the op.
        """
        if self.valid:
            return
        first = self.problems[0]
        more = f"\n({len(self.problems) - 1} more; check lists them all)" if len(self.problems) > 1 else ""
        grid = "" if first.position is None else "\n" + marked_grid(self.schedule, first.position)
        error = DeadlockError if first.rule in ("deadlock", "rendezvous") else InvalidScheduleError
        raise error(f"{first}{grid}{more}")


def marked_grid(schedule: Schedule, position: int, *, width: int = 9, height: int = 7) -> str:
    """The rows around an op, a cell an op, with that op between ``>`` and ``<``."""
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
