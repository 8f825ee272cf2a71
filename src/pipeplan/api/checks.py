"""Whether a schedule is right, and would run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, final

from pipeplan.api.arguments import Given, ScheduleLike, settings_of
from pipeplan.api.presentable import Presentable
from pipeplan.api.simulations import sends
from pipeplan.api.sources import label, opened, resolve
from pipeplan.checking import Problem
from pipeplan.checking import check as check_schedule
from pipeplan.costs import Settings
from pipeplan.drawing import View, order_of
from pipeplan.errors import InvalidScheduleError
from pipeplan.model import MemoryRule, Schedule

if TYPE_CHECKING:
    from rich.console import RenderableType


@final
@dataclass(frozen=True, eq=False)
class Verdict(Presentable):
    """What a check found.

    ``to_frame()`` has a row a problem.

    Attributes
    ----------
    name
        What was checked: the name or the file.
    schedule
        The schedule; None where the rows of a file make none.
    problems
        What is wrong; none means it is right.
    notes
        What is not wrong by itself, but would be on some runtimes or costs more than it must.
    """

    name: str
    schedule: Schedule | None
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def views(self) -> Sequence[View]:
        """The order of the ops, where there is one."""
        return [] if self.schedule is None else [order_of(self.schedule)]

    def to_dict(self) -> dict[str, Any]:
        """``valid``, ``problems`` and ``notes``, and the shape of the schedule where there is one."""
        document: dict[str, Any] = {"valid": self.valid, "problems": [_record(problem) for problem in self.problems]}
        schedule = self.schedule
        if schedule is None:
            return document
        return document | {
            "notes": [_record(note) for note in self.notes],
            "schedule": schedule.name,
            "ranks": schedule.ranks,
            "stages": schedule.stages,
            "microbatches": schedule.microbatches,
            "ops": len(schedule),
        }

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.checks import verdict_parts  # late: tables load rich

        return verdict_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [_record(problem) for problem in self.problems]

    def __repr__(self) -> str:
        return f"<Verdict on {self.name}: {'valid' if self.valid else f'{len(self.problems)} problem(s)'}>"


def _record(problem: Problem) -> dict[str, str]:
    return {"rule": problem.rule, "where": problem.where, "message": problem.message}


def check(schedule: ScheduleLike, /, **settings: Unpack[Given]) -> Verdict:
    """All that is wrong with a schedule: structure, order, deadlock, channels, and with ``memory_limit`` its memory.

    Parameters
    ----------
    schedule
        A file, a strategy's name or a schedule. Of a timeline, simulated or measured, the order of ops is checked.
    **settings
        Of the shape and costs, what the check depends on: ``memory_limit`` with its bytes, ``communication="blocking"`` for
        sends that wait for their receives.

    Raises
    ------
    InputError
        For a file that cannot be read or understood, and settings that cannot be.

    Examples
    --------
    >>> pipeplan.check("1f1b", ranks=4, microbatches=8, memory_limit="3act").problems[0].rule
    'memory'
    """
    given = settings_of(settings)
    name = label(schedule)
    try:
        found = resolve(opened(schedule, keep_duplicates=True), given, of_measured=True)
    except InvalidScheduleError as error:
        # The file was read, but its rows make no schedule that could be looked at further.
        return Verdict(name, None, (Problem("structure", name, str(error)),))
    report = check_schedule(found, memory=memory_rule(found, given), sends=sends(given))
    return Verdict(name, found, report.problems, report.notes)


def memory_rule(schedule: Schedule, settings: Settings) -> MemoryRule | None:
    """What the ranks may hold, where the settings say."""
    limits = settings.limits(schedule.placement)
    return None if limits is None else settings.costs(schedule.placement).memory.rule(schedule.placement, limits)
