"""Schedules of a request: read by name or from files, limited in size, simulated, and chosen to be drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from pipeplan.answers.published import allowed_needs, missing
from pipeplan.costs import Costs, Settings
from pipeplan.drawing import View
from pipeplan.drawing.html import archived, packed, themes_for
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

_MOST_PLAIN = 5_000
"""Maximum number of ops of a timeline whose columns are sent as they are."""

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


def servable(names: Iterable[str], settings: Settings, allowed: Allowed) -> tuple[list[str], list[str]]:
    """Return the schedules that together have at most ``MOST_OPS`` ops, and those that are left out.

    If not all stay, those do whose rule ignores costs, because the others search; first those that need nothing but what is
    allowed, and of these the smallest. Raises ShapeError if even the smallest schedule is too large.
    """
    settings = same_ranks(settings)
    ops = {strategy(name).name: ops_at_most(name, settings) for name in names}
    if sum(ops.values()) <= MOST_OPS:
        return list(ops), []
    kept: set[str] = set()
    left = MOST_OPS
    fast = [name for name in ops if not strategy(name).looks_at_costs] or ops
    for name in sorted(fast, key=lambda name: (bool(missing(strategy(name).needs, allowed)), ops[name])):
        if ops[name] <= left:
            kept.add(name)
            left -= ops[name]
    if not kept:
        require_servable(ops, settings)
    return [name for name in ops if name in kept], [name for name in ops if name not in kept]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Schedules of a request with their times.

    Attributes
    ----------
    results
        The best first, as in :func:`pipeplan.compare`.
    faults
        Why other schedules have no result, by name; the empty name means all of them.
    allowed
        What the best one may need.
    left_out
        Schedules that were not simulated, because the request is too large with them.
    """

    results: Sequence[Result] = ()
    faults: Mapping[str, Fault]
    allowed: Allowed = frozenset()
    left_out: Sequence[str] = ()


def simulate_all(request: SchedulesIn) -> Simulated:
    """Simulate the schedules of a request, or as many as this server can hold."""
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
        return Simulated(faults=faults)
    left_out: list[str] = []
    try:
        if names := [source.name for source in sources if isinstance(source, Strategy)]:
            whole = with_shape_of(sources, settings)
            _, left_out = servable(names, whole, allowed_needs(request.allow, whole))
            sources = [source for source in sources if not isinstance(source, Strategy) or source.name not in left_out]
        named = bool(request.schedules or request.files)
        simulated, refused, allowed = compared(sources, settings, allow=request.allow, named=named)
    except PipeplanError as error:
        return Simulated(faults=faults | {"": fault(error)})
    files = {file.name for file in request.files}
    faults |= {name: _fault(error, name in files) for name, error in refused.items()}
    return Simulated(results=simulated, faults=faults, allowed=allowed, left_out=left_out)


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


def drawing_of(results: Sequence[Result], *, reasons: bool) -> dict[str, Any] | None:
    """Return the timelines of results, ready for JSON: a large one is archived, which takes a hundredth of the bytes."""
    if not results:
        return None
    drawn = views(results, reasons=reasons)
    packed_views = [
        archived(view) if len(result.schedule) > _MOST_PLAIN else view.to_json_dict(packed)
        for view, result in zip(drawn, results, strict=True)
    ]
    return {"themes": themes_for(drawn), "views": packed_views}


def views(results: Sequence[Result], *, reasons: bool = True) -> list[View]:
    """Return a view of each result; with ``reasons``, and unless there are too many ops, also why ranks idle."""
    explained = reasons and can_be_explained(results)
    return [view_of_result(result, reasons=explained) for result in results]


def can_be_explained(results: Sequence[Result]) -> bool:
    """Return whether all idle time of the results can be attributed in a moment."""
    return _ops(results) <= _MOST_EXPLAINED


def _ops(results: Sequence[Result]) -> int:
    return sum(len(result.schedule) for result in results)
