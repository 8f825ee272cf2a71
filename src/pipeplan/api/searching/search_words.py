"""What a search says of itself: what it gained over the best published schedule, and on which costs and limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pipeplan.api.searching.decision_words import decided_in_words
from pipeplan.api.searching.sizes import size_in_words
from pipeplan.readable import Times, percent

if TYPE_CHECKING:
    from pipeplan.api.results import Result
    from pipeplan.api.searching.fronts import ParetoFront
    from pipeplan.api.searching.search_record import PublishedSchedule, SearchRecord
    from pipeplan.costs import Costs, Limits
    from pipeplan.model import Floats, Placement

NOTHING = 5e-4
"""A share below which nothing is gained or lost: it is rounded away."""

LONGER_SECONDS = 60
"""What is proposed where a search has gained nothing."""


def gain_of(result: Result) -> tuple[str, ...]:
    """What a search gained over the best published schedule of its placement, and of any, a sentence each.

    Raises
    ------
    ValueError
        For a result that no search has found.
    """
    if result.search is None:
        raise ValueError("no search has found this result")
    return tuple(_gains(result.search, result.timeline.unit))


def decisions_of(result: Result) -> tuple[str, ...]:
    """What a search decided beside the order of ops, and at which price, a sentence each.

    Raises
    ------
    ValueError
        For a result that no search has found.
    """
    if result.search is None:
        raise ValueError("no search has found this result")
    return tuple(f"It {clause}." for clause in decided_in_words(result.search.decided))


def slow_start(record: SearchRecord) -> Iterator[str]:
    """Warn of a search whose kernels were not compiled in time: as plain Python it tries far fewer schedules."""
    if record.compiled_after == 0:
        return
    count = f"{record.evaluations:,} schedule{'' if record.evaluations == 1 else 's'}"
    if record.compiled_after is None:
        yield (
            f"compiled kernels were not ready within the {record.seconds:.1f} s of the search, so it tried only {count}: "
            "compiling happens once on a machine; repeat the search, with more seconds if this warning returns"
        )
    else:
        yield (
            f"compiled kernels were ready only after {record.compiled_after:.1f} of {record.seconds:.1f} s, so the search "
            f"tried only {count}: compiling happens once on a machine; repeat the search"
        )


def placements_in_words(record: SearchRecord, times: Times) -> str:
    """Name the placement of the answer, what was found on the others, and which of them cannot be shorter."""
    others = [each for each in record.tried if each.placement.name != record.placement]
    searched = [f"{each.placement.name} {times.text(each.value)}" for each in others if each.value is not None]
    beaten = [each.placement.name for each in others if each.value is None]
    said = [record.placement]
    if searched:
        said.append(f"best of others: {', '.join(searched)}")
    if beaten:
        said.append(f"not searched, as their bounds are no shorter: {', '.join(beaten)}")
    return "; ".join(said)


def gain_words(record: SearchRecord, unit: str) -> str:
    """The first sentence of :func:`gain_of`."""
    return next(_gains(record, unit))


def _gains(record: SearchRecord, unit: str) -> Iterator[str]:
    here, anywhere = record.best_published, record.best_published_anywhere
    times = Times.of((record.value, *(each.value for each in (here, anywhere) if each is not None)), unit)
    yield _gain_here(record, here, times)
    if anywhere is not None and anywhere != here and record.gain_anywhere is not None:
        yield _gain_anywhere(anywhere, record.gain_anywhere, times)


def _gain_here(record: SearchRecord, here: PublishedSchedule | None, times: Times) -> str:
    if here is None or record.gain is None:
        need = record.least_need
        said = "No published schedule of this placement fits"
        if need is None:
            return f"{said}."
        return f"{said}; {need.name}, which needs the least, takes {size_in_words(need.memory, need.in_activations)}."
    what = {"plan": "", "p95": "A p95 of ", "worst": "A worst case of "}[record.of]
    kind = "any" if here == record.best_published_anywhere else "this"
    known = f"{here.name} ({times.text(here.value)}), the best published schedule of {kind} placement that fits"
    if record.gain > NOTHING:
        return f"{what}{times.text(record.value)} is {percent(record.gain)} shorter than {known}."
    if record.gain < -NOTHING:
        on = "" if record.jitter is None else ", on runs that neither was made for"
        return f"{what}{times.text(record.value)} is {percent(-record.gain)} longer than {known}{on}."
    if record.optimal:
        when = "" if record.objective == "makespan" else " with ops that start as soon as they can"
        return f"Nothing is gained over {known}: it is proven that none of this placement is shorter{when}."
    least = 1 - record.bound.value / record.value
    longer = max(LONGER_SECONDS, 10 * round(record.seconds))
    return (
        f"Nothing is gained over {known}. A shorter one would save at most {percent(least)}; a search of {longer} seconds "
        "may find it."
    )


def _gain_anywhere(anywhere: PublishedSchedule, gain: float, times: Times) -> str:
    named = f"{anywhere.name} ({anywhere.placement}, {times.text(anywhere.value)})"
    if gain > NOTHING:
        return f"Of all placements the best published one is {named}: this is {percent(gain)} shorter."
    if gain < -NOTHING:
        return f"On another placement {named} is {percent(1 - 1 / (1 - gain))} shorter than this."
    return f"Of all placements the best published one is {named}, as short as this."


def gain_of_front(front: ParetoFront) -> str:
    """Under which limit a front gains the most over the best published schedule, and under how many it gains nothing."""
    searches = [(point, point.result.search) for point in front if point.result.search is not None]
    alone = sum(search.best_published is None for _, search in searches)
    gains = [(search.gain, point, search) for point, search in searches if search.gain is not None]
    said = []
    if gains:
        gain, point, search = max(gains, key=lambda each: each[0])
        assert search.best_published is not None
        nothing = sum(each <= NOTHING for each, _, _ in gains)
        if gain > NOTHING:
            limit = (
                "without a limit"
                if point.limit is None
                else f"at a limit of {size_in_words(point.limit, not front.in_bytes)}"
            )
            less = f"; none under {nothing} of {len(front)} limits" if nothing else ""
            said.append(
                f"up to {percent(gain)} over the best published schedule ({search.best_published.name}, {limit}){less}"
            )
        else:
            said.append("none over the best published schedules")
    if alone:
        said.append(f"under {alone} of {len(front)} limits no published schedule fits")
    return "; ".join(said)


def costs_in_words(costs: Costs, placement: Placement) -> str:
    """The times of one microbatch on all the stages of a rank, from the shortest to the longest rank; and a transfer."""
    kinds = (costs.forward, costs.backward, costs.backward_input, costs.backward_weight)
    loads = [_of_ranks(each, placement) for each in kinds]
    transfer = costs.transfer.time()
    times = Times.of((transfer, *(float(each) for load in loads for each in load)), costs.time_unit)
    forward, backward, inputs, weights = (_range(load, times) for load in loads)
    return (
        f"forward {forward}, backward {backward} ({inputs} for inputs, {weights} for weights) of a rank; "
        f"transfer {times.text(transfer) if transfer else 'none'}"
    )


def limit_in_words(limits: Limits | None) -> str:
    """The memory limit of the ranks."""
    if limits is None:
        return "none"
    values = [
        size_in_words(float(value), limits.in_activations) for value in (limits.values.min(), limits.values.max())
    ]
    return f"{values[0]} on every rank" if values[0] == values[1] else f"{values[0]} to {values[1]}, by rank"


def _of_ranks(times: Floats, placement: Placement) -> Floats:
    """What a rank takes for one microbatch in one direction, shape (ranks,)."""
    found = np.zeros(placement.ranks)
    for ranks in placement.table:
        np.maximum(found, np.bincount(ranks, weights=times, minlength=placement.ranks), out=found)
    return found


def _range(load: Floats, times: Times) -> str:
    low, high = times.number(float(load.min())), times.text(float(load.max()))
    return high if low == times.number(float(load.max())) else f"{low} to {high}"
