"""The answer of a search for a terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding

from pipeplan.cli.tables import facts, number, result_parts
from pipeplan.workbench.searching import SearchResult


def search_parts(result: SearchResult) -> tuple[RenderableType, ...]:
    """The schedule's figures, and how the search came to it."""
    found = result.found
    objective = {"makespan": "makespan", "span": "longest span"}[found.instance.objective]
    verdict = "optimal: no schedule is better" if found.optimal else f"at most {found.gap:.2%} above the best possible"
    rows = [
        ("search for the least", f"{objective}: {number(found.value)}, {verdict}"),
        ("bound", f"{number(found.bound.value)} ({found.bound.reason})"),
        ("found by", found.found_by),
        ("tried", f"{found.evaluations:,} schedules in {found.seconds:.1f} s" + _stopped(result)),
    ]
    if found.robustness is not None:
        steady = found.robustness
        rows.append(("under jitter", f"mean {number(steady.mean)}, p95 {number(steady.p95)}"))
    return *result_parts(result), Padding(facts(rows), (1, 0, 0, 0))


def _stopped(result: SearchResult) -> str:
    return ", stopped by the user" if result.found.interrupted else ""
