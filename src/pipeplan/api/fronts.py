"""Memory against time: a front from settings, as a record, a picture, a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeplan.api.searches import SearchOptions, SearchResult, named, problem_of
from pipeplan.costs import Settings
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import replacing, write_text
from pipeplan.solver.front import Front, Point, pareto
from pipeplan.solver.result import Found, SearchProgress
from pipeplan.strict_json import json_text

if TYPE_CHECKING:
    from pipeplan.drawing.front import FrontView

FRONT_ENDINGS = (".json", ".png", ".svg", ".pdf")
"""The files that a front is written to."""


def pareto_with(
    settings: Settings,
    options: SearchOptions,
    *,
    points: int = 8,
    progress: Callable[[float, SearchProgress], None] | None = None,
) -> Front:
    """Time against memory, from the least feasible cap to none. Raises what :func:`search_with` does."""
    if options.start or options.jitter is not None:
        raise InputError("a front takes neither --start nor --jitter: it starts from everything that fits")
    return pareto(
        problem_of(replace(settings, memory_limit=None), options),
        points=points,
        seconds=options.seconds,
        evaluations=options.evaluations,
        seed=options.seed,
        workers=options.threads,
        progress=progress,
    )


def front_record(front: Front) -> dict[str, Any]:
    """A front as plain lists and numbers: each point with its cap, peak and the JSON of its result."""
    return {
        "memory": "bytes" if front.in_bytes else "activations",
        "points": [
            {"limit": None if point.limit == float("inf") else point.limit, "peak": point.peak, **_point(point)}
            for point in front.points
        ],
        "published": [{"schedule": mark.name, "peak": mark.peak, "value": mark.value} for mark in front.marks],
    }


def _point(point: Point) -> dict[str, Any]:
    result = SearchResult(named(point.result), point.result.problem.limits, found=point.result)
    return {"value": point.value, "result": result.to_dict()}


def front_view(front: Front) -> FrontView:
    """What a picture of a front shows; memory in GiB where it is in bytes."""
    from pipeplan.drawing.front import FrontView

    scale = 2.0**30 if front.in_bytes else 1.0
    first = front.points[0].result
    objective = {"makespan": "makespan", "span": "longest span"}[first.problem.objective]
    unit = first.timeline.unit
    return FrontView(
        title=_title(first),
        memory_label="peak memory (GiB)" if front.in_bytes else "peak memory (activations)",
        time_label=f"{objective} ({unit})" if unit else objective,
        points=[(point.peak / scale, point.value) for point in front.points],
        bounds=[point.result.bound.value for point in front.points],
        marks=[(mark.name, mark.peak / scale, mark.value) for mark in front.marks],
    )


def _title(result: Found) -> str:
    placement = result.problem.placement
    shape = f"{placement.ranks} ranks, {placement.stages} stages ({placement.name})"
    return f"{shape}, {result.schedule.microbatches} microbatches"


def save_front_file(front: Front, path: Path) -> None:
    """Write a front as JSON or as a picture (.png, .svg, .pdf), as a whole or not at all.

    Raises
    ------
    UnknownNameError
        For another ending.
    InputError
        If the file cannot be written.
    """
    ending = path.suffix.lower()
    if ending == ".json":
        write_text(path, json_text(front_record(front), indent=1) + "\n")
        return
    if ending not in FRONT_ENDINGS:
        raise UnknownNameError("ending of a front's output", ending or path.name, FRONT_ENDINGS)
    from pipeplan.drawing.front import save_front

    with replacing(path) as temporary:
        save_front(front_view(front), temporary)
