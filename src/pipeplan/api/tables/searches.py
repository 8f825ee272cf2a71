"""What a search adds to a result's table, and a front, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.tables.parts import columns, facts, number, size
from pipeplan.model import one_line

if TYPE_CHECKING:
    # A result's table must not load the solver.
    from pipeplan.api.fronts import ParetoFront
    from pipeplan.api.results import SearchRecord

_OBJECTIVES = {"makespan": "makespan", "span": "longest span"}


def search_parts(search: SearchRecord) -> tuple[RenderableType, ...]:
    """How a search came to a schedule, and what it has proven."""
    verdict = (
        "optimal: no schedule is better" if search.optimal else f"at most {search.gap:.2%} above the best possible"
    )
    stopped = ", stopped by the user" if search.interrupted else ""
    rows = [
        ("search for the least", f"{_OBJECTIVES[search.objective]}: {number(search.value)}, {verdict}"),
        *_bound(search),
        ("found by", search.found_by),
        ("tried", f"{search.evaluations:,} schedules in {search.seconds:.1f} s{stopped}"),
    ]
    if search.jitter is not None:
        rows.append(("under jitter", f"mean {number(search.jitter.mean)}, p95 {number(search.jitter.p95)}"))
    return (Padding(facts(rows), (1, 0, 0, 0)),)


def _bound(search: SearchRecord) -> list[tuple[str, str]]:
    """The bound on a span; the one on the makespan stands among the schedule's figures."""
    if search.objective == "makespan":
        return []
    return [("bound on the span", f"{number(search.bound.value)} ({search.bound.reason})")]


def front_parts(front: ParetoFront) -> tuple[RenderableType, ...]:
    """The front from little memory to much, and the published schedules of the same placement."""
    memory = size if front.in_bytes else number
    table = columns("found by", "limit", "peak", "time", "bound", "gap", padding=1)
    for point in front.points:
        search = point.result.search
        assert search is not None
        limit = "none" if point.limit is None else memory(point.limit)
        verdict = "optimal" if search.optimal else f"{search.gap:.2%}"
        figures = memory(point.peak), number(point.value), number(search.bound.value)
        table.add_row(one_line(search.found_by), limit, *figures, verdict)
    published = columns("published", "peak", "time", padding=1)
    for mark in front.published:
        published.add_row(one_line(mark.name), memory(mark.peak), number(mark.value))
    return Text("memory against time\n", style="bold"), table, Text(""), published
