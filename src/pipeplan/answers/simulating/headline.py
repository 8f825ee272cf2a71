"""The sentence with which the answer on one schedule begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.readable import memory_text, percent, sizes_text, time_text
from pipeplan.model import Timeline, counted
from pipeplan.simulation import Bound, recomputed_stages

if TYPE_CHECKING:
    from pipeplan.answers.simulating.record import OverLimitRecord
    from pipeplan.costs import Limits


def headline_of(
    timeline: Timeline, bound: Bound, over: OverLimitRecord | None, limits: Limits | None, search: Any = None
) -> str:
    """Return how long a schedule takes, how much its ranks idle and how much shorter any order can be; or that it is over.

    The sentence on a schedule that a ``search`` found says what it gained, too.
    """
    if search is not None:
        sentence: str = required_service("search", "headline")(search, timeline.unit, limits)
        return sentence
    schedule = timeline.schedule
    name, takes = schedule.name or "this schedule", time_text(timeline.makespan, timeline.unit)
    shape = f"{counted(schedule.microbatches, 'microbatch')} on {counted(schedule.ranks, 'rank')}"
    if over is not None:
        return f"{name} is {over_limit_in_words(over)}; it would take {takes} for {shape}"
    idle = f"its ranks idle {percent(timeline.bubble.idle_over_total)} of that time"
    if timeline.source == "measured":
        return f"{schedule.name or 'a run'}, measured, took {takes} for {shape}; {idle}"
    return f"{name} takes {takes} for {shape}; {idle}, and {_shorter(timeline, bound, limits)}"


def _shorter(timeline: Timeline, bound: Bound, limits: Limits | None) -> str:
    """Return by how much another order can be shorter at most."""
    alike = " that recomputes the same stages" if recomputed_stages(timeline.schedule) else ""
    within = "" if limits is None else " and within the limit"
    left = left_to_gain(bound.value, timeline.makespan)
    return f"no order on this placement{alike}{within} is {f'more than {left} ' if left else ''}shorter"


def left_to_gain(bound: float, value: float) -> str:
    """Return by what share a value can be reduced at most, as ``18.2%``; empty if it is at its bound."""
    share = 1 - bound / value if value > 0 else 0.0
    if bound >= value or share < _PROVEN:
        return ""
    return percent(max(share, _LEAST))


_PROVEN = 1e-9
"""Share below which a value is at its bound: rounding makes no gap."""

_LEAST = 1e-3
"""Smallest share that is written as a number; ``0.0%`` would say that nothing is left."""


def over_limit_in_words(over: OverLimitRecord) -> str:
    """Return the warning about a schedule over its memory limit."""
    others = over.others
    more = f" ({counted(others, 'more rank')} {'is over its' if others == 1 else 'are over theirs'})" if others else ""
    needed, limit = (
        (f"{over.peak:,.6g} activations", f"{over.limit:,.6g}")
        if over.unit == "activations"
        else sizes_text(over.peak, over.limit)
    )
    return f"over the memory limit: rank {over.rank} needs {needed}, its limit is {limit}{more}"


def limit_in_short(limits: Limits) -> str:
    """Return what a schedule fits: ``13.0 GiB``, or ``the memory limits`` of ranks whose limits differ."""
    least, most = float(limits.values.min()), float(limits.values.max())
    return memory_text(least, in_activations=limits.in_activations) if least == most else "the memory limits"
