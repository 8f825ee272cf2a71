"""An explanation for a terminal: why ranks idle, in sentences and by reason, and what would help, down to what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeplan.api.explaining.explanations import Explanation
from pipeplan.api.explaining.remedies import Remedy, round_off
from pipeplan.api.explaining.waits import Wait
from pipeplan.api.tables.advice import advice
from pipeplan.api.tables.parts import columns, facts, left_out, line, shown_ranks, sizes
from pipeplan.api.tables.results import activations_of, notes, warnings
from pipeplan.api.tables.windows import bound_parts, bound_sentences
from pipeplan.model import Kind, counted
from pipeplan.readable import Times, change, percent
from pipeplan.simulation import Reason

MOST_STAGES = 4
"""How many stages of the critical path are named."""

MOST_RANKS = 4
"""Up to so many ranks have a sentence each; of more, the first, the last and the one that idles most."""

_WORDS = {
    Reason.START_UP: "before the first microbatch can reach it",
    Reason.COMPUTE: "waiting for ops on other ranks",
    Reason.TRANSFER: "waiting for messages",
    Reason.IMBALANCE: "waiting for slower stages",
    Reason.MEMORY: "held back by the memory limit",
    Reason.DRAIN: "after its last op",
    Reason.OVERHEAD: "between ops",
    Reason.OFFLOAD: "waiting for copies to the host",
    Reason.RELOAD: "waiting for copies back from the host",
}

_ARRIVES = {
    Kind.F: "the forward of",
    Kind.B: "the backward of",
    Kind.I: "the backward of",
    Kind.R: "the recomputation of",
}


def explanation_parts(explanation: Explanation) -> Iterator[RenderableType]:
    """The heading, a sentence a rank, the reasons by rank, the critical path, what would help, and what to do."""
    result = explanation.result
    times = _times(explanation)
    yield line(_heading(explanation, times), "bold")
    yield Text("")
    yield from (line(_sentence(explanation, rank, times)) for rank in _told(explanation))
    yield Text("")
    yield _reasons(explanation, times)
    yield from left_out(result.schedule.ranks)
    yield from bound_parts(explanation, times)
    yield Text("\ncritical path", style="bold")
    yield Padding(facts(_path(explanation, times)), (0, 0, 1, 0))
    yield from _remedies(explanation, times)
    if result.notes or result.warnings:
        yield Text("")
    yield from notes(result.notes)
    yield from warnings(result.warnings)


def sentences(explanation: Explanation) -> tuple[str, ...]:
    """The heading, a sentence for each rank that is told of, and one on the bound where windows of time explain it."""
    times = _times(explanation)
    ranks = (_sentence(explanation, rank, times) for rank in _told(explanation))
    return (_heading(explanation, times), *ranks, *bound_sentences(explanation, times))


def closing(explanation: Explanation) -> str:
    """What to do next; empty for a timeline that has its times already."""
    return advice(explanation, _times(explanation)) if explanation.what_ifs else ""


def _times(explanation: Explanation) -> Times:
    result = explanation.result
    return Times.of([result.makespan, *(what.makespan for what in explanation.what_ifs)], result.timeline.unit)


def _heading(explanation: Explanation, times: Times) -> str:
    result = explanation.result
    name = f"{result.name or 'a run'}, measured" if result.timeline.source == "measured" else result.name
    number = counted(result.schedule.microbatches, "microbatch")
    each = Times.of([explanation.per_microbatch], result.timeline.unit).text(explanation.per_microbatch)
    shared = f", {each} each" if result.schedule.microbatches > 1 else ""
    idle = percent(result.timeline.bubble.idle_over_total)
    return f"{name}: {times.text(result.makespan)} for {number}{shared}; its ranks idle {idle} of that time"


def _told(explanation: Explanation) -> Sequence[int]:
    """The ranks that have a sentence."""
    idle = explanation.result.timeline.idle
    if len(idle) <= MOST_RANKS:
        return range(len(idle))
    return sorted({0, int(idle.argmax()), len(idle) - 1})


def _sentence(explanation: Explanation, rank: int, times: Times) -> str:
    """How long a rank idles, for what reasons, and its longest wait."""
    timeline = explanation.result.timeline
    idle, totals = float(timeline.idle[rank]), explanation.totals[rank]
    reasons = [Reason(code) for code in np.argsort(-totals, kind="stable") if totals[code] > 0]
    if not reasons:
        return f"Rank {rank} never idles."
    parts = times.parts(map(float, totals))  # In the order of the table: the same time is the same number there.
    told = ", ".join(f"{parts[reason]} {_WORDS[reason]}" for reason in reasons if parts[reason].strip("0."))
    said = f"Rank {rank} idles {times.number(idle)} of {times.text(timeline.makespan)} ({percent(idle / timeline.makespan)})"
    wait = explanation.waits[rank]
    return f"{said}: {told or 'in gaps too short to show'}.{'' if wait is None else _longest(wait, times)}"


def _longest(wait: Wait, times: Times) -> str:
    """For which op a rank waits longest, and where it comes from."""
    if not times.number(wait.time).strip("0.") or wait.op.kind not in _ARRIVES:
        return ""
    part = f", slice {wait.op.slice}" if wait.op.slice else ""
    arrives = "arrive" if wait.op.kind is Kind.F else "come back"
    origin = "" if wait.source is None else f" to {arrives} from rank {wait.source}"
    since = f"{times.number(wait.start)} to {times.number(wait.end)}"
    return (
        f" Its longest wait, {times.number(wait.time)} from {since}, is for {_ARRIVES[wait.op.kind]} microbatch "
        f"{wait.op.microbatch}{part}{origin}."
    )


def _reasons(explanation: Explanation, times: Times) -> Table:
    """Idle time of every rank by reason; reasons that never occur are left out."""
    totals = explanation.totals
    occurring = [reason for reason in Reason if totals[:, reason].any()]
    unit = f" ({times.unit})" if times.unit else ""
    table = columns("rank", f"idle{unit}", *(reason.key for reason in occurring), padding=1)
    shown = shown_ranks(len(totals))
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        idle = float(explanation.result.timeline.idle[rank])
        table.add_row(str(rank), times.number(idle), *times.parts(float(totals[rank, reason]) for reason in occurring))
    shares = totals.sum(axis=0) / max(float(totals.sum()), 1e-300)
    table.add_section()
    table.add_row("all", percent(1.0 if occurring else 0.0), *(percent(float(shares[reason])) for reason in occurring))
    return table


def _path(explanation: Explanation, times: Times) -> list[tuple[str, str]]:
    path, makespan = explanation.path, explanation.result.makespan
    between = "transfers and waiting" if path.overhead else "between ops"
    named = [(kind.name, time) for kind, time in path.by_kind.items()]
    named += [("gaps between ops", path.overhead)] if path.overhead else []
    named.append((between, path.transfer))
    numbers = times.parts(time for _, time in named)
    rows = [
        (name, f"{number}  ({percent(time / makespan)})") for (name, time), number in zip(named, numbers, strict=True)
    ]
    largest = np.argsort(-path.by_stage, kind="stable")[:MOST_STAGES]
    stages = [f"{stage} ({percent(path.by_stage[stage] / makespan)})" for stage in largest if path.by_stage[stage]]
    return [*rows, ("stages", ", ".join(stages))]


def _remedies(explanation: Explanation, times: Times) -> Iterator[RenderableType]:
    if not explanation.what_ifs:
        yield Text("what-ifs are simulated: they need a schedule and its costs")
        return
    helping = explanation.helping
    if helping:
        yield _helping(explanation, helping, times)
    rest = [what.change for what in explanation.what_ifs if what not in helping]
    if rest:
        yield line(f"{'tried too, no help' if helping else 'tried, no help'}: {', '.join(rest)}")
    yield Text("")
    yield line(advice(explanation, times))


def _helping(explanation: Explanation, helping: Sequence[Remedy], times: Times) -> Table:
    """Beside what is now: the step, its time for each microbatch, and what the fullest rank holds."""
    result = explanation.result
    in_bytes = helping[0].peak_bytes is not None
    each = Times.of([explanation.per_microbatch, *(what.per_microbatch for what in helping)], result.timeline.unit)
    units = [f"\n({form.unit})" if form.unit else "" for form in (times, each)]
    peak = "peak\nmemory" if in_bytes else "peak\nact."
    step, share_of_step = f"makespan{units[0]}", f"a microbatch{units[1]}"
    table = columns("what would help", step, share_of_step, "change", peak, padding=1, least=(step, peak))
    now = float((result.memory.peak_bytes if in_bytes else result.memory.peak_activation).max())  # type: ignore[union-attr]
    peaks = (sizes if in_bytes else activations_of)([now, *(what.peak for what in helping)])
    mark = "" if result.fits else " !"
    table.add_row(f"(now){mark}", times.number(result.makespan), each.number(explanation.per_microbatch), "", peaks[0])
    for what, held in zip(helping, peaks[1:], strict=True):
        share = round_off(what.per_microbatch) / round_off(explanation.per_microbatch) - 1
        table.add_row(what.change, times.number(what.makespan), each.number(what.per_microbatch), change(share), held)
    return table
