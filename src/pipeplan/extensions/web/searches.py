"""Searches: what the app shows of the extension ``search``. A request becomes the lines of its reply."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from fastapi import FastAPI
from fastapi.responses import Response
from msgspec import UNSET, Meta, UnsetType, field

from pipeplan.answers import Result, timed
from pipeplan.costs import Range, Settings
from pipeplan.extensions.search import CHOICES, FrontMark, Published, SearchProgress
from pipeplan.extensions.search.answers.fronts import ParetoFront
from pipeplan.extensions.search.answers.options import AUTO, ParetoOptions, SearchOptions
from pipeplan.extensions.search.answers.problems import DEFAULT_CHUNKS
from pipeplan.extensions.search.answers.search_record import SearchedResult, searched_figures
from pipeplan.extensions.search.answers.search_words import decisions_of, gain_of
from pipeplan.extensions.search.answers.searches import pareto, search, usable_cores
from pipeplan.extensions.web.faults import at_field, json_line
from pipeplan.extensions.web.records import Fault
from pipeplan.extensions.web.requests import SECONDS, FileIn, SettingsRequest, given, served
from pipeplan.extensions.web.routes import AppPart, body_of, in_lines, post
from pipeplan.extensions.web.schedules import Source, read_file
from pipeplan.extensions.web.streams import Sessions, streamed
from pipeplan.extensions.web.workers import Pools, Tell
from pipeplan.formats import schedule_json
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.foundation.records import Record
from pipeplan.model import Schedule
from pipeplan.strategies import strategy

MOST_OPS = 150_000
"""Maximum number of ops of a searched schedule on this server."""

EVERY = 0.25
"""Seconds between two lines with the progress of a search."""

EVERY_SCHEDULE = 1.0
"""Seconds between two schedules of a search."""

_PLACEMENTS = {"kind": "choice", "choices": (AUTO, *DEFAULT_CHUNKS)}


class _SearchRequest(SettingsRequest, frozen=True, kw_only=True):
    session: Annotated[str, Meta(max_length=80, description="Any name of a page, which has one search at a time.")] = ""
    allow: list[str] | None = None
    placement: str | None = None
    objective: str | None = None

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of a search, or of a Pareto front."""
        return given({name: getattr(self, name) for name in self.options})


class SearchIn(_SearchRequest, frozen=True, kw_only=True):
    """Search for a better schedule under the memory limit of its settings."""

    options = served(
        SearchOptions,
        ("allow", "placement", "layout", "objective", "seconds", "decide", "start"),
        placement=_PLACEMENTS,
        decide={"choices": CHOICES},
        seconds=SECONDS,
    )

    layout: str | None = None
    seconds: float | None = 10.0
    decide: list[str] | None = None
    start: list[str] | None = None
    files: Annotated[list[FileIn], Meta(max_length=4, description="Further schedules to start from, as files.")] = (
        field(default_factory=list)
    )


class FrontIn(_SearchRequest, frozen=True, kw_only=True):
    """Search under each of several memory limits, and without a limit."""

    options = served(
        ParetoOptions,
        ("allow", "placement", "objective", "seconds", "points"),
        placement=_PLACEMENTS,
        seconds=SECONDS,
        points={"range": Range(2, most=12)},
    )

    seconds: float | None = 30.0
    points: int = 6


class SearchStatus(Record, frozen=True, kw_only=True):
    """Progress of a search: the share of its budget that is spent, its best value and its lower bound so far."""

    share: float
    value: float
    bound: float
    found_by: str
    evaluations: int
    seconds: float
    published: Published | None


class SearchReply(SearchedResult, frozen=True, kw_only=True):
    """Result of a search, and sentences about its gain over published schedules."""

    said: tuple[str, ...]


class SearchLine(Record, frozen=True, kw_only=True):
    """One line of a search: ``progress``, the ``best`` schedule so far as pipeplan's JSON, the result, or ``errors``."""

    progress: SearchStatus | UnsetType = UNSET
    best: str | UnsetType = UNSET
    found: SearchReply | UnsetType = UNSET
    errors: tuple[Fault, ...] | UnsetType = UNSET


class FrontPointReply(Record, frozen=True, kw_only=True):
    """Best schedule under one limit, as pipeplan's JSON; ``limit`` is null without one."""

    limit: float | None
    peak: float
    value: float
    text: str


class FrontReply(Record, frozen=True, kw_only=True):
    """Pareto front of time against memory, published schedules, and the gain over these."""

    memory: Literal["bytes", "activations"]
    time_unit: str
    points: tuple[FrontPointReply, ...]
    published: tuple[FrontMark, ...]
    said: str


class FrontLine(Record, frozen=True, kw_only=True):
    """One line of a search under several limits: ``progress``, each ``point``, then the ``front``; or ``errors``."""

    progress: SearchStatus | UnsetType = UNSET
    best: str | UnsetType = UNSET
    point: FrontPointReply | UnsetType = UNSET
    front: FrontReply | UnsetType = UNSET
    errors: tuple[Fault, ...] | UnsetType = UNSET


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
    tell(json_line(SearchLine(found=reply)))


def make_front(request: FrontIn, tell: Tell) -> None:
    """Search under several limits; send ``progress`` and each ``point``, then the ``front``."""
    teller = _Teller(tell)
    points = _Points(request.costs(), tell)

    def progress(limit: float, search: SearchProgress) -> None:
        done = points.follow(limit, search)
        teller.progress(search, share=min((done + search.share) / request.points, 1.0))

    settings = _servable(request.costs(), request.placement)
    front = pareto(**request.keywords(), workers=_threads(), progress=progress, **_keywords(request, settings))
    tell(json_line(FrontLine(front=_front(front))))


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
            self._tell(json_line(SearchLine(progress=_progress(progress, share))))
        if share is None and progress.value < self._value and now - self._told_schedule >= EVERY_SCHEDULE:
            self._told_schedule, self._value = now, progress.value
            self.schedule(progress.best())

    def schedule(self, best: Schedule) -> None:
        self._tell(json_line(SearchLine(best=schedule_json(best.renamed("search")))))


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
            self.tell(json_line(FrontLine(point=point)))
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


def _add_routes(app: FastAPI, pools: Pools) -> None:
    sessions = Sessions()

    @post(app, "/api/search", SearchIn, in_lines(SearchLine), "Search for a better schedule")
    async def search(request: Annotated[SearchIn, body_of(SearchIn)]) -> Response:
        """Search under the memory limit. Answers lines of JSON: `progress` and the `best` so far, then `found`.

        Closing the connection ends the search; the server keeps nothing of it.
        """
        return await streamed(sessions.alone(request.session, pools.searches.stream(make_search, request)))

    @post(app, "/api/front", FrontIn, in_lines(FrontLine), "Time against memory")
    async def front(request: Annotated[FrontIn, body_of(FrontIn)]) -> Response:
        """Search under several memory limits. Answers lines of JSON: `progress`, each `point`, then the `front`.

        Closing the connection ends the search; the server keeps nothing of it.
        """
        return await streamed(sessions.alone(request.session, pools.searches.stream(make_front, request)))


PART = AppPart(add_routes=_add_routes, requests=(FrontIn, SearchIn), replies=(FrontLine, SearchLine))
