"""What a search adds to a result's table, and a front, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.searching.decision_words import decided_in_words, judged_in_words
from pipeplan.api.searching.search_words import (
    costs_in_words,
    gain_of,
    gain_of_front,
    limit_in_words,
    placements_in_words,
)
from pipeplan.api.tables.parts import columns, facts, line, sizes
from pipeplan.model import one_line
from pipeplan.readable import Times, percent

if TYPE_CHECKING:
    # A result's table must not load the solver.
    from pipeplan.api.results import Result
    from pipeplan.api.searching.fronts import ParetoFront
    from pipeplan.api.searching.search_record import SearchRecord


_TRANSFERS = {
    "contended": "a link carries one at a time, in the order in which they are sent",
    "blocking": "sends and receives occupy their ranks and meet; the schedule holds them",
}


def search_parts(result: Result) -> tuple[RenderableType, ...]:
    """What a search gained, how it came to its schedule, what it has proven, and on which costs and limit."""
    search = result.search
    assert search is not None
    times = Times.of((search.value, search.bound.value), result.timeline.unit)
    stopped = _uncompiled(search) + (", stopped by the user" if search.interrupted else "")
    tried = "schedule" if search.evaluations == 1 else "schedules"
    rows = [
        ("gain", " ".join(gain_of(result))),
        *_made_small(search, times),
        (
            "found by",
            f"{search.found_by}, of {search.evaluations:,} {tried} tried in {search.seconds:.1f} s{stopped}",
        ),
        *([("placement", placements_in_words(search, times))] if len(search.tried) > 1 else []),
        ("costs", costs_in_words(result.costs, result.schedule.placement)),
        ("memory limit", limit_in_words(result.limits)),
    ]
    if decided := decided_in_words(search.decided):
        rows.insert(1, ("decided", "; ".join(decided)))
    if search.communication != "edge":
        rows.append(("transfers", _TRANSFERS[search.communication]))
    if (judged := judged_in_words(search, result.timeline.unit)) is not None:
        rows.append(judged)
    return (Padding(facts(rows), (1, 0, 0, 0)),)


def _uncompiled(search: SearchRecord) -> str:
    """Return the words on how much of the search ran without compiled kernels; empty if all was compiled."""
    if search.compiled_after is None:
        return " without compiled kernels"
    return f", the first {search.compiled_after:.1f} s without compiled kernels" if search.compiled_after else ""


def _made_small(search: SearchRecord, times: Times) -> list[tuple[str, str]]:
    """What was made small, where that is not the makespan: this and its bound stand among the schedule's figures."""
    if search.objective == "makespan" and search.of == "plan":
        return []
    verdict = "optimal" if search.optimal else f"gap {percent(search.gap)}"
    bound = f"bound {times.text(search.bound.value)} ({search.bound.reason})"
    name = {"plan": "least longest span", "p95": "least p95", "worst": "least worst case"}[search.of]
    return [(name, f"{times.text(search.value)}, {bound}, {verdict}")]


def front_parts(front: ParetoFront) -> tuple[RenderableType, ...]:
    """The front from little memory to much, and the published schedules of the same placement that no other beats."""
    first = front.points[0].result
    unit = first.timeline.unit
    times = Times.of((value for point in front for value in (point.value, _bound_of(point.result))), unit)
    in_unit = f" ({times.unit})" if times.unit else ""
    several = any(point.result.search is not None and len(point.result.search.tried) > 1 for point in front)
    names = ["limit", "peak", f"time{in_unit}", *(["placement"] if several else []), "gain", "over", "gap to\nbound"]
    table = columns(*names, padding=1, least=["gap to\nbound"])
    limits = _memories([point.limit for point in front], in_bytes=front.in_bytes)
    peaks = _memories([point.peak for point in front], in_bytes=front.in_bytes)
    for point, limit, peak in zip(front, limits, peaks, strict=True):
        search = point.result.search
        assert search is not None
        gain = "" if search.gain is None else percent(search.gain)
        over = "none fits" if search.best_published is None else one_line(search.best_published.name)
        verdict = "optimal" if search.optimal else percent(search.gap)
        placed = [search.placement] if several else []
        table.add_row(limit, peak, times.number(point.value), *placed, gain, over, verdict)
    kept = front.best_published
    published = columns("published", "peak", f"time{in_unit}", padding=1)
    for mark, peak in zip(kept, _memories([mark.peak for mark in kept], in_bytes=front.in_bytes), strict=True):
        published.add_row(one_line(mark.name), peak, times.number(mark.value))
    beaten = len(front.published) - len(kept)
    more = [line(f"{beaten} more published schedules need no less memory and are no shorter")] if beaten else []
    said = [("gain", gain_of_front(front)), ("costs", costs_in_words(first.costs, first.schedule.placement))]
    heading = Text("memory against time", style="bold")
    return heading, Padding(facts(said), (1, 0)), table, Text(""), published, *more


def _bound_of(result: Result) -> float:
    assert result.search is not None
    return result.search.bound.value


def _memories(values: Sequence[float | None], *, in_bytes: bool) -> list[str]:
    """Memory as people read it, all in one form; none where there is no limit."""
    given = [0.0 if value is None else value for value in values]
    form = Times.of(given, "")
    texts = sizes(given) if in_bytes else [form.number(value) for value in given]
    return ["none" if value is None else text for value, text in zip(values, texts, strict=True)]
