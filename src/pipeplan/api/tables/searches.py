"""The answer of a search for a terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.searches import SearchResult
from pipeplan.api.tables.parts import columns, facts, number, size
from pipeplan.api.tables.results import result_parts
from pipeplan.solver.front import Front
from pipeplan.solver.result import Found


def search_parts(result: SearchResult) -> tuple[RenderableType, ...]:
    """The schedule's figures, and how the search came to it."""
    found = result.found
    objective = {"makespan": "makespan", "span": "longest span"}[found.problem.objective]
    verdict = (
        "optimal: no schedule is better"
        if found.optimal
        else f"at most {found.optimality_gap:.2%} above the best possible"
    )
    rows = [
        ("search for the least", f"{objective}: {number(found.value)}, {verdict}"),
        *_bound(found),
        ("found by", found.found_by),
        ("tried", f"{found.evaluations:,} schedules in {found.seconds:.1f} s" + _stopped(result)),
    ]
    if found.robustness is not None:
        steady = found.robustness
        rows.append(("under jitter", f"mean {number(steady.mean)}, p95 {number(steady.p95)}"))
    return *result_parts(result), Padding(facts(rows), (1, 0, 0, 0))


def _bound(found: Found) -> list[tuple[str, str]]:
    """The bound on a span; the one on the makespan stands among the schedule's figures."""
    if found.problem.objective == "makespan":
        return []
    return [("bound on the span", f"{number(found.bound.value)} ({found.bound.reason})")]


def _stopped(result: SearchResult) -> str:
    return ", stopped by the user" if result.found.interrupted else ""


def front_parts(front: Front) -> tuple[RenderableType, ...]:
    """The front from little memory to much, and the published schedules of the same placement."""
    memory = size if front.in_bytes else number
    table = columns("found by", "limit", "peak", "time", "bound", "gap", padding=1)
    for point in front.points:
        found = point.result
        limit = "none" if point.limit == float("inf") else memory(point.limit)
        verdict = "optimal" if found.optimal else f"{found.optimality_gap:.2%}"
        figures = memory(point.peak), number(point.value), number(found.bound.value)
        table.add_row(found.found_by, limit, *figures, verdict)
    marks = columns("published", "peak", "time", padding=1)
    for mark in front.marks:
        marks.add_row(mark.name, memory(mark.peak), number(mark.value))
    return Text("memory against time\n", style="bold"), table, Text(""), marks
