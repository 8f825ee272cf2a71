"""Sentences on a search: its gain, its decisions, its costs, and its part of a result's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from msgspec import UNSET

from pipeplan.answers.published import faster_with_more_in_words
from pipeplan.answers.simulating.headline import left_to_gain, limit_in_short
from pipeplan.costs import Costs, Limits
from pipeplan.extensions.search.answers.search_record import (
    Decided,
    PlacementRecord,
    PublishedSchedule,
    SearchRecord,
    Spared,
)
from pipeplan.foundation.kernels import is_native
from pipeplan.foundation.readable import Times, memory_text, percent, transfers_in_words
from pipeplan.model import Floats, Placement, tolerances

NOTHING = 5e-4
"""A share below which nothing is gained or lost: it is rounded away."""

LONGER_SECONDS = 60
"""Advice if a search has gained nothing."""


def gain_of(record: SearchRecord, unit: str) -> tuple[str, ...]:
    """Return sentences on the gain over the best published schedule of the placement, and of any, and on what needs more."""
    here, anywhere = record.best_published, record.best_published_anywhere
    published = [published for published in (here, anywhere, *record.faster_with_more) if published is not None]
    times = Times.of((record.objective.value, *(candidate.value for candidate in published)), unit)
    sentences = [_gain_here_in_words(record, here, times)]
    if anywhere is not None and anywhere != here and record.gain_anywhere is not None:
        sentences.append(_gain_anywhere_in_words(anywhere, record.gain_anywhere, times))
    if record.faster_with_more:
        sentences.append(faster_with_more_in_words(record.faster_with_more, times))
    return tuple(sentences)


def decisions_of(record: SearchRecord) -> tuple[str, ...]:
    """Return a sentence for each decision other than the order of ops, with its price."""
    return tuple(f"It {clause}." for clause in decided_in_words(record.decided))


def slow_kernels(record: SearchRecord) -> Iterator[str]:
    """Warn of a search within a time limit whose kernels ran as plain Python, unless its answer is optimal nevertheless."""
    if not is_native() and not record.optimal:
        yield (
            f"pipeplan runs as plain Python, so the search tried only {record.evaluations:,} "
            f"schedule{'' if record.evaluations == 1 else 's'} in {record.seconds:.1f} s: install a C compiler and "
            "reinstall pipeplan, or allow more seconds"
        )


def placements_in_words(record: SearchRecord, times: Times) -> str:
    """Name the placement of the answer, the makespans found on the others, and those that were not searched."""
    several = len({other.placement for other in record.placements}) < len(record.placements)

    def name(other: PlacementRecord) -> str:
        return f"{other.placement} of {other.chunks}" if several else other.placement

    others = [other for other in record.placements if not _is_answer(other, record)]
    searched = [f"{name(other)} {times.text(other.value)}" for other in others if other.value is not None]
    beaten = [name(other) for other in others if other.value is None and not _may_win(other, record)]
    left = [name(other) for other in others if other.value is None and _may_win(other, record)]
    words = [record.placement]
    if searched:
        words.append(f"best of others: {', '.join(searched)}")
    if beaten:
        words.append(f"not searched, because their lower bounds are not shorter: {', '.join(beaten)}")
    if left:
        words.append(f"not searched in this time: {', '.join(left)}")
    return "; ".join(words)


def _may_win(other: PlacementRecord, record: SearchRecord) -> bool:
    """Return whether a search for a layout has left out a placement that its bound does not rule out."""
    return record.layers_per_stage is not UNSET and other.lower_bound < record.objective.value * (
        1 - tolerances.ROUNDING
    )


def _is_answer(other: PlacementRecord, record: SearchRecord) -> bool:
    """Return whether a placement is that of the answer; searches for a layout try several numbers of chunks of one name."""
    return other.placement == record.placement and other.layers_per_stage == record.layers_per_stage


def _gain_here_in_words(record: SearchRecord, here: PublishedSchedule | None, times: Times) -> str:
    if here is None or record.gain is None:
        need = record.least_need
        none = "No published schedule of this placement"
        if need is None:
            return f"{none} is possible with its defaults."
        memory = memory_text(need.memory, in_activations=need.in_activations)
        return f"{none} fits with its defaults; {need.name}, which needs the least, takes {memory}."
    kind = "any" if here == record.best_published_anywhere else "this"
    best = f"{here.schedule} ({times.text(here.value)}), the best published schedule of {kind} placement that fits"
    if record.gain > NOTHING:
        return f"{times.text(record.objective.value)} is {percent(record.gain)} shorter than {best}."
    if record.gain < -NOTHING:
        return f"{times.text(record.objective.value)} is {percent(-record.gain)} longer than {best}."
    if record.optimal:
        when = f" {record.leaves_out}" if record.leaves_out else ""
        when += "" if record.objective.name == "makespan" else " with ops that start as soon as they can"
        return f"No gain over {best}: proven optimal for this placement{when}."
    least = 1 - record.objective.lower_bound / record.objective.value
    longer = longer_than(record)
    return f"No gain over {best}: at most {percent(least)} is possible, and a search of {longer} seconds may find it."


def _gain_anywhere_in_words(anywhere: PublishedSchedule, gain: float, times: Times) -> str:
    named = f"{anywhere.schedule} ({anywhere.placement}, {times.text(anywhere.value)})"
    if gain > NOTHING:
        return f"Of all placements the best published one is {named}: this is {percent(gain)} shorter."
    if gain < -NOTHING:
        return f"On another placement {named} is {percent(1 - 1 / (1 - gain))} shorter than this."
    return f"Of all placements the best published one is {named}, as short as this."


def costs_in_words(costs: Costs, placement: Placement) -> str:
    """Return the costs of one microbatch on each rank, from the shortest to the longest, and of a transfer."""
    kinds = (costs.forward, costs.backward, costs.backward_input, costs.backward_weight)
    loads = [_of_ranks(value, placement) for value in kinds]
    transfer = costs.transfer.time()
    times = Times.of((transfer, *(float(value) for load in loads for value in load)), costs.time_unit)
    forward, backward, inputs, weights = (_range(load, times) for load in loads)
    return (
        f"forward {forward}, backward {backward} ({inputs} for inputs, {weights} for weights) of a rank; "
        f"transfer {times.text(transfer) if transfer else 'none'}"
    )


def limit_in_words(limits: Limits | None) -> str:
    """Return the memory limit of the ranks in words."""
    if limits is None:
        return "none"
    least, most = (
        memory_text(float(limit), in_activations=limits.in_activations)
        for limit in (limits.values.min(), limits.values.max())
    )
    return f"{least} on every rank" if least == most else f"{least} to {most}, by rank"


def _of_ranks(times: Floats, placement: Placement) -> Floats:
    """Return the time of one microbatch in one direction on each rank, shape (ranks,)."""
    totals = np.zeros(placement.ranks)
    for ranks in placement.table:
        np.maximum(totals, np.bincount(ranks, weights=times, minlength=placement.ranks), out=totals)
    return totals


def _range(load: Floats, times: Times) -> str:
    low, high = times.number(float(load.min())), times.text(float(load.max()))
    return high if low == times.number(float(load.max())) else f"{low} to {high}"


_DOES: dict[Spared, str] = {"recompute": "recomputes", "offload": "offloads"}


def decided_in_words(decided: Decided) -> tuple[str, ...]:
    """Return the decisions, a clause each: ``recomputes 3 of 24 microbatches on stage 2: costs 1.2% of the time, ...``."""
    clauses = []
    spared: list[Spared] = [how for how in _DOES if how in decided.choices]
    for how in spared:
        if (price := decided.prices.get(how)) is not None:
            which = _which((decided.recomputed if how == "recompute" else decided.offloaded), decided.microbatches)
            time = f"costs {percent(price.time)} of the time" if price.time > 0 else "costs no time"
            memory = f"{memory_text(price.memory, in_activations=not price.in_bytes)} on rank {price.rank}"
            saved = memory if price.memory > 0 else "nothing at the peak"
            clauses.append(f"{_DOES[how]} {which}: {time}, saves {saved}")
    if none := [_DOES[how] for how in spared if how not in decided.prices]:
        clauses.append(f"{' and '.join(none)} nothing")
    if "split" in decided.choices and decided.full_backwards:
        whole = decided.full_backwards + decided.split_backwards
        clauses.append(f"splits {decided.split_backwards:,} of {whole:,} backwards")
    if decided.overlapped_pairs:
        clauses.append(f"overlaps {decided.overlapped_pairs:,} pairs of a forward and a backward")
    return tuple(clauses)


MOST_GROUPS = 3
"""Groups of stages that are named one by one; of more only the least and the most microbatches are."""


def _which(counts: Sequence[int], microbatches: int) -> str:
    """Return ``all 24 microbatches on stages 0-3, 3 of 24 on stage 5``: neighbours of equal counts together."""
    groups = [
        (count, [stage for stage, _ in group])
        for count, group in groupby(enumerate(counts), key=lambda pair: pair[1])
        if count
    ]
    if len(groups) > MOST_GROUPS:
        some = [count for count, _ in groups]
        stages = [stage for _, group in groups for stage in group]
        return f"{min(some)} to {max(some)} of {microbatches} microbatches on {_stages(stages)}"
    ranges: list[str] = []
    for count, stages in groups:
        many = f"all {microbatches}" if count == microbatches else f"{count} of {microbatches}"
        ranges.append(f"{many}{'' if ranges else ' microbatches'} on {_stages(stages)}")
    return ", ".join(ranges)


def _stages(stages: list[int]) -> str:
    runs: list[list[int]] = []
    for stage in stages:
        if runs and runs[-1][-1] == stage - 1:
            runs[-1].append(stage)
        else:
            runs.append([stage])
    text = ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"stage{'' if len(stages) == 1 else 's'} {text}"


def headline_of(search: SearchRecord, unit: str, limits: Limits | None) -> str:
    """Return what a search found, its gain over the best published schedule that fits, and how much is left to gain.

    If a published schedule of another placement is better, the gain is that over the best one of the searched placement.
    """
    objective = search.objective
    times = Times.of([objective.value, *(more.value for more in _published(search))], unit)
    where = "any layout of these placements" if search.layers_per_stage is not UNSET else "this placement"
    where += f" {search.leaves_out}" if search.leaves_out else ""
    clauses = [_gain_in_short(search, times, "" if limits is None else f" that fits {limit_in_short(limits)}")]
    if search.optimal:
        clauses.append(f"it is proven optimal for {where}")
    else:
        left = left_to_gain(objective.lower_bound, objective.value) or percent(0.0)
        clauses.append(f"no order on {where} is more than {left} shorter")
    if (other := _better_elsewhere(search)) is not None and search.best_published is not None:
        clauses.append(f"on another placement {other.schedule} takes {times.text(other.value)}")
    return "; ".join(clauses)


def _published(search: SearchRecord) -> list[PublishedSchedule]:
    return [each for each in (search.best_published, search.best_published_anywhere) if each is not None]


def _better_elsewhere(search: SearchRecord) -> PublishedSchedule | None:
    """Return the best published schedule if it is of another placement and better than what the search found."""
    gain = search.gain_anywhere
    return search.best_published_anywhere if gain is not None and gain < -NOTHING else None


def _gain_in_short(search: SearchRecord, times: Times, fits: str) -> str:
    value = times.text(search.objective.value)
    found = f"The search found {'' if search.objective.name == 'makespan' else 'a longest span of '}{value}"
    here = search.best_published if _better_elsewhere(search) is not None else None
    best = here or search.best_published_anywhere or search.best_published
    gain = search.best_gain if here is None else search.gain
    if best is None or gain is None:
        return f"{found}; no published schedule {fits.removeprefix(' that ') or 'is possible here'}"
    named = f"the best published schedule{'' if here is None else ' of this placement'}{fits}"
    if abs(gain) <= NOTHING:
        return f"The search found nothing shorter than {best.schedule} ({value}), {named}"
    return f"{found}, {percent(abs(gain))} {'shorter' if gain > 0 else 'longer'} than {best.schedule}, {named}"


def next_step(search: SearchRecord) -> str:
    """Return what to do with the schedule that a search found: how to keep it, what takes it, and whether to search on."""
    uses = "'pipeplan export better.csv --to torchtitan' or 'pipeplan run better.csv'"
    step = f"Next: write this order with '-o better.csv', for {uses}"
    if search.optimal or search.objective.gap <= NOTHING:
        return f"{step}."
    return f"{step}; '--seconds {longer_than(search)}' searches on."


def longer_than(search: SearchRecord) -> int:
    """Return the number of seconds of a search that may find more than this one."""
    return max(LONGER_SECONDS, 10 * round(search.seconds))


def table_rows(search: SearchRecord, costs: Costs, placement: Placement) -> list[tuple[str, str]]:
    """Return the rows of a result's figures on its search: the objective, what it decided, and what is faster with more."""
    times = Times.of((search.objective.value, search.objective.lower_bound), costs.time_unit)
    layout, decided = search.layers_per_stage, decided_in_words(search.decided)
    values = (search.objective.value, *(more.value for more in search.faster_with_more))
    faster = faster_with_more_in_words(search.faster_with_more, Times.of(values, costs.time_unit))
    return [
        *_made_small(search, times),
        *([] if layout is UNSET else [("layers per stage", layout_in_words(layout, placement))]),
        *([("decided", "; ".join(decided))] if decided else []),
        *([("faster with more", faster.partition(": ")[2])] if faster else []),
    ]


def search_details(
    search: SearchRecord, costs: Costs, placement: Placement, limits: Limits | None
) -> list[tuple[str, str]]:
    """Return the details of a search: its gain, its effort, the placements, its costs and limit."""
    times = Times.of((search.objective.value, search.objective.lower_bound), costs.time_unit)
    stopped = ", stopped by the user" if search.interrupted else ""
    tried = "schedule" if search.evaluations == 1 else "schedules"
    transfers = transfers_in_words(costs.communication, costs.streams)
    return [
        ("gain", " ".join(gain_of(search, costs.time_unit))),
        (
            "found by",
            f"{search.found_by}, of {search.evaluations:,} {tried} tried in {search.seconds:.1f} s{stopped}",
        ),
        *([("placement", placements_in_words(search, times))] if len(search.placements) > 1 else []),
        ("costs", costs_in_words(costs, placement)),
        ("memory limit", limit_in_words(limits)),
        *([("transfers", transfers)] if transfers else []),
    ]


def layout_in_words(layout: Sequence[int], placement: Placement) -> str:
    """Return the layers of each stage in the order of the model: ``9+10+10+9``, chunks separated by bars."""
    chunks = [layout[first : first + placement.ranks] for first in range(0, len(layout), placement.ranks)]
    return " | ".join("+".join(map(str, chunk)) for chunk in chunks)


def _made_small(search: SearchRecord, times: Times) -> list[tuple[str, str]]:
    """Return the minimized objective, unless it is the makespan, which the schedule's figures contain."""
    objective = search.objective
    if objective.name == "makespan":
        return []
    verdict = "optimal" if search.optimal else f"gap {percent(objective.gap)}"
    bound = f"bound {times.text(objective.lower_bound)} ({objective.bound_reason})"
    return [("least longest span", f"{times.text(objective.value)}, {bound}, {verdict}")]
