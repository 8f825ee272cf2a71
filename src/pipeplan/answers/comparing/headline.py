"""The sentence with which a comparison begins: the best schedule, how far above its bound it is, and what needs more."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.answers.comparing.columns import LEAST_SHOWN, times_of
from pipeplan.answers.comparing.parting import Parting
from pipeplan.answers.published import Allowed, FasterWithMore, missing
from pipeplan.answers.simulating.headline import limit_in_short
from pipeplan.answers.simulating.result import Result
from pipeplan.foundation.readable import Times, change, memory_text, percent
from pipeplan.model import counted_either, needs_in_words


def headline_of(
    results: Sequence[Result],
    allowed: Allowed,
    faster: Sequence[FasterWithMore],
    gap: float | None,
    parting: Parting | None,
) -> str:
    """Return the best schedule, with its ``gap`` to the least bound, and the fastest one that needs more than is allowed.

    The sentence on one schedule is that of its result; that on several of which none fits names the one that needs least.
    """
    first, times = results[0], times_of(results)
    more = "" if not faster else f"{_with(faster[0])}, {faster[0].schedule} takes {times.text(faster[0].value)}"
    if not first.fits or missing(first.needs, allowed):
        return _none(results, faster, times)
    if len(results) == 1:
        return first.headline
    fits = "" if first.limits is None else f" that fits {limit_in_short(first.limits)}"
    covered = [result for result in results if not missing(result.needs, allowed)]
    standing = "" if gap is None else f", {_above(gap, covered)}"
    figures = f"{times.text(first.makespan)}{standing}"
    if parting is not None and parting.identical:
        return f"{parting.schedules[0]} and {parting.schedules[1]} are the same order: {figures}"
    if len(results) == 2 and not more:
        return f"{_of_two(first, results[1], times)}{standing}"
    return f"{first.name} is the fastest{fits}: {figures}{f'; {more}' if more else ''}"


def _above(gap: float, covered: Sequence[Result]) -> str:
    """Return how far a makespan is above its least bound, ``3.9% above the bound``, or that nothing can be shorter.

    A search may try other placements and more chunks than the ``covered`` schedules have, so the latter names theirs.
    """
    if gap == 0:
        if len({(result.schedule.placement.name, result.chunks) for result in covered}) == 1:
            return "and no order on this placement is shorter"
        chunks = counted_either({result.chunks for result in covered}, "chunk")
        return f"and no order with {chunks} per rank on the placements compared is shorter"
    return f"{percent(gap) if gap >= LEAST_SHOWN else f'less than {percent(LEAST_SHOWN)}'} above the bound"


def _with(faster: FasterWithMore) -> str:
    return f"with {needs_in_words(faster.needs)}"


def _of_two(first: Result, second: Result, times: Times) -> str:
    """Return how much faster the first of two schedules is, and what that costs in memory."""
    if not second.fits:
        return f"{first.name} fits, {second.name} does not: {times.text(first.makespan)}"
    takes = f"{times.text(first.makespan)} instead of {times.text(second.makespan)}"
    gain, ratio = change(first.makespan / second.makespan - 1), first.peak / second.peak - 1 if second.peak else 0.0
    memory = f"{percent(abs(ratio))} {'more' if ratio > 0 else 'less'} peak memory"
    memory = "the same peak memory" if change(ratio) == change(0.0) else memory
    if gain == change(0.0):
        return f"{first.name} and {second.name} take the same time, {times.text(first.makespan)}, with {memory}"
    return f"{first.name} is faster than {second.name}: {takes} ({gain}), with {memory}"


def _none(results: Sequence[Result], faster: Sequence[FasterWithMore], times: Times) -> str:
    """Return that no schedule fits, or only those that need more than is allowed, the ``faster`` ones."""
    limits = next((result.limits for result in results if result.limits is not None), None)
    limit = "" if limits is None else limit_in_short(limits)
    if faster:
        needs = " or ".join(needs_in_words(more.needs) for more in faster)
        taken = f"{faster[0].schedule} takes {times.text(faster[0].value)}"
        return f"Only with {needs} {f'does a schedule fit {limit}' if limit else 'is a schedule possible'}: {taken}"
    least = min(results, key=lambda result: result.peak)
    memory = memory_text(least.peak, in_activations=least.peak_bytes is None)
    return f"No schedule {f'fits {limit}' if limit else 'is possible'}: {least.name}, which needs the least, takes {memory}"
