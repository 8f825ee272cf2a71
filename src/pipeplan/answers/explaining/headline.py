"""The sentence with which an explanation begins: the makespan, the main reason of idle time, and what would help most."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.answers.explaining.measured import UNEXPLAINED
from pipeplan.answers.explaining.remedies import Remedy
from pipeplan.answers.explaining.sentences import AT_HAND, reason_in_words
from pipeplan.answers.simulating.headline import over_limit_in_words
from pipeplan.answers.simulating.result import Result
from pipeplan.foundation.readable import Times, percent
from pipeplan.model import Floats, Reason


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
    help_ = next((what for what in what_ifs if what.helps and what.kind in AT_HAND), None)
    help_ = help_ or next((what for what in what_ifs if what.helps), None)
    if result.over is not None:
        found = "nothing tried fits" if help_ is None else f"{help_.change} fits and takes {times.text(help_.makespan)}"
        return f"{name} is {over_limit_in_words(result.over)}; {found}"
    takes = f"{name}, measured, took" if measured else f"{name} takes"
    first = (
        f"{takes} {times.text(result.makespan)}; its ranks idle {percent(result.bubble.idle_over_total)} of that time"
    )
    shares = totals.sum(axis=0)
    if total := float(shares.sum()):
        most = Reason(int(shares.argmax()))
        first = f"{first}, {percent(float(shares[most]) / total)} of it {reason_in_words(result, most)}"
    return f"{first}; {_helping(help_, now)}{_on_costs(result, now) if measured else ''}" if what_ifs else first


def _on_costs(result: Result, now: Result) -> str:
    """Return that a change of a measured run is simulated, and how much of its step its costs explain, if not most of it."""
    explained = now.makespan / result.makespan if result.makespan else 1.0
    of = f", which explain {percent(explained)} of the step" if explained < 1 - UNEXPLAINED else ""
    return f", simulated on its measured times{of}"


def _helping(what: Remedy | None, now: Result) -> str:
    if what is None:
        return "no change that was tried helps"
    each = " per microbatch" if what.microbatches != now.microbatches else ""
    less = 1 - what.per_microbatch / (now.makespan / now.microbatches)
    return f"{what.change} would take {percent(less)} less{each}"
