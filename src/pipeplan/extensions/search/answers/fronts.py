"""Memory against time: the best schedule under each of a row of memory limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

import msgspec

from pipeplan.answers.answers import Listing
from pipeplan.answers.headlined import (
    BRIEF,
    HeadlinedAnswer,
    ShownOptions,
    more_details,
    more_rows,
)
from pipeplan.answers.parts import MOST_ROWS, columns, facts, line
from pipeplan.answers.simulating.result import Result
from pipeplan.extensions.search import FrontMark, undominated_marks
from pipeplan.extensions.search.answers.search_record import (
    PublishedSchedule,
    SearchedResult,
    SearchRecord,
    searched_figures,
)
from pipeplan.extensions.search.answers.search_words import NOTHING, costs_in_words
from pipeplan.foundation.readable import Times, memory_text, percent, size_texts
from pipeplan.foundation.records import Evidence, Record, holding, replaced
from pipeplan.model import needs_in_words, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.drawing.front import FrontView
    from pipeplan.formats import Content, Format


class FrontPoint(Record, frozen=True, kw_only=True, eq=False):
    """The best schedule found under one memory limit.

    Attributes
    ----------
    limit
        Memory limit of every rank: bytes including static memory, or activations; None without a limit.
    peak
        Peak memory of the fullest rank.
    value
        The objective.
    result
        The schedule, with the story of its search.
    """

    limit: float | None
    peak: float
    value: float
    figures: SearchedResult = msgspec.field(name="result")

    """JSON of ``result``."""

    result = Evidence[Result]()

    @property
    def search(self) -> SearchRecord:
        """Figures of the search that found the schedule."""
        search: SearchRecord = self.result.search
        return search

    @property
    def best_published(self) -> PublishedSchedule | None:
        """Best published schedule under the limit: of any placement, or of this one if the shape is too large to try all."""
        return self.search.best_published_anywhere or self.search.best_published

    @property
    def gain(self) -> float | None:
        """Relative reduction of the objective compared with the best published schedule; None without one."""
        return self.search.best_gain


def front_point(*, limit: float | None, peak: float, value: float, result: Result) -> FrontPoint:
    """Return a point of a front with its result."""
    figures = SearchedResult(**searched_figures(result))
    return holding(FrontPoint(limit=limit, peak=peak, value=value, figures=figures), result=result)


@final
class ParetoFront(HeadlinedAnswer, Listing[FrontPoint], frozen=True, kw_only=True, eq=False):
    """Time against memory, from the least feasible limit to the memory limit, or to none: memory rises and time falls.

    Iteration gives the points; ``to_frame()`` has a row per point. ``headline`` says what memory buys.

    ``published`` are the published schedules of the searched
    placements that need nothing but what is allowed, by memory.
    """

    _listed = "points"
    name_attribute = ""

    headline: str
    memory: Literal["bytes", "activations"]
    points: tuple[FrontPoint, ...]
    published: tuple[FrontMark, ...]

    @property
    def in_bytes(self) -> bool:
        """True if memory is in bytes; else it is in activations."""
        return self.memory == "bytes"

    @property
    def best_published(self) -> tuple[FrontMark, ...]:
        """The published schedules that are faster than every one of less memory; by memory."""
        return tuple(undominated_marks(self.published))

    def front_view(self) -> FrontView:
        """Return the view of the front; memory in GiB if it is in bytes."""
        from pipeplan.drawing.front import FrontView

        scale = 2.0**30 if self.in_bytes else 1.0
        first = self.points[0].result
        placement = first.schedule.placement
        shape = f"{placement.ranks} ranks, {placement.stages} stages ({placement.name})"
        objective = {"makespan": "makespan", "span": "longest span"}[self.points[0].search.objective.name]
        return FrontView(
            title=f"{shape}, {first.schedule.microbatches} microbatches",
            memory_label="peak memory (GiB)" if self.in_bytes else "peak memory (activations)",
            time_label=objective,
            points=[(point.peak / scale, point.value) for point in self.points],
            bounds=[point.search.objective.lower_bound for point in self.points],
            unit=first.timeline.unit,
            about=first.costs.name,
            marks=[(mark.schedule, mark.peak / scale, mark.value) for mark in self.published],
        )

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the record and the picture."""
        return {"record": lambda _: self.to_dict(), "front picture": lambda _: self.front_view()}

    @property
    def gain(self) -> str:
        """Under which limit the front gains the most over published schedules, and under how many limits nothing."""
        clauses = []
        if gains := [(point.gain, point) for point in self if point.gain is not None]:
            gain, point = max(gains, key=lambda share: share[0])
            if gain > NOTHING:
                nothing = sum(share <= NOTHING for share, _ in gains)
                limit = (
                    "without a limit"
                    if point.limit is None
                    else f"at a limit of {memory_text(point.limit, in_activations=not self.in_bytes)}"
                )
                over = point.best_published
                less = f"; none under {nothing} of {len(self)} limits" if nothing else ""
                clauses.append(
                    f"up to {percent(gain)} over the best published schedule ({over and over.schedule}, {limit}){less}"
                )
            else:
                clauses.append("none over the best published schedules")
        if alone := sum(point.best_published is None for point in self):
            clauses.append(f"under {alone} of {len(self)} limits no published schedule fits")
        return "; ".join(clauses)

    @property
    def faster_with_more(self) -> str:
        """Published schedules that need more than is allowed, with the number of points than which they are faster."""
        faster = Counter((more.schedule, more.needs) for point in self for more in point.search.faster_with_more)
        return "; ".join(
            f"{schedule}, needs {needs_in_words(needs)}, under {number} of {len(self)} limits"
            for (schedule, needs), number in faster.most_common()
        )

    def _below(self, shown: ShownOptions = BRIEF) -> Iterable[RenderableType]:
        """Return the front from little memory to much, and the published schedules that no other beats."""
        first = self.points[0].result
        times = Times.of(
            (value for front_point in self for value in (front_point.value, front_point.search.objective.lower_bound)),
            first.timeline.unit,
        )
        in_unit = f" ({times.unit})" if times.unit else ""
        several = any(len(point.search.placements) > 1 for point in self)
        names = [
            "limit",
            *(["peak"] if shown.verbose else []),
            f"time{in_unit}",
            *(["placement"] if several else []),
            "gain",
            "gap\n(placement)",
        ]
        table = columns(*names, padding=1, least=["gap\n(placement)"])
        limits = self._memories([point.limit for point in self])
        peaks = self._memories([point.peak for point in self])
        rows = list(zip(self, limits, peaks, strict=True))
        listed = rows if shown.all else rows[:MOST_ROWS]
        for point, limit, peak in listed:
            search = point.search
            over = None if point.best_published is None else one_line(point.best_published.schedule)
            gain = "none fits" if point.gain is None else f"{percent(point.gain)} over {over}"
            held = [peak] if shown.verbose else []
            verdict = "optimal" if search.optimal else percent(search.objective.gap)
            placed = [search.placement] if several else []
            table.add_row(limit, *held, times.number(point.value), *placed, gain, verdict)
        yield from (line(), table)
        yield from more_rows(len(rows) - len(listed), "more limit")
        if faster := self.faster_with_more:
            yield line(f"Faster with more: {faster}.")
        if shown.verbose:
            yield from self._published(in_unit, times)
            costs = ("costs", costs_in_words(first.costs, first.schedule.placement))
            yield facts([("gain", self.gain), costs], above=1)
        yield from more_details(
            ["the peaks", "the published schedules", "the gain under each limit", "the costs"], shown
        )

    def _published(self, in_unit: str, times: Times) -> Iterator[RenderableType]:
        """Return the published schedules that no other beats."""
        kept = self.best_published
        published = columns("published", "peak", f"time{in_unit}", padding=1)
        for mark, peak in zip(kept, self._memories([mark.peak for mark in kept]), strict=True):
            published.add_row(one_line(mark.schedule), peak, times.number(mark.value))
        yield from (line(), published)
        if beaten := len(self.published) - len(kept):
            yield line(f"{beaten} more published schedules are dominated by these")

    def _memories(self, values: Sequence[float | None]) -> list[str]:
        """Return memory in one unit, and ``none`` if there is no limit."""
        numbers = [0.0 if value is None else value for value in values]
        form = Times.of(numbers, "")
        texts = size_texts(numbers) if self.in_bytes else [form.number(value) for value in numbers]
        return ["none" if value is None else text for value, text in zip(values, texts, strict=True)]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "limit": point.limit,
                "peak": point.peak,
                "value": point.value,
                "found_by": point.search.found_by,
                "lower_bound": point.search.objective.lower_bound,
                "optimal": point.search.optimal,
                "best_published": None if point.best_published is None else point.best_published.schedule,
                "gain": point.gain,
            }
            for point in self.points
        ]


def front_of_points(
    points: Sequence[FrontPoint], published: Sequence[FrontMark], memory: Literal["bytes", "activations"]
) -> ParetoFront:
    """Return a front with its headline."""
    front = ParetoFront(headline="", memory=memory, points=tuple(points), published=tuple(published))
    return replaced(front, headline=_headline(front))


def _headline(front: ParetoFront) -> str:
    """Return between which peaks the time falls, from what to what, and the largest gain over published schedules."""
    least, most = front.points[0], front.points[-1]
    times = Times.of((least.value, most.value), least.result.timeline.unit)
    low, high = (memory_text(point.peak, in_activations=not front.in_bytes) for point in (least, most))
    gain = max((point.gain for point in front if point.gain is not None), default=None)
    shorter = "" if gain is None else ", no shorter than the best published schedules"
    if gain is not None and gain > NOTHING:
        shorter = f", up to {percent(gain)} shorter than the best published schedule"
    step = "longest span" if least.search.objective.name == "span" else "step"
    if len(front) == 1:
        return f"With {low} the {step} takes {times.text(least.value)}{shorter}"
    return f"From {low} to {high} the {step} falls from {times.text(least.value)} to {times.text(most.value)}{shorter}"
