"""Sentences of an explanation: why ranks idle, the reason of the bound, and a recommendation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import UnsetType

from pipeplan.answers.explaining.communication import CommunicationInOps, communication_in_words
from pipeplan.answers.explaining.remedies import Remedy
from pipeplan.answers.explaining.waits import Wait
from pipeplan.answers.simulating.result import Result, no_schedule_covered
from pipeplan.foundation.readable import Times, change, percent, size_text
from pipeplan.model import (
    COLLECTIVE_KINDS,
    REASON_WORDS,
    RECEIVE_KINDS,
    Floats,
    Kind,
    Reason,
    counted,
    parse_cell,
)
from pipeplan.simulation import (
    HYPOTHETICAL,
    LocatedWindow,
    shortened,
    work_of_microbatches,
    work_of_stages,
)

MOST_RANKS = 4
"""Maximum number of ranks that all have a sentence; of more ranks, only the first, the last and the one that idles most."""

_ON_ITS_WAY = {Kind.F: "input", Kind.B: "gradient", Kind.I: "gradient"}
"""Message that an op receives from another rank, by kind."""

AT_HAND = ("order", "schedule", "chunks", "recomputation", "offload")
"""Kinds of remedies that keep the model, the batch and the machine, and stay within its memory."""


_IF_MICROBATCHES_DIFFER = {Reason.IMBALANCE: "waiting for slower stages or longer microbatches"}


def sentences_of(
    result: Result,
    totals: Floats,
    waits: Sequence[Wait | None],
    windows: Sequence[LocatedWindow],
    communication: CommunicationInOps | UnsetType,
    *,
    what_ifs: Sequence[Remedy],
    times: Times,
) -> tuple[str, ...]:
    """Return a heading, one sentence per selected rank, then those on communication, stages, microbatches and the bound.

    The last four are left out if segments are unknown, if stages take about the same time or were not measured, if
    microbatches are alike, and if no idle windows explain the bound.
    """
    ranks = [_sentence(result, rank, totals[rank], waits[rank], times) for rank in ranks_told(result.timeline.idle)]
    of_ops = communication_in_words(communication, result.time_unit)
    rest = (*of_ops, *_slow_stages(result), *_longest_microbatch(result, what_ifs), *_bound(result, windows, times))
    return (_heading(result, times), *ranks, *rest)


def _heading(result: Result, times: Times) -> str:
    name = f"{result.name or 'a run'}, measured" if result.timeline.source == "measured" else result.name
    per_microbatch = result.makespan / result.microbatches
    share = Times.of([per_microbatch], result.time_unit).text(per_microbatch)
    shared = f", {share} each" if result.microbatches > 1 else ""
    number, idle = counted(result.microbatches, "microbatch"), percent(result.bubble.idle_over_total)
    return f"{name}: {times.text(result.makespan)} for {number}{shared}; its ranks idle {idle} of that time"


def ranks_told(idle: Floats) -> Sequence[int]:
    """Return the ranks that have a sentence."""
    if len(idle) <= MOST_RANKS:
        return range(len(idle))
    return sorted({0, int(idle.argmax()), len(idle) - 1})


def _sentence(result: Result, rank: int, totals: Floats, wait: Wait | None, times: Times) -> str:
    timeline = result.timeline
    idle = float(timeline.idle[rank])
    reasons = [Reason(code) for code in np.argsort(-totals, kind="stable") if totals[code] > 0]
    if not reasons:
        return f"Rank {rank} never idles."
    parts = times.parts(map(float, totals))  # In the order of the table: the same time is the same number there.
    causes = ", ".join(
        f"{parts[reason]} {reason_in_words(result, reason)}" for reason in reasons if parts[reason].strip("0.")
    )
    share = percent(idle / timeline.makespan)
    sentence = f"Rank {rank} idles {times.number(idle)} of {times.text(timeline.makespan)} ({share})"
    return (
        f"{sentence}: {causes or 'in gaps too short to show'}.{'' if wait is None else _longest_in_words(wait, times)}"
    )


def reason_in_words(result: Result, reason: Reason) -> str:
    """Return a reason of idle time in words; waiting for slower stages may be for longer microbatches."""
    words = REASON_WORDS | ({} if result.costs.factors is None else _IF_MICROBATCHES_DIFFER)
    return words[reason]


def _longest_in_words(wait: Wait, times: Times) -> str:
    """Return a sentence on the longest wait of a rank and its source."""
    if not times.number(wait.time).strip("0."):
        return ""
    received = _ON_ITS_WAY.get(wait.op.kind)
    collective = isinstance(wait.behind, str) and parse_cell(wait.behind)[0].kind in COLLECTIVE_KINDS
    remote = received is not None and wait.source is not None and not collective
    origin = f", whose {received} is on its way from rank {wait.source}" if remote else ""
    if isinstance(wait.behind, str):
        origin += f", {_behind(wait.behind)}"
    since = f"{times.number(wait.start)} to {times.number(wait.end)}"
    return f" Its longest wait, {times.number(wait.time)} from {since}, is before {wait.notation}{origin}."


def _behind(message: str) -> str:
    """Return the message that delayed another one, or the collective that an op waited for, in words."""
    op = parse_cell(message)[0]
    if op.kind in COLLECTIVE_KINDS:
        return f"which waits for the {'parameters' if op.kind == Kind.UNSHARD else 'reduced gradients'} of stage {op.stage}"
    return f"behind a {'receive' if op.kind in RECEIVE_KINDS else 'send'} of microbatch {op.microbatch}"


SLOW = 1.5
"""Ratio of a stage's time to the median of the other stages from which it is named."""

_MOST_SLOW = 3
"""Maximum number of slow stages that are named, the slowest first."""


def _slow_stages(result: Result) -> Iterator[str]:
    """Yield a sentence for each stage of a measured run that takes far longer than the others."""
    if result.timeline.source != "measured" or result.stages == 1:
        return
    work = work_of_stages(result.costs)
    others = np.array([np.median(np.delete(work, stage)) for stage in range(len(work))])
    ratios = np.round(work / np.maximum(others, 1e-300), 6)
    for stage in np.argsort(-ratios, kind="stable")[:_MOST_SLOW].tolist():
        if not work[stage] >= SLOW * others[stage] > 0:
            return
        form = Times.of([float(others[stage])], result.time_unit)
        holders = np.unique(result.schedule.placement.table[:, stage]).tolist()
        ranks = f"rank{'s' if len(holders) > 1 else ''} {' and '.join(map(str, holders))}"
        yield (
            f"Stage {stage}, on {ranks}, takes {ratios[stage]:.3g} times as long as the median of the "
            f"other stages: {form.text(float(work[stage]))} per microbatch instead of {form.text(float(others[stage]))}."
        )


def _longest_microbatch(result: Result, what_ifs: Sequence[Remedy]) -> Iterator[str]:
    """Return how much longer the longest microbatch is than the median, and by how much shorter the step is without that."""
    if result.costs.factors is None:
        return
    work = work_of_microbatches(result.costs)
    longest = int(work.argmax())
    change = next((what for what in what_ifs if what.change == shortened(longest)), None)
    if change is not None:
        ratio, share = work[longest] / np.median(work), max(change.gain / result.makespan, 0.0)
        yield f"Microbatch {longest} is {ratio:.3g} times as long as the median and costs {percent(share)} of the step."


def _bound(result: Result, windows: Sequence[LocatedWindow], times: Times) -> Iterator[str]:
    """Return how long every schedule within the limit takes, why, and how much of this one's idle time is due to it.

    Empty if the bound has no windows, or none is on the timeline.
    """
    bound = result.bound
    trips = bound.round_trips
    if trips is None or not windows:
        return
    idle = sum(window.idle for window in windows)
    schedule = result.schedule
    costs = result.costs.occupied(schedule.placement, schedule.slices)
    shorter = costs.overlap is not None or bool((costs.backward < costs.backward_input + costs.backward_weight).any())
    loses = "idles, or runs what could take less, for" if shorter else "idles"
    subject = no_schedule_covered(result)
    yield (
        f"{subject[:1].upper()}{subject[1:]} takes less than {times.text(bound.value)}: rank {trips.rank} holds "
        f"{counted(trips.fit, 'microbatch')} at most, and {loses} {times.number(trips.idle)} or more in "
        f"{counted(len(windows), 'window')} of time, {times.number(idle)} here."
    )


def advice_of(result: Result, what_ifs: Sequence[Remedy], times: Times) -> str:
    """Return a recommendation: the best remedy that any user can apply; else the gain from a larger batch or other costs.

    Empty without what-ifs, as for a timeline that has its times already.
    """
    if not what_ifs:
        return ""
    helping = [what for what in what_ifs if what.helps]
    at_hand = next((what for what in helping if what.kind in AT_HAND), None)
    over = "" if result.fits else "This is over its memory limit. "
    # A search supports no transfers that meet.
    search = "pipeplan search" + (" --communication streams" if result.costs.communication == "blocking" else "")
    if at_hand is not None:
        return f"{over}Recommended: {_done(at_hand)}: {_gained(result, at_hand, times)}."
    if not result.fits:
        return f"{over}Nothing tried here is within it: raise it, or search under it with '{search}'."
    larger = next((what for what in helping if what.kind == "microbatches"), None)
    costs = next(
        (what for what in helping if what.kind in ("costs", "memory") and what.change not in HYPOTHETICAL), None
    )
    bound = result.bound.value
    if result.gap:
        most = change(bound / result.makespan - 1)
        first = f"Recommended: look for a better order with '{search}': the bound allows {times.text(bound)} ({most})"
        later = [] if larger is None else [_if_possible(result, larger)]
    else:
        first = f"No order of ops on this placement is shorter than {times.text(result.makespan)}"
        later = [_if_possible(result, what) for what in (larger, costs) if what is not None]
    return f"{first}{''.join(f'; {clause}' for clause in later)}."


def _done(what: Remedy) -> str:
    if what.kind in ("schedule", "order"):
        return f"train with {what.change}"
    if what.kind == "chunks":
        return f"put {what.change}"
    return "recompute all stages" if what.change == "all stages recomputed" else "recompute nothing"


def _gained(now: Result, what: Remedy, times: Times) -> str:
    before, held = now.makespan, now.peak
    step = (
        f"{times.text(what.makespan)} per step instead of {times.text(before)} ({change(what.makespan / before - 1)})"
    )
    if abs(what.peak / held - 1) < 5e-4 if held else what.peak == held:
        return f"{step}, with the same memory"
    in_bytes = now.peak_bytes is not None
    new, old = (size_text(what.peak), size_text(held)) if in_bytes else (f"{what.peak:.4g}", f"{held:.4g} activations")
    return f"{step}, with {'more' if what.peak > held else 'less'} memory: {new} instead of {old} on the fullest rank"


def _if_possible(result: Result, what: Remedy) -> str:
    """Return the gain of a change that not every training run can make."""
    now = result.makespan / result.microbatches
    share = change(what.per_microbatch / now - 1)
    times = Times.of([what.per_microbatch, now], result.time_unit)
    words = f"with {what.change} a microbatch takes {times.text(what.per_microbatch)} instead of "
    return f"{words}{times.text(now)} ({share})"
