"""From a question to results: which schedules are meant, and what each of them gives or why it cannot be had."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pipeplan.api import Result
from pipeplan.api.catalogue import entry, is_name, schedules
from pipeplan.api.commands import simulate_with
from pipeplan.api.sources import as_taken_by, same_ranks
from pipeplan.costs import Costs, Settings
from pipeplan.errors import (
    FormatError,
    InputError,
    InvalidScheduleError,
    NotationError,
    PipeplanError,
    UnknownNameError,
)
from pipeplan.formats import endings, parse
from pipeplan.model import Schedule, Timeline
from pipeplan.web.faults import Fault, fault
from pipeplan.web.requests import FileIn, Question
from pipeplan.web.weight import MOST_OPS

Source = str | Schedule
"""The name of a strategy or heuristic, never of a file; or a schedule that came with the question."""


def only_source(question: Question) -> Source:
    """The one schedule that a question is about.

    Raises
    ------
    InputError
        If it is about none or several.
    PipeplanError
        For an unknown name, and for a file that holds no schedule.
    """
    asked: list[str | FileIn] = [*question.schedules, *question.files]
    if len(asked) != 1:
        raise InputError(f"schedules: choose one, not {len(asked)}", field="schedules")
    return _opened(asked[0])


def results(question: Question) -> tuple[list[Result], dict[str, Fault]]:
    """The results that can be had, the best first, and what is wrong with the other schedules."""
    settings = question.settings.settings()
    asked_for = _asked(question)
    had: list[Result] = []
    refused: dict[str, Fault] = {}
    try:
        _require_variant(asked_for, settings.variant)
    except PipeplanError as error:
        return [], {"": fault(error, "variant")}
    for name, asked in asked_for.items():
        try:
            had.append(simulated(_opened(asked), settings))
        except (FormatError, NotationError, InvalidScheduleError) as error:
            refused[name] = fault(error, "file")
        except PipeplanError as error:
            refused[name] = fault(error)
    return sorted(had, key=lambda result: (not result.fits, result.makespan)), refused


def _asked(question: Question) -> dict[str, str | FileIn]:
    """What a question is about, by name; without names and files, all strategies and heuristics."""
    names = question.schedules
    if not names and not question.files:
        names = [found.name for found in schedules()]
    return {name: name for name in names} | {file.name: file for file in question.files}


def _require_variant(names: Iterable[str], variant: str | None) -> None:
    """A schedule without this variant leaves it out, but one of them must have it."""
    found = [entry(name) for name in names if is_name(name)]
    known = {each for strategy in found for each in strategy.variants}
    if variant is not None and not known:
        raise InputError("none of these schedules has variants", field="variant")
    if variant is not None and variant not in known:
        raise UnknownNameError("variant", variant, known, field="variant")


def _opened(asked: str | FileIn) -> Source:
    return entry(asked).name if isinstance(asked, str) else _read(asked)


def simulated(source: Source, settings: Settings) -> Result:
    """One schedule on these costs; options that it does not have are left out, and a schedule of one's own has its shape.

    Raises
    ------
    PipeplanError
        For what :func:`pipeplan.api.simulate` raises it.
    """
    return simulate_with(source, taken_by(source, settings))


def taken_by(source: Source, settings: Settings) -> Settings:
    """The settings that a schedule has."""
    if isinstance(source, Schedule):
        return _costs_alone(settings)
    return as_taken_by(entry(source), same_ranks(settings))


def _costs_alone(settings: Settings) -> Settings:
    return replace(
        settings,
        ranks=None,
        microbatches=None,
        chunks=None,
        stages=None,
        group_size=None,
        slices=None,
        variant=None,
    )


def _read(file: FileIn) -> Schedule:
    """The schedule that a file holds, named after the file."""
    if Path(file.name).suffix.lower() not in endings():
        raise FormatError(f"{file.name} is no schedule file: its ending must be {' or '.join(endings())}")
    if file.text.count(",") > 2 * MOST_OPS:
        raise FormatError(f"{file.name} holds more than {MOST_OPS:,} ops; at most as many are served")
    found = parse(file.text.removeprefix("\ufeff"), file.name)
    if isinstance(found, Costs):
        raise FormatError(f"{file.name} holds costs, not a schedule")
    schedule = found.schedule if isinstance(found, Timeline) else found
    return schedule.renamed(file.name)
