"""The sentence with which an explanation begins: the makespan, the main reason of idle time, and what would help most."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.answers.explaining.measured import UNEXPLAINED
from pipeplan.answers.explaining.remedies import LEAST_GAIN, Remedy
from pipeplan.answers.explaining.sentences import AT_HAND, reason_in_words
from pipeplan.answers.simulating.headline import over_limit_in_words
from pipeplan.answers.simulating.result import Result
from pipeplan.foundation.readable import Times, percent
from pipeplan.model import Floats, Reason
from pipeplan.simulation import HYPOTHETICAL


def headline_of(result: Result, totals: Floats, what_ifs: Sequence[Remedy], times: Times, *, now: Result) -> str:
    """Return the answer in one sentence.

    Parameters
    ----------
    result
        The schedule, or the timeline as it was measured.
    totals
        Idle time by rank and reason, shape (ranks, reasons).
    what_ifs
        The simulated changes, the best first.
    now
        What the changes are compared with.
    """
    measured = result.timeline.source == "measured"
    name = result.name or ("a run" if measured else "this schedule")
    helping = [what for what in what_ifs if what.helps]
    if result.over is not None:
        best = next((what for what in helping if what.kind in AT_HAND), None) or next(
            filter(_is_possible, helping), None
        )
        found = "nothing tried fits" if best is None else f"{_with(best)} fits and takes {times.text(best.makespan)}"
        return f"{name} is {over_limit_in_words(result.over)}; {found}"
    takes = f"{name}, measured, took" if measured else f"{name} takes"
    first = f"{takes} {times.text(result.makespan)}; its ranks {_idle(result, totals)}"
    return f"{first}; {_helping(helping, now)}{_on_costs(result, now) if measured else ''}" if what_ifs else first


def _idle(result: Result, totals: Floats) -> str:
    """Return how much of their time the ranks idle, and for which reason most of it."""
    shares = totals.sum(axis=0)
    total = float(shares.sum())
    if not total:
        return "never idle"
    most = Reason(int(shares.argmax()))
    idle, share = percent(result.bubble.idle_over_total), percent(float(shares[most]) / total)
    return f"idle {idle} of that time, {share} of it {reason_in_words(result, most)}"


def _on_costs(result: Result, now: Result) -> str:
    """Return that a change of a measured run is simulated, and how much of its step its costs explain, if not most of it."""
    explained = now.makespan / result.makespan if result.makespan else 1.0
    of = f", which explain {percent(explained)} of the step" if explained < 1 - UNEXPLAINED else ""
    return f", simulated on its measured times{of}"


def _helping(helping: Sequence[Remedy], now: Result) -> str:
    """Return what to do: the best change at hand, else a search or another change; else what costs the most."""
    at_hand = next((what for what in helping if what.kind in AT_HAND), None)
    if at_hand is not None:
        return f"{_with(at_hand)} would take {_less(at_hand, now)}"
    possible = next(filter(_is_possible, helping), None)
    left = 1 - now.bound.value / now.makespan if now.gap else 0.0
    if left >= LEAST_GAIN and (possible is None or left >= _saved(possible, now)):
        return f"a search may find an order that takes up to {percent(left)} less"
    if possible is not None:
        return f"{_with(possible)} would take {_less(possible, now)}"
    if helping:
        return f"even {_with(helping[0])} would take only {_less(helping[0], now)}"
    return "no change that was tried helps"


def _is_possible(what: Remedy) -> bool:
    return what.kind != "memory" and what.change not in HYPOTHETICAL


def _with(what: Remedy) -> str:
    """Return the subject of a sentence on a change."""
    own = what.kind in ("schedule", "order", "chunks", "microbatches")
    return what.change if own else f"the same order with {what.change}"


def _less(what: Remedy, now: Result) -> str:
    each = " per microbatch" if what.microbatches != now.microbatches else ""
    return f"{percent(_saved(what, now))} less{each}"


def _saved(what: Remedy, now: Result) -> float:
    return 1 - what.per_microbatch / (now.makespan / now.microbatches)
