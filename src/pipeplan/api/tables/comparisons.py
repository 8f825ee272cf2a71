"""A comparison as a table for a terminal, with how short any schedule can be, and what would change the order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.comparing.comparisons import Comparison
from pipeplan.api.comparing.leads import Lead, peak_of
from pipeplan.api.results import Result
from pipeplan.api.tables.parts import columns, line, size, sizes
from pipeplan.api.tables.results import activations_of, notes
from pipeplan.model import counted, one_line, tolerances
from pipeplan.readable import Times, change, percent

_SPAN, _WORK, _CHUNKS, _ANY, _OWN, _IDLE = (
    "idle/\nspan",
    "idle/\nwork",
    "chunks",
    "gap\nany",
    "gap\nown",
    "idle/\ntotal",
)
_LEAST = (_SPAN, _WORK, _CHUNKS, _ANY, _OWN, _IDLE)
"""The columns that narrow terminals do without, in this order."""

_MOST_ROWS = 200
"""Schedules that are listed, the shortest first."""

_LEAST_SHOWN = 1e-3
"""A share that is not written as none: as one that is smaller."""


def comparison_parts(comparison: Comparison) -> Iterator[RenderableType]:
    """A row a schedule, the ones over their memory limit marked; then what the columns are, and what the table says."""
    first = comparison.best
    shape = f"{counted(first.schedule.ranks, 'rank')}, {counted(first.schedule.microbatches, 'microbatch')}"
    yield line(f"{shape}, {first.costs.name}" if first.costs.name else shape, "bold")
    yield Text("")
    times = _times(comparison)
    yield _table(comparison, times)
    if len(comparison) > _MOST_ROWS:
        more = counted(len(comparison) - _MOST_ROWS, "longer schedule")
        yield line(f"{more} not listed here: --json has all, in Python to_dict()")
    if not all(result.fits for result in comparison):
        yield Text("! over the memory limit")
    yield Text("")
    yield from map(line, _sentences(comparison, times))
    yield from _refused(comparison)
    yield Text("")
    yield line(
        "idle: idle time by the ranks' whole time, by the time they work, and within the longest span. "
        "gap: above the bound of the schedule's own placement, and above the least bound of any here."
    )
    yield from notes(comparison.notes)
    yield from notes(text for text in comparison.warnings if "over the memory limit" not in text)


def _times(comparison: Comparison) -> Times:
    unit = comparison.best.timeline.unit
    return Times.of((value for result in comparison for value in (result.makespan, result.bound.value)), unit)


def _table(comparison: Comparison, times: Times) -> RenderableType:
    unit = f"\n({one_line(times.unit)})" if times.unit else ""
    in_bytes = comparison.best.memory.peak_bytes is not None
    peak = "peak\nmemory" if in_bytes else "peak\nact."
    table = columns("schedule", _CHUNKS, f"makespan{unit}", _IDLE, _WORK, _SPAN, peak, _OWN, _ANY, least=_LEAST)
    peaks = [peak_of(result) for result in comparison]
    rows = zip(comparison, sizes(peaks) if in_bytes else activations_of(peaks), strict=True)
    for result, held in islice(rows, _MOST_ROWS):
        bubble = result.timeline.bubble
        shares = (bubble.idle_over_total, bubble.over_ideal, bubble.span)
        gaps = (result.gap, comparison.least_gap(result))
        table.add_row(
            one_line(result.name) + ("" if result.fits else " !"),
            str(result.schedule.placement.chunks),
            times.number(result.makespan),
            *map(percent, shares),
            held,
            *("-" if gap is None else percent(gap) for gap in gaps),
        )
    return table


def _sentences(comparison: Comparison, times: Times) -> Iterator[str]:
    """The least bound, and what would change the order."""
    yield _bounded(comparison, times)
    yield from what_changes(comparison)


def what_changes(comparison: Comparison) -> Iterator[str]:
    """What would change which schedule is the first, a sentence each: the same in the terminal and on the page."""
    for lead in comparison.leads:
        if lead.change == "transfer":
            yield _slower(comparison, lead)
    steps = [lead for lead in comparison.leads if lead.change == "memory"]
    if steps:
        yield _smaller(comparison, steps, _times(comparison))


def _bounded(comparison: Comparison, times: Times) -> str:
    least, first = comparison.least_bound, comparison.best
    placement, slices = least.schedule.placement, least.schedule.slices
    where = f"{placement.name}, {counted(placement.chunks, 'chunk')} a rank" + (
        f", {slices} slices" if slices > 1 else ""
    )
    where += ", recomputing the same stages" if least.bound_is_of_recomputed else ""
    bound = f"No schedule of any placement here can be shorter than {times.text(least.bound.value)} ({where})"
    gap = comparison.least_gap(first)
    if gap is None:
        return f"{bound}."
    if gap == 0:
        return f"{bound}: {first.name} is that short."
    above = percent(gap) if gap >= _LEAST_SHOWN else f"less than {percent(_LEAST_SHOWN)}"
    return f"{bound}: {first.name} is {above} above it."


def _slower(comparison: Comparison, lead: Lead) -> str:
    first = comparison.best
    now, at = first.costs.transfer.time(), _rounded_down(lead.at)
    form = Times.of((at, now), first.timeline.unit)
    today = f" (now {form.text(now)})" if now else ""
    besides = f" ({' and '.join(lead.left_out)} not made again)" if lead.left_out else ""
    if lead.schedule is None:
        return f"{lead.leader} leads up to a transfer of {form.text(at)} at least{today}{besides}."
    until = f"{lead.leader} leads until a transfer takes more than {form.text(at)}{today}"
    return f"{until}; then {lead.schedule} does{besides}."


def _rounded_down(transfer: float) -> float:
    """A transfer time in three digits, no longer than it is: the leader still leads there."""
    rounded = float(f"{transfer:.3g}")
    if rounded <= transfer * (1 + tolerances.ROUNDING):
        return rounded
    return float(f"{rounded - 10.0 ** (math.floor(math.log10(rounded)) - 2):.3g}")


def _smaller(comparison: Comparison, steps: list[Lead], times: Times) -> str:
    leader = comparison[steps[0].leader]
    in_bytes = leader.memory.peak_bytes is not None
    unit = "" if in_bytes else " activations"
    # Rounded up, so that a limit of what is written lets in what it is said of.
    held = [
        size(value, up=True) if in_bytes else f"{math.ceil(value * 1000 - 1e-6) / 1000:.7g}"
        for value in (peak_of(leader), *(step.at for step in steps))
    ]
    found = [
        f"{at}{unit if place == 0 else ''} {step.schedule} ({_longer(leader, step, times)})"
        for place, (at, step) in enumerate(zip(held[1:], steps, strict=True))
    ]
    return f"{leader.name} needs {held[0]}{unit} on a rank; with less, the shortest is at {', at '.join(found)}."


def _longer(first: Result, step: Lead, times: Times) -> str:
    assert step.makespan is not None
    return f"{times.text(step.makespan)}, {change(step.makespan / first.makespan - 1)}"


def _refused(comparison: Comparison) -> Iterator[RenderableType]:
    if not comparison.refused:
        return
    yield Text("\nnot possible here:")
    for name, reason in comparison.refused.items():
        yield Padding(line(f"{name}: {reason.splitlines()[0].removeprefix(f'{name}: ')}"), (0, 0, 0, 2))
