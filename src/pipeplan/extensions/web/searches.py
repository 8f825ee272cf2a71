"""Work of the server's processes for the panels that search: from a request to the lines of the reply."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from pipeplan.answers import Result, timed
from pipeplan.costs import Settings
from pipeplan.extensions.search import SearchProgress
from pipeplan.extensions.search.answers.fronts import ParetoFront
from pipeplan.extensions.search.answers.options import AUTO
from pipeplan.extensions.search.answers.problems import DEFAULT_CHUNKS
from pipeplan.extensions.search.answers.search_record import searched_figures
from pipeplan.extensions.search.answers.search_words import decisions_of, gain_of
from pipeplan.extensions.search.answers.searches import pareto, search, usable_cores
from pipeplan.extensions.web.faults import as_json, at_field
from pipeplan.extensions.web.records import (
    FrontLine,
    FrontPointReply,
    FrontReply,
    SearchLine,
    SearchReply,
    SearchStatus,
)
from pipeplan.extensions.web.requests import FrontIn, SearchIn, given
from pipeplan.extensions.web.schedules import Source, read_file
from pipeplan.formats import schedule_json
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import Schedule
from pipeplan.strategies import strategy

MOST_OPS = 150_000
"""Maximum number of ops of a searched schedule on this server."""

EVERY = 0.25
"""Seconds between two lines with the progress of a search."""

EVERY_SCHEDULE = 1.0
"""Seconds between two schedules of a search."""

Line = SearchLine | FrontLine
Tell = Callable[[bytes], None]


def make_search(request: SearchIn, tell: Tell) -> None:
    """Search; send lines of JSON: ``progress`` and ``best`` repeatedly, then ``found``."""
    teller = _Teller(tell)
    settings = _servable(request.costs(), request.placement)
    result = search(
        **request.keywords() | {"start": [*map(_strategy, request.start or ()), *map(_schedule, request.files)]},
        workers=_threads(),
        progress=teller.progress,
        **_keywords(request, settings),
    )
    teller.schedule(result.schedule)
    record = result.search
    assert record is not None
    sentences = [*gain_of(record, result.timeline.unit), *decisions_of(record)]
    reply = SearchReply(**searched_figures(result), said=tuple(sentences))
    tell(_line(SearchLine(found=reply)))


def make_front(request: FrontIn, tell: Tell) -> None:
    """Search under several limits; send ``progress`` and each ``point``, then the ``front``."""
    teller = _Teller(tell)
    points = _Points(request.costs(), tell)

    def progress(limit: float, search: SearchProgress) -> None:
        done = points.follow(limit, search)
        teller.progress(search, share=min((done + search.share) / request.points, 1.0))

    settings = _servable(request.costs(), request.placement)
    front = pareto(**request.keywords(), workers=_threads(), progress=progress, **_keywords(request, settings))
    tell(_line(FrontLine(front=_front(front))))


class _Teller:
    """Sends the progress of a search and its best schedule, each at a limited rate."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told = self._told_schedule = -math.inf
        self._value = math.inf

    def progress(self, progress: SearchProgress, share: float | None = None) -> None:
        """Send the progress, and the best schedule of a search that is not part of a front."""
        now = time.monotonic()
        if now - self._told >= EVERY:
            self._told = now
            self._tell(_line(SearchLine(progress=_progress(progress, share))))
        if share is None and progress.value < self._value and now - self._told_schedule >= EVERY_SCHEDULE:
            self._told_schedule, self._value = now, progress.value
            self.schedule(progress.best())

    def schedule(self, best: Schedule) -> None:
        self._tell(_line(SearchLine(best=schedule_json(best.renamed("search")))))


@dataclass
class _Points:
    """Points of a front as they arrive: a limit is done when the next one begins."""

    settings: Settings
    tell: Tell
    limit: float | None = None
    latest: SearchProgress | None = None
    done: int = 0

    def follow(self, limit: float, progress: SearchProgress) -> int:
        """Record the progress under a limit, and return the number of limits that are done."""
        if self.limit != limit and self.latest is not None and self.limit is not None:
            self.done += 1
            schedule = self.latest.best().renamed("search")
            point = _point(self.limit, timed(schedule, self.settings), self.latest.value)
            self.tell(_line(FrontLine(point=point)))
        self.limit, self.latest = limit, progress
        return self.done


def _point(limit: float | None, result: Result, value: float) -> FrontPointReply:
    return FrontPointReply(
        limit=None if limit is None or math.isinf(limit) else limit,
        peak=max(result.peak_activation if result.peak_bytes is None else result.peak_bytes),
        value=value,
        text=schedule_json(result.schedule),
    )


def _front(front: ParetoFront) -> FrontReply:
    return FrontReply(
        memory=front.memory,
        time_unit=front.points[0].result.time_unit,
        points=tuple(
            FrontPointReply(
                limit=point.limit, peak=point.peak, value=point.value, text=schedule_json(point.result.schedule)
            )
            for point in front
        ),
        published=front.published,
        said="; ".join(
            filter(None, (front.gain, front.faster_with_more and f"faster with more: {front.faster_with_more}"))
        ),
    )


def _progress(progress: SearchProgress, share: float | None) -> SearchStatus:
    status = msgspec.convert(progress, SearchStatus, from_attributes=True)
    return status if share is None else msgspec.structs.replace(status, share=share)


def _servable(settings: Settings, placement: str | None) -> Settings:
    """Return the settings. Raises ShapeError if their schedules are too large to search on this server."""
    most = max(DEFAULT_CHUNKS.values()) if placement in (None, AUTO) else DEFAULT_CHUNKS[placement]
    chunks = settings.chunks or most
    ops = 3 * settings.pipeline_ranks(chunks) * chunks * (settings.microbatch_count or 1)
    if ops > MOST_OPS:
        raise ShapeError(
            f"too large to search here: up to {ops:,} ops, and the limit is {MOST_OPS:,}; "
            "'pipeplan search' has no such limit",
            field="ranks",
        )
    return settings


def _keywords(request: SearchIn | FrontIn, settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in given(request.settings)}


def _strategy(name: str) -> str:
    """Return the name of a strategy: a name is never a file here."""
    with at_field("start"):
        return strategy(name).name


def _schedule(file: Any) -> Source:
    schedule = read_file(file)
    if not isinstance(schedule, Schedule):
        raise InputError(f"{file.name} holds a timeline; a search starts from a schedule", field="start")
    return schedule


def _threads() -> int:
    """Return the number of threads of a search: up to four, leaving one core for other requests."""
    return max(1, min(usable_cores() - 1, 4))


def _line(line: Line) -> bytes:
    return as_json(line) + b"\n"
