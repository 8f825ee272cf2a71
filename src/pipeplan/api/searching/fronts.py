"""Memory against time: the best schedule under each of a row of memory limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from pipeplan.api.presentable import Presentable
from pipeplan.api.results import Result
from pipeplan.drawing import View
from pipeplan.readable import Times

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.drawing.front import FrontView
    from pipeplan.formats import Content, Format
    from pipeplan.solver import Mark


@dataclass(frozen=True, eq=False)
class FrontPoint:
    """The best schedule found under one memory limit.

    Attributes
    ----------
    limit
        What every rank may hold: in bytes with everything static included, or in activations; None without a limit.
    peak
        What the worst rank does hold.
    value
        The objective.
    result
        The schedule, with the story of its search.
    """

    limit: float | None
    peak: float
    value: float
    result: Result


@final
@dataclass(frozen=True, eq=False)
class ParetoFront(Presentable):
    """Time against memory, from the least feasible limit to none.

    Iteration gives the points; ``to_frame()`` has a row a point.

    Attributes
    ----------
    points
        Memory rises and time falls.
    published
        The published schedules of the same placement: name, peak of the worst rank, objective; by memory.
    in_bytes
        Whether memory is in bytes; else in activations.
    """

    points: tuple[FrontPoint, ...]
    published: tuple[Mark, ...]
    in_bytes: bool

    @property
    def best_published(self) -> tuple[Mark, ...]:
        """The published schedules that are faster than every one of less memory; by memory."""
        kept: list[Mark] = []
        for mark in self.published:
            if not kept or mark.value < kept[-1].value:
                kept.append(mark)
        return tuple(kept)

    def __iter__(self) -> Iterator[FrontPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def views(self) -> Sequence[View]:
        """None: its picture is that of :meth:`front_view`."""
        return []

    def front_view(self) -> FrontView:
        """What a picture of the front shows; memory in GiB where it is in bytes."""
        from pipeplan.drawing.front import FrontView

        scale = 2.0**30 if self.in_bytes else 1.0
        first = self.points[0].result
        assert first.search is not None
        objective = {"makespan": "makespan", "span": "longest span"}[first.search.objective]
        unit = first.timeline.unit
        return FrontView(
            title=_title(first),
            memory_label="peak memory (GiB)" if self.in_bytes else "peak memory (activations)",
            time_label=objective,
            points=[(point.peak / scale, point.value) for point in self.points],
            bounds=[point.result.search.bound.value for point in self.points if point.result.search is not None],
            unit=unit,
            about=first.costs.name,
            marks=[(mark.name, mark.peak / scale, mark.value) for mark in self.published],
        )

    def to_dict(self) -> dict[str, Any]:
        """``points``, each with its limit, peak, objective and the JSON of its result; ``published`` beside them."""
        return {
            "memory": "bytes" if self.in_bytes else "activations",
            "points": [
                {
                    "limit": point.limit,
                    "peak": point.peak,
                    "value": point.value,
                    "result": point.result.to_dict(),
                }
                for point in self.points
            ],
            "published": [{"schedule": mark.name, "peak": mark.peak, "value": mark.value} for mark in self.published],
        }

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Its record and its picture."""
        return {"record": lambda _: self.to_dict(), "front picture": lambda _: self.front_view()}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.searches import front_parts  # late: tables load rich

        return front_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        rows = []
        for point in self.points:
            search = point.result.search
            assert search is not None
            published = search.best_published
            rows.append(
                {
                    "limit": point.limit,
                    "peak": point.peak,
                    "value": point.value,
                    "found_by": search.found_by,
                    "lower_bound": search.bound.value,
                    "optimal": search.optimal,
                    "best_published": None if published is None else published.name,
                    "gain": search.gain,
                }
            )
        return rows

    def __repr__(self) -> str:
        least, most = self.points[0], self.points[-1]
        times = Times.of((least.value, most.value), least.result.timeline.unit)
        memory = Times.of((least.peak, most.peak), "")
        peaks = f"{memory.number(least.peak)} to {memory.number(most.peak)} activations"
        if self.in_bytes:
            peaks = f"{least.peak / 2**30:.1f} to {most.peak / 2**30:.1f} GiB"
        longest, shortest = times.number(least.value), times.text(most.value)
        return f"<ParetoFront of {len(self.points)} points: {peaks}, {longest} to {shortest}>"


def _title(result: Result) -> str:
    placement = result.schedule.placement
    shape = f"{placement.ranks} ranks, {placement.stages} stages ({placement.name})"
    return f"{shape}, {result.schedule.microbatches} microbatches"
