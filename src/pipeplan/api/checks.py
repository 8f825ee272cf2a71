"""Whether a schedule is right, and would run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, final

from pipeplan.api.arguments import Given, ScheduleLike, settings_of
from pipeplan.api.presentable import Presentable
from pipeplan.api.simulations import sends
from pipeplan.api.sources import label, opened, resolve
from pipeplan.checking import Problem
from pipeplan.checking import check as check_schedule
from pipeplan.costs import Settings
from pipeplan.drawing import View, order_of
from pipeplan.errors import InputError, InvalidScheduleError, UnknownNameError
from pipeplan.formats import has_waits, torch_release
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


TRAINERS = ("pytorch", "torchtitan", "megatron")
"""The trainers for which a schedule can be checked."""


class _Rules(TypedDict, total=False):
    waits: bool
    losses_in_order: bool


def check(
    schedule: ScheduleLike,
    /,
    *,
    trainer: str | None = None,
    trainer_version: str | None = None,
    **settings: Unpack[Given],
) -> Verdict:
    """All that is wrong with a schedule: structure, order, deadlock, channels, and with ``memory_limit`` its memory.

    Parameters
    ----------
    schedule
        A file, a strategy's name or a schedule. Of a timeline, simulated or measured, the order of ops is checked.
    trainer
        ``pytorch``, ``torchtitan`` or ``megatron``: what this trainer cannot run, or would train on wrong gradients, is a
        problem. Of PyTorch the schedule is checked as it stands, of the others whether it can be exported to them.
    trainer_version
        The release of PyTorch; None: the installed one, or without one the newest known release.
    **settings
        Of the shape and costs, what the check depends on: ``memory_limit`` with its bytes, ``communication="blocking"`` for
        sends that wait for their receives.

    Raises
    ------
    InputError
        For a file that cannot be read or understood, settings that cannot be, and a release that is not known.
    UnknownNameError
        For an unknown trainer.

    Examples
    --------
    >>> pipeplan.check("1f1b", ranks=4, microbatches=8, memory_limit="3act").problems[0].rule
    'memory'
    """
    rules = _rules_of(trainer, trainer_version)
    given = settings_of(settings)
    name = label(schedule)
    try:
        found = resolve(opened(schedule, keep_duplicates=True), given, of_measured=True)
    except InvalidScheduleError as error:
        # The file was read, but its rows make no schedule that could be looked at further.
        return Verdict(name, None, (Problem("structure", name, str(error)),))
    report = check_schedule(found, memory=memory_rule(found, given), sends=sends(given), **rules)
    problems = report.problems
    if trainer is not None and not problems:
        problems = _refused_by(trainer, found)
    return Verdict(name, found, problems, report.notes)


def _rules_of(trainer: str | None, release: str | None) -> _Rules:
    """Return the rules of a trainer that no other has. Raises UnknownNameError, and InputError for a wrong release."""
    if trainer is not None and trainer not in TRAINERS:
        raise UnknownNameError("trainer", trainer, TRAINERS, field="trainer")
    if trainer != "pytorch":
        if release is not None:
            raise InputError("trainer_version is for checks for pytorch", field="trainer_version")
        return {}
    return {"waits": has_waits(torch_release(release)), "losses_in_order": True}


def _refused_by(trainer: str, schedule: Schedule) -> tuple[Problem, ...]:
    from pipeplan.api.editing.trainers import refusal  # brings every format of answers, which other checks do without

    reason = refusal("torch-csv-comms" if trainer == "pytorch" else trainer, schedule)
    return (Problem("trainer", "", reason),) if reason else ()


def memory_rule(schedule: Schedule, settings: Settings) -> MemoryRule | None:
    """What the ranks may hold, where the settings say."""
    limits = settings.limits(schedule.placement)
    return None if limits is None else settings.costs(schedule.placement).memory.rule(schedule.placement, limits)
