"""What the workers do for the panels that search: from a request to the lines of the reply."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from pipeplan.api import ParetoFront, Result, decisions_of, gain_of, timed
from pipeplan.api.searching.options import AUTO
from pipeplan.api.searching.problems import DEFAULT_CHUNKS
from pipeplan.api.searching.searches import pareto, search, usable_cores
from pipeplan.costs import Settings
from pipeplan.errors import InputError, PipeplanError, ShapeError
from pipeplan.formats import schedule_json
from pipeplan.model import Schedule
from pipeplan.solver import SearchProgress
from pipeplan.strategies import strategy
from pipeplan.web.asked_schedules import Meant, read_file
from pipeplan.web.faults import fault
from pipeplan.web.json_answers import as_json
from pipeplan.web.records import (
    FrontLine,
    FrontPointReply,
    FrontReply,
    PublishedValue,
    SearchLine,
    SearchReply,
    SearchStatus,
)
from pipeplan.web.search_requests import FrontIn, SearchIn

MOST_OPS = 150_000
"""Ops of a schedule that is searched for here."""

EVERY = 0.25
"""Seconds between two lines on how far a search is."""

EVERY_SCHEDULE = 1.0
"""Seconds between two of its schedules."""

Line = SearchLine | FrontLine
Tell = Callable[[bytes], None]


def make_search(question: SearchIn, tell: Tell) -> None:
    """Search, telling lines of JSON: ``progress`` and ``best`` as they come, then ``found``; or at once the ``errors``."""
    teller = _Teller(tell)
    try:
        settings = _servable(question.settings.settings(), question.placement)
        result = search(
            placement=question.placement,
            objective=question.objective,
            seconds=question.seconds,
            decide=question.decide,
            start=[*map(_strategy, question.start), *map(_schedule, question.files)],
            workers=_threads(),
            progress=teller.progress,
            **_given(question, settings),
        )
    except PipeplanError as error:
        tell(_line(SearchLine(errors=(fault(error),))))
        return
    teller.schedule(result.schedule)
    record = result.search
    assert record is not None
    sentences = [*gain_of(record, result.timeline.unit), *decisions_of(record)]
    found = SearchReply(**msgspec.structs.asdict(result), said=tuple(sentences))
    tell(_line(SearchLine(found=found)))


def make_front(question: FrontIn, tell: Tell) -> None:
    """Search under several limits, telling ``progress`` and each ``point`` as they come, then ``front``; or ``errors``."""
    teller = _Teller(tell)
    points = _Points(question.settings.settings(), tell)

    def progress(limit: float, found: SearchProgress) -> None:
        done = points.follow(limit, found)
        teller.progress(found, share=min((done + found.share) / question.points, 1.0))

    try:
        settings = _servable(question.settings.settings(), question.placement)
        front = pareto(
            points=question.points,
            placement=question.placement,
            objective=question.objective,
            seconds=question.seconds,
            workers=_threads(),
            progress=progress,
            **_given(question, settings),
        )
    except PipeplanError as error:
        tell(_line(FrontLine(errors=(fault(error),))))
        return
    tell(_line(FrontLine(front=_front(front))))


class _Teller:
    """Tells how far a search is, and its best schedule, each not too often."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told = self._told_schedule = -math.inf
        self._value = math.inf

    def progress(self, found: SearchProgress, share: float | None = None) -> None:
        """Tell how far it is."""
        now = time.monotonic()
        if now - self._told >= EVERY:
            self._told = now
            self._tell(_line(SearchLine(progress=_progress(found, share))))
        if share is None and found.value < self._value and now - self._told_schedule >= EVERY_SCHEDULE:
            self._told_schedule, self._value = now, found.value
            self.schedule(found.best())

    def schedule(self, best: Schedule) -> None:
        """Tell a schedule."""
        self._tell(_line(SearchLine(best=schedule_json(best.renamed("search")))))


@dataclass
class _Points:
    """The points of a front as they come: a limit is done when the next one begins."""

    settings: Settings
    tell: Tell
    limit: float | None = None
    latest: SearchProgress | None = None
    done: int = 0

    def follow(self, limit: float, found: SearchProgress) -> int:
        """Take note of how far a limit is; gives how many are done."""
        if self.limit != limit and self.latest is not None and self.limit is not None:
            self.done += 1
            schedule = self.latest.best().renamed("search")
            point = _point(self.limit, timed(schedule, self.settings), self.latest.value)
            self.tell(_line(FrontLine(point=point)))
        self.limit, self.latest = limit, found
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
                limit=each.limit, peak=each.peak, value=each.value, text=schedule_json(each.result.schedule)
            )
            for each in front
        ),
        published=front.published,
        said=front.gain,
    )


def _progress(found: SearchProgress, share: float | None) -> SearchStatus:
    published = found.published
    return SearchStatus(
        share=found.share if share is None else share,
        value=found.value,
        bound=found.bound,
        found_by=found.found_by,
        evaluations=found.evaluations,
        seconds=found.seconds,
        published=None if published is None else PublishedValue(name=published.name, value=published.value),
    )


def _servable(settings: Settings, placement: str) -> Settings:
    """The settings, where what is searched for is not too large here. Raises ShapeError."""
    most = max(DEFAULT_CHUNKS.values()) if placement == AUTO else DEFAULT_CHUNKS[placement]
    chunks = settings.chunks or most
    ops = 3 * settings.pipeline_ranks(chunks) * chunks * (settings.microbatches or 1)
    if ops > MOST_OPS:
        raise ShapeError(
            f"too large to search here: up to {ops:,} ops, and the limit is {MOST_OPS:,}; "
            "'pipeplan search' has no such limit",
            field="ranks",
        )
    return settings


def _given(question: SearchIn | FrontIn, settings: Settings) -> dict[str, Any]:
    """The settings that somebody gave, as keywords."""
    return {name: getattr(settings, name) for name in question.settings.model_dump(exclude_none=True, warnings=False)}


def _strategy(name: str) -> str:
    """A name that is a strategy's: a name is never a file here."""
    try:
        return strategy(name).name
    except PipeplanError as error:
        error.field = "start"
        raise


def _schedule(file: Any) -> Meant:
    found = read_file(file)
    if not isinstance(found, Schedule):
        raise InputError(f"{file.name} holds a timeline; a search starts from a schedule", field="start")
    return found


def _threads() -> int:
    """All cores but one, which the page's other questions have; a few are enough."""
    return max(1, min(usable_cores() - 1, 4))


def _line(line: Line) -> bytes:
    return as_json(line) + b"\n"
