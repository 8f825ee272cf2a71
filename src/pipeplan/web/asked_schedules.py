"""The schedules that a request asks for, by name or as files, and the result of each, or why there is none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pipeplan.api import Result, compared, settings_for, with_shape_of, without_times
from pipeplan.costs import Costs, Settings
from pipeplan.errors import FormatError, InputError, InvalidScheduleError, NotationError, PipeplanError
from pipeplan.formats import endings, parse
from pipeplan.model import Schedule, Timeline
from pipeplan.strategies import STRATEGIES, strategy
from pipeplan.web.faults import fault
from pipeplan.web.records import Fault
from pipeplan.web.request_size import MOST_OPS, require_servable
from pipeplan.web.requests import FileIn, Question

Meant = str | Schedule | Timeline
"""The name of a strategy, never of a file; or what a file that came with the question holds."""

_ENDING = re.compile(r"\.[^\W\d][^.]*$")


def only_one(question: Question) -> tuple[Meant, Settings]:
    """The one schedule that a question is about, and the settings that it has.

    Raises
    ------
    InputError
        If it is about none or several.
    PipeplanError
        For an unknown name, and for a file that holds no schedule.
    """
    asked: list[str | FileIn] = [*question.schedules, *question.files]
    if len(asked) != 1:
        raise InputError(f"choose one schedule, not {len(asked)}", field="schedules")
    meant = _opened(asked[0])
    settings = settings_for(meant, question.settings.settings())
    # A form always has times; those of a measured timeline are its own.
    return meant, without_times(settings) if isinstance(meant, Timeline) and meant.source == "measured" else settings


def results(question: Question) -> tuple[list[Result], dict[str, Fault]]:
    """The results that can be had, the best first, and what is wrong with the others; what is wrong with all has no name."""
    settings = question.settings.settings()
    meant: list[Meant] = []
    wrong: dict[str, Fault] = {}
    for name, asked in _asked(question).items():
        try:
            meant.append(_opened(asked))
        except (FormatError, NotationError, InvalidScheduleError) as error:
            wrong[name] = fault(error, "file")
        except PipeplanError as error:
            wrong[name] = fault(error)
    if not meant:
        return [], wrong
    try:
        if strategies := [each for each in meant if isinstance(each, str)]:
            require_servable(strategies, with_shape_of(meant, settings))
        had, refused = compared(meant, settings)
    except PipeplanError as error:
        return [], wrong | {"": fault(error)}
    own = {file.name for file in question.files}
    return had, wrong | {name: _fault(error, name in own) for name, error in refused.items()}


def _fault(error: PipeplanError, of_file: bool) -> Fault:
    """What is wrong with one schedule; where no setting is, its file is at fault."""
    return fault(error, "file" if of_file and (isinstance(error, InvalidScheduleError) or not error.field) else None)


def _asked(question: Question) -> dict[str, str | FileIn]:
    """What a question is about, by name; without names and files, all strategies."""
    chosen = question.schedules if question.schedules or question.files else list(STRATEGIES)
    return {name: name for name in chosen} | {file.name: file for file in question.files}


def _opened(asked: str | FileIn) -> Meant:
    return strategy(asked).name if isinstance(asked, str) else read_file(asked)


def read_file(file: FileIn) -> Schedule | Timeline:
    """What a file holds, named after the file; where its name has no ending, it is pipeplan's JSON.

    What begins with a digit is no ending: ``search 12.5GiB`` has none.

    Raises
    ------
    PipeplanError
        For a file that holds neither a schedule nor a timeline, or one that is too large.
    """
    name = file.name if _ENDING.search(file.name) else f"{file.name}.json"
    if Path(name).suffix.lower() not in endings():
        raise FormatError(f"{file.name} is no schedule file: its ending must be {' or '.join(endings())}")
    if file.text.count(",") > 2 * MOST_OPS:
        raise FormatError(f"{file.name} holds more than {MOST_OPS:,} ops, which is the limit here")
    found = parse(file.text.removeprefix("\ufeff"), name)
    if isinstance(found, Costs):
        raise FormatError(f"{file.name} holds costs, not a schedule")
    if isinstance(found, Timeline):
        return replace(found, schedule=found.schedule.renamed(file.name))
    return found.renamed(file.name)
