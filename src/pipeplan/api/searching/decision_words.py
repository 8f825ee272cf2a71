"""What a found schedule decided, and how it is judged, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from pipeplan.api.searching.sizes import size_in_words
from pipeplan.readable import Times, percent

if TYPE_CHECKING:
    from pipeplan.api.searching.decisions import Decided, Spared
    from pipeplan.api.searching.search_record import SearchRecord

_DOES: dict[Spared, str] = {"recompute": "recomputes", "offload": "offloads"}

_NOTHING_SPARED: dict[tuple[str, ...], str] = {
    ("recompute",): "recomputes nothing",
    ("offload",): "offloads nothing",
    ("recompute", "offload"): "recomputes and offloads nothing",
}


def decided_in_words(decided: Decided) -> tuple[str, ...]:
    """What was decided, a clause each: ``recomputes 3 of 24 microbatches on stage 2: costs 1.2% of the time, ...``."""
    return tuple(_clauses(decided))


def _clauses(decided: Decided) -> Iterator[str]:
    spared: list[Spared] = [how for how in _DOES if how in decided.choices]
    for how in spared:
        if (price := decided.prices.get(how)) is not None:
            which = _which(decided.of(how), decided.microbatches)
            time = f"costs {percent(price.time)} of the time" if price.time > 0 else "costs no time"
            memory = f"{size_in_words(price.memory, not price.in_bytes)} on rank {price.rank}"
            yield f"{_DOES[how]} {which}: {time}, saves {memory if price.memory > 0 else 'nothing at the peak'}"
    if none := _NOTHING_SPARED.get(tuple(how for how in spared if how not in decided.prices)):
        yield none
    if "split" in decided.choices and decided.full_backwards:
        whole = decided.full_backwards + decided.split_backwards
        yield f"splits {decided.split_backwards:,} of {whole:,} backwards"
    if decided.overlapped_pairs:
        yield f"overlaps {decided.overlapped_pairs:,} pairs of a forward and a backward"


MOST_GROUPS = 3
"""Groups of stages that are named one by one; of more only the least and the most microbatches are."""


def _which(counts: tuple[int, ...], microbatches: int) -> str:
    """``all 24 microbatches on stages 0-3, 3 of 24 on stage 5``: neighbours of equal counts together."""
    groups = [
        (count, [stage for stage, _ in group])
        for count, group in groupby(enumerate(counts), key=lambda each: each[1])
        if count
    ]
    if len(groups) > MOST_GROUPS:
        some = [count for count, _ in groups]
        stages = [stage for _, group in groups for stage in group]
        return f"{min(some)} to {max(some)} of {microbatches} microbatches on {_stages(stages)}"
    said: list[str] = []
    for count, stages in groups:
        many = f"all {microbatches}" if count == microbatches else f"{count} of {microbatches}"
        said.append(f"{many}{'' if said else ' microbatches'} on {_stages(stages)}")
    return ", ".join(said)


def _stages(stages: list[int]) -> str:
    """``stage 3``, ``stages 0-4,6``."""
    runs: list[list[int]] = []
    for stage in stages:
        if runs and runs[-1][-1] == stage - 1:
            runs[-1].append(stage)
        else:
            runs.append([stage])
    text = ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"stage{'' if len(stages) == 1 else 's'} {text}"


def judged_in_words(record: SearchRecord, unit: str) -> tuple[str, str] | None:
    """How the schedule does when the run differs from the plan: what is asked, and the answer; None where nothing varies."""
    found, published = record.robustness, record.published_robustness
    if found is None:
        return None
    named = None if record.best_published is None else record.best_published.name
    slow = record.slow_rank is not None
    ours, theirs = (each and (each.worst if slow else each.p95) for each in (found, published))
    times = Times.of([time for time in (found.mean, ours, theirs) if time], unit)
    word = "worst" if slow else "p95"
    beside = f"; {named}: {word} {times.text(theirs)}" if theirs and named else ""
    said = f"mean {times.text(found.mean)}, {word} {times.text(ours or 0.0)}{beside}"
    if slow:
        return "with a slow rank", f"{said}; any one rank {percent(record.slow_rank or 0.0)} slower"
    return "under jitter", said
