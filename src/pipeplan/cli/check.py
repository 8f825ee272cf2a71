"""``pipeplan check``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeplan.api.commands import check_with
from pipeplan.checking import Problem, Report, marked_grid
from pipeplan.cli.answers import print_json
from pipeplan.cli.options import Debug, Json, SettingOptions
from pipeplan.cli.request import request
from pipeplan.errors import InvalidScheduleError

_SETTINGS = SettingOptions()


def check(
    file: str,
    /,
    *,
    settings: SettingOptions = _SETTINGS,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Is this schedule right, and would it run?

    Structure, order, deadlock, channels, and with `--memory-limit` the memory of every rank. Notes say what is right here
    but not everywhere, such as sends that must not block. Exits with 1 if anything is wrong.

    Parameters
    ----------
    file
        A CSV or JSON file that holds a schedule, or a schedule's name.
    """
    asked = request((file,), settings)
    try:
        report = check_with(file, asked.settings)
    except InvalidScheduleError as error:
        # The file was read, but its rows make no schedule that could be looked at further.
        problem = Problem("structure", file, str(error))
        _answer({"valid": False, "problems": [_record(problem)]}, _listed(file, (problem,)), json)
        return 1
    _answer(_document(report), _text(file, report), json)
    return 0 if report.valid else 1


def _answer(document: dict[str, Any], text: str, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print(text)


def _record(problem: Problem) -> dict[str, str]:
    return {"rule": problem.rule, "where": problem.where, "message": problem.message}


def _document(report: Report) -> dict[str, Any]:
    schedule = report.schedule
    return {
        "valid": report.valid,
        "problems": [_record(problem) for problem in report.problems],
        "notes": [_record(note) for note in report.notes],
        "schedule": schedule.name,
        "ranks": schedule.ranks,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
        "ops": len(schedule),
    }


def _text(file: str, report: Report) -> str:
    schedule = report.schedule
    if report.problems:
        text = _listed(file, report.problems)
        first = report.problems[0].position
        text += "" if first is None else f"\n\n{marked_grid(schedule, first)}"
    else:
        text = (
            f"{file} is right: {schedule.ranks} ranks, {schedule.stages} stages ({schedule.placement.name}), "
            f"{schedule.microbatches} microbatches, {len(schedule)} ops"
        )
    return "\n".join([text, *(f"note: {note}" for note in report.notes)])


def _listed(file: str, problems: Sequence[Problem]) -> str:
    return "\n".join([f"{file} has {len(problems)} problem(s):", *(f"  {problem}" for problem in problems)])
