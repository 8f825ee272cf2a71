"""Schedules of a request: read by name or from files, limited in size, simulated, and chosen to be drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pipeplan.answers import (
    Allowed,
    Result,
    as_taken_by,
    compared,
    same_ranks,
    settings_for,
    shape_of,
    view_of_result,
    with_shape_of,
    without_times,
)
from pipeplan.costs import Costs, Settings
from pipeplan.drawing import View
from pipeplan.extensions.web.faults import fault
from pipeplan.extensions.web.records import Fault
from pipeplan.extensions.web.requests import FileIn, SchedulesIn
from pipeplan.formats import endings, is_readable, parse
from pipeplan.foundation.errors import (
    FormatError,
    InputError,
    InvalidScheduleError,
    NotationError,
    PipeplanError,
    ShapeError,
)
from pipeplan.model import Schedule, Timeline
from pipeplan.strategies import STRATEGIES, Strategy, strategy

Source = Strategy | Schedule | Timeline
"""A strategy, or the content of a file of the request; a name is never one of a file here."""

# Sizes. What is too large anywhere is refused by pipeplan.model.values; a server's limits are lower.

MOST_OPS = 2_000_000
"""Maximum number of ops of all schedules of a request together."""

MOST_DRAWN = 400_000
"""Maximum number of ops of all timelines of an answer together."""

MOST_LANES = 2_000
"""Maximum number of ranks of all timelines of an answer together."""

_MOST_EXPLAINED = 400_000
"""Maximum number of ops whose idle time is attributed in a moment."""

_KINDS = 3
"""Ops for each forward: F, I and W."""

_MESSAGES = 4
"""Sends and receives for each forward and its backward, if messages are ops."""

# A suffix begins with a letter: "search 12.5GiB" has none.
_EXTENSION = re.compile(r"\.[^\W\d][^.]*$")


def require_servable(names: Iterable[str], settings: Settings) -> None:
    """Refuse a request of more than ``MOST_OPS`` ops, from its numbers alone, before any work."""
    settings = same_ranks(settings)
    chosen = [strategy(name).name for name in names] or list(STRATEGIES)
    ops = {name: ops_at_most(name, settings) for name in chosen}
    total = sum(ops.values())
    if total > MOST_OPS:
        largest = max(ops, key=lambda name: ops[name])
        several = f"{len(ops)} schedules have up to {total:,} ops, of which {largest} up to {ops[largest]:,}"
        one = f"{largest} has up to {total:,} ops"
        raise ShapeError(
            f"too large to serve: {several if len(ops) > 1 else one}, and the limit is {MOST_OPS:,}; "
            "reduce the ranks, microbatches or schedules, or use the command line, which has no such limit",
            field="ranks",
        )


def ops_at_most(name: str, settings: Settings) -> int:
    """Return an upper bound on the number of ops of a strategy's schedule."""
    chosen = strategy(name)
    forwards = shape_of(chosen, as_taken_by(chosen, settings)).forwards
    return forwards * (_KINDS + (_MESSAGES if settings.communication in ("blocking", "streams") else 0))


def only_one(request: SchedulesIn) -> tuple[Source, Settings]:
    """Return the one schedule of a request, and its settings."""
    requested: list[str | FileIn] = [*request.schedules, *request.files]
    if len(requested) != 1:
        raise InputError(f"choose one schedule, not {len(requested)}", field="schedules")
    source = _opened(requested[0])
    settings = settings_for(source, request.costs())
    # A form always has times; a measured timeline has its own.
    measured = isinstance(source, Timeline) and source.source == "measured"
    return source, without_times(settings) if measured else settings


def results(request: SchedulesIn) -> tuple[list[Result], dict[str, Fault], Allowed]:
    """Simulate the schedules of a request.

    Returns
    -------
    results
        The best first, as in :func:`pipeplan.compare`.
    faults
        Why the other schedules have no result, by name; the empty name means all of them.
    allowed
        What the best one may need.
    """
    settings = request.costs()
    sources: list[Source] = []
    faults: dict[str, Fault] = {}
    for name, requested in _requested(request).items():
        try:
            sources.append(_opened(requested))
        except (FormatError, NotationError, InvalidScheduleError) as error:
            faults[name] = fault(error, "file")
        except PipeplanError as error:
            faults[name] = fault(error)
    if not sources:
        return [], faults, frozenset()
    try:
        if names := [source.name for source in sources if isinstance(source, Strategy)]:
            require_servable(names, with_shape_of(sources, settings))
        named = bool(request.schedules or request.files)
        simulated, refused, allowed = compared(sources, settings, allow=request.allow, named=named)
    except PipeplanError as error:
        return [], faults | {"": fault(error)}, frozenset()
    files = {file.name for file in request.files}
    return simulated, faults | {name: _fault(error, name in files) for name, error in refused.items()}, allowed


def _fault(error: PipeplanError, of_file: bool) -> Fault:
    """Return why one schedule has no result; its file is at fault unless a setting is."""
    return fault(error, "file" if of_file and (isinstance(error, InvalidScheduleError) or not error.field) else None)


def _requested(request: SchedulesIn) -> dict[str, str | FileIn]:
    """Return the schedules that a request names, by name; without names and files, all strategies."""
    chosen = request.schedules if request.schedules or request.files else list(STRATEGIES)
    return {name: name for name in chosen} | {file.name: file for file in request.files}


def _opened(requested: str | FileIn) -> Source:
    return strategy(requested) if isinstance(requested, str) else read_file(requested)


def read_file(file: FileIn) -> Schedule | Timeline:
    """Return the content of a file, named after the file; without a suffix it is pipeplan's JSON.

    Raises PipeplanError for a file with neither a schedule nor a timeline, or one that is too large.
    """
    name = file.name if _EXTENSION.search(file.name) else f"{file.name}.json"
    if not is_readable(name):
        raise FormatError(f"{file.name} is not a schedule file: its suffix must be {' or '.join(endings())}")
    if file.text.count(",") > 2 * MOST_OPS:
        raise FormatError(f"{file.name} holds more than {MOST_OPS:,} ops, which is the limit here")
    content = parse(file.text.removeprefix("\ufeff"), name)
    if isinstance(content, Costs):
        raise FormatError(f"{file.name} holds costs, not a schedule")
    if isinstance(content, Timeline):
        return replace(content, schedule=content.schedule.renamed(file.name))
    return content.renamed(file.name)


def choose(results: Sequence[Result], wanted: Sequence[str] | None) -> tuple[list[Result], list[str]]:
    """Choose results to draw.

    Returns
    -------
    drawn
        As many as a browser can hold.
    undrawn
        Names of those that are too large.
    """
    by_name = {result.name: result for result in results}
    available = [name for name in dict.fromkeys(wanted or ()) if name in by_name]
    names = [results[0].name] if not available and wanted != [] else available
    drawn: list[Result] = []
    undrawn: list[str] = []
    for name in names:
        drawn.append(by_name[name])
        if _ops(drawn) > MOST_DRAWN or sum(result.schedule.ranks for result in drawn) > MOST_LANES:
            undrawn.append(drawn.pop().name)
    return drawn, undrawn


def views(results: Sequence[Result], *, reasons: bool = True) -> list[View]:
    """Return a view of each result; with ``reasons``, and unless there are too many ops, also why ranks idle."""
    explained = reasons and can_be_explained(results)
    return [view_of_result(result, reasons=explained) for result in results]


def can_be_explained(results: Sequence[Result]) -> bool:
    """Return whether all idle time of the results can be attributed in a moment."""
    return _ops(results) <= _MOST_EXPLAINED


def _ops(results: Sequence[Result]) -> int:
    return sum(len(result.schedule) for result in results)
