"""Sentences of an explanation: why ranks idle, their longest waits, the reason of the bound, and a recommendation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np

from pipeplan.answers.explaining.remedies import Remedy
from pipeplan.answers.simulating.result import Result, no_schedule_covered
from pipeplan.foundation.readable import Times, change, percent, size_text
from pipeplan.foundation.records import Record
from pipeplan.model import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    REASON_WORDS,
    RECEIVE_KINDS,
    Floats,
    Ints,
    Kind,
    Op,
    Reason,
    Schedule,
    Streams,
    Timeline,
    among,
    counted,
    dependencies,
    parse_cell,
    tolerances,
)
from pipeplan.simulation import (
    HYPOTHETICAL,
    WAITS,
    IdleTimes,
    LocatedWindow,
    held_up_by,
    shortened,
    timed_only,
    work_of_microbatches,
    work_of_stages,
)


class Wait(Record, frozen=True, kw_only=True):
    """Longest idle gap of a rank that ends when what it waits for arrives.

    Attributes
    ----------
    rank, start, end
        Rank and interval of the gap.
    notation
        The op whose start ends the wait, as ``op`` in JSON.
    source
        The rank on which, in this gap, the chain that caused the wait was farthest from the stage of that op, as
        ``from_rank`` in JSON; None if it was on the rank itself.
    behind
        The SEND or RECV that was ahead of the op's input on a communication stream and delayed it, such as ``2RECV_F3``; or
        the collective that the op waited for, such as ``2UNSHARD``.
    """

    rank: int
    start: float
    end: float
    notation: str = msgspec.field(name="op")
    source: int | None = msgspec.field(name="from_rank")
    behind: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def op(self) -> Op:
        """The op whose start ends the wait."""
        return parse_cell(self.notation)[0]

    @property
    def time(self) -> float:
        """Length of the gap."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class _Gap:
    """The longest gap of a rank, and which of all waits are in it, by their places."""

    rank: int
    start: float
    end: float
    op: int
    waits: Ints


def longest_waits(timeline: Timeline, idle: IdleTimes, streams: Streams | None = None) -> tuple[Wait | None, ...]:
    """Return the longest wait of each rank, the first of several; None if it never waits between its first and last op.

    ``streams`` are the communication streams of the timeline, if its messages run on streams.
    """
    ahead = _messages_ahead(timeline, streams)
    timeline = timed_only(timeline)
    gaps = [*_longest_gaps(timeline, idle)]
    ahead |= _collectives_awaited(timeline.schedule, idle, gaps)
    sources = _sources(timeline, idle, gaps)
    longest: list[Wait | None] = [None] * timeline.schedule.ranks
    for gap, source in zip(gaps, sources, strict=True):
        longest[gap.rank] = Wait(
            rank=gap.rank,
            start=gap.start,
            end=gap.end,
            notation=str(timeline.schedule.op(gap.op)),
            source=source,
            behind=ahead.get(gap.op, msgspec.UNSET),
        )
    return tuple(longest)


def _messages_ahead(timeline: Timeline, streams: Streams | None) -> dict[int, str]:
    """Return the message that delayed the input of each compute op or copy, by its position among these; few have one."""
    schedule = timeline.schedule
    if streams is None or schedule.kinds.isdisjoint(RECEIVE_KINDS):
        return {}
    arrival, kind = dependencies(schedule).arrival, schedule.columns.kind
    position = np.cumsum(timeline.timed) - 1
    needy = np.flatnonzero((arrival >= 0) & among(kind, COMPUTE_KINDS))
    blocker = held_up_by(timeline, streams)[arrival[needy]]
    late = blocker >= 0
    return {
        int(position[op]): str(schedule.op(int(other))) for op, other in zip(needy[late], blocker[late], strict=True)
    }


def _collectives_awaited(schedule: Schedule, idle: IdleTimes, gaps: Sequence[_Gap]) -> dict[int, str]:
    """Return the collective of its own rank that the op at the end of each gap waited for last, if it waited for one."""
    if schedule.kinds.isdisjoint(COLLECTIVE_KINDS):
        return {}
    kind, awaited = schedule.columns.kind, {}
    for gap in gaps:
        holder = idle.holder(gap.op)
        if holder >= 0 and kind[holder] == Kind.WAIT_REDUCE_GRAD:
            holder = idle.holder(holder)
        if holder >= 0 and kind[holder] in COLLECTIVE_KINDS:
            awaited[gap.op] = str(schedule.op(holder))
    return awaited


def _longest_gaps(timeline: Timeline, idle: IdleTimes) -> Iterator[_Gap]:
    stretches, waits = idle.stretches, idle.waits
    start = stretches.start.copy()
    start[waits] += idle.spent.start_up  # Before anything had started it is not waited for.
    waiting = stretches.reason == Reason.MEMORY
    waiting[waits] = idle.spent.nearest >= 0
    chosen = np.flatnonzero(waiting)
    ranks = np.arange(timeline.schedule.ranks + 1)
    for rank, (begin, stop) in enumerate(pairwise(np.searchsorted(stretches.rank[chosen], ranks).tolist())):
        here = chosen[begin:stop]
        gap = _longest(timeline, idle, rank, here, start[here]) if len(here) else None
        if gap is not None:
            yield gap


def _longest(timeline: Timeline, idle: IdleTimes, rank: int, here: Ints, start: Floats) -> _Gap | None:
    """Return the longest stretch of one rank, from its stretches in the order of time; a wait begins at ``start``."""
    rounding, end = tolerances.ROUNDING * timeline.makespan, idle.stretches.end[here]
    first = np.append(0, 1 + np.flatnonzero(start[1:] > end[:-1] + rounding))
    last = np.append(first[1:], len(here)) - 1
    lengths = end[last] - start[first]
    longest = int(np.argmax(lengths > lengths.max() - rounding))
    since, until = float(start[first[longest]]), float(end[last[longest]])
    row = np.arange(*timeline.schedule.offsets[rank : rank + 2].tolist())
    row = row[among(timeline.schedule.columns.kind[row], COMPUTE_KINDS)]
    after = int(np.searchsorted(timeline.start[row], until - rounding))
    if after >= len(row):
        return None
    stretches = here[first[longest] : last[longest] + 1]
    stretches = stretches[idle.stretches.reason[stretches] == WAITS]
    return _Gap(rank, since, until, int(row[after]), np.searchsorted(idle.waits, stretches))


def _sources(timeline: Timeline, idle: IdleTimes, gaps: Sequence[_Gap]) -> Iterator[int | None]:
    """Return the rank of the farthest op of the chain that causes each gap."""
    schedule = timeline.schedule
    stage = schedule.columns.stage.astype(np.int64)
    waits = np.concatenate([gap.waits for gap in gaps]) if gaps else np.zeros(0, np.int64)
    counts = np.array([len(gap.waits) for gap in gaps], np.int64)
    awaited = np.repeat(stage[[gap.op for gap in gaps]], counts) if gaps else waits
    causes = idle.farthest(waits, awaited)
    distance = np.where(causes < 0, -1, np.abs(stage[causes] - awaited))
    ends = np.cumsum(counts)
    for gap, (begin, stop) in zip(gaps, zip(ends - counts, ends, strict=True), strict=True):
        farthest = begin + int(distance[begin:stop].argmax()) if stop > begin else -1
        cause = int(causes[farthest]) if farthest >= 0 else -1
        source = int(schedule.rank[cause]) if cause >= 0 else gap.rank
        yield None if source == gap.rank else source


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
    *,
    what_ifs: Sequence[Remedy],
    times: Times,
) -> tuple[str, ...]:
    """Return a heading, one sentence per selected rank, then those on slow stages, the longest microbatch and the bound.

    The last three are left out if stages take about the same time or were not measured, if microbatches are alike, and if
    no idle windows explain the bound.
    """
    ranks = [_sentence(result, rank, totals[rank], waits[rank], times) for rank in ranks_told(result.timeline.idle)]
    rest = (*_slow_stages(result), *_longest_microbatch(result, what_ifs), *_bound(result, windows, times))
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
