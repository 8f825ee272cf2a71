"""From faults to changes: repairs that remove them, each judged again and estimated again before it is proposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from pipeplan.extensions.review.estimating import Estimated, estimated
from pipeplan.extensions.review.facts import NotSet, ReviewFacts
from pipeplan.extensions.review.repairs import REPAIRS, Changes
from pipeplan.extensions.review.rule import RuleFault, RuleRow, judged
from pipeplan.foundation.errors import PipeplanError

_MOST_STEPS = 8
"""Maximum number of changes that are made one after the other."""

_MOST_TRIALS = 60
"""Maximum number of changes that are tried for a fault."""

_MOST_HELPING = 4
"""Maximum number of helpful changes of which the best is taken."""

_CLEAN = (0, 0)
"""Score without errors and warnings."""

_SLOWER = 1.01
"""Largest factor on the step time of a layout that a smaller change may take in place of the best one."""


@dataclass(frozen=True, slots=True)
class VerifiedChange:
    """Change of a configuration that removes faults.

    Attributes
    ----------
    changes
        New values of settings.
    removes
        Identifiers of the rules whose faults it removes.
    before, after
        Estimates before and after the change; None if there is none.
    """

    changes: Changes
    removes: tuple[str, ...]
    before: Estimated | None
    after: Estimated | None


def estimate_or_none(c: ReviewFacts) -> Estimated | None:
    """Return the estimate of a configuration; None if it does not say enough, or cannot be."""
    try:
        made = estimated(c)
        return made if made.estimate.step_time > 0 else None
    except (NotSet, PipeplanError):
        return None


def improvements(c: ReviewFacts, rules: Sequence[RuleRow]) -> Iterator[VerifiedChange]:
    """Yield changes that remove errors and warnings, one on top of the other, until none is left or none helps."""
    given_up: set[str] = set()
    for _ in range(_MOST_STEPS):
        faults = [fault for fault in judged(c, rules) if fault.rule.severity != "advice"]
        # A balanced layout saves memory too, and time, where repairs of tight memory alone cost time.
        faults.sort(key=lambda fault: fault.rule.id == "memory-tight")
        step = next(
            (step for fault in faults if fault.rule.id not in given_up for step in _step(c, fault, faults, rules)), None
        )
        if step is None:
            return
        changes = needed(c, step[0], rules)
        after = c.changed(changes)
        left = {fault.rule.id for fault in judged(after, rules)}
        removed = tuple(fault.rule.id for fault in faults if fault.rule.id not in left)
        yield VerifiedChange(changes, removed, estimate_or_none(c), estimate_or_none(after))
        given_up |= {fault.rule.id for fault in faults} & left if not removed else set()
        c = after


def _step(
    c: ReviewFacts, fault: RuleFault, faults: Sequence[RuleFault], rules: Sequence[RuleRow]
) -> Iterator[tuple[Changes, ReviewFacts]]:
    """Yield the best change for a fault, if any helps: that which leaves the fewest errors, then the least that is fast."""
    now = _score(faults)
    helping: list[tuple[tuple[int, int], Changes, ReviewFacts]] = []
    for changes in _candidates(c, fault):
        after = c.changed(changes)
        left = judged(after, rules) if changes else faults
        score = _score(left)
        if score < now and all(other.rule.id != fault.rule.id for other in left):
            helping.append((score, changes, after))
            if (score == _CLEAN and not _SPLITS & changes.keys()) or len(helping) == _MOST_HELPING:
                break
    if not helping:
        return
    # What a change of an error leaves to warn of is repaired next.
    weighed = [score[:1] if fault.rule.severity == "error" else score for score, _, _ in helping]
    least = [step for step, weight in zip(helping, weighed, strict=True) if weight == min(weighed)]
    times = [_time(after) for _, _, after in least]
    _, changes, after = next(step for step, time in zip(least, times, strict=True) if time <= _SLOWER * min(times))
    yield changes, after


def _candidates(c: ReviewFacts, fault: RuleFault) -> Iterator[Changes]:
    left = _MOST_TRIALS
    for name in fault.rule.repairs:
        try:
            for changes in REPAIRS[name](c):
                yield changes
                left -= 1
                if not left:
                    return
        except NotSet:
            continue


_SPLITS = {"layout", "first_stage_layers", "last_stage_layers", "modules_per_part", "first_stage_less"}
"""Settings of a split: several candidates are estimated, because the smallest change may be slow."""

_WEIGHTS = {"memory-does-not-fit": 3, "stages-unbalanced": 2}


def _score(faults: Sequence[RuleFault]) -> tuple[int, int]:
    """Return errors, and warnings by their weight: a change must lower this."""
    errors = sum(fault.rule.severity == "error" for fault in faults)
    warnings = sum(_WEIGHTS.get(fault.rule.id, 1) for fault in faults if fault.rule.severity == "warning")
    return errors, warnings


_TOGETHER = {
    *("gpus", "nodes", "gpus_per_node"),
    "sequence_parallel",
    *("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"),
}
"""Settings that a trainer takes together, though a review may tell the same from some of them."""


def needed(c: ReviewFacts, changes: Changes, rules: Sequence[RuleRow]) -> Changes:
    """Return changes without those that change neither the judgement nor the estimate."""
    for name in sorted(changes.keys() - _TOGETHER):
        fewer = {other: value for other, value in changes.items() if other != name}
        same = c.get(name, None) == changes[name] and not c.settings[name].assumed if name in c.settings else False
        if fewer and (same or _figures(c.changed(fewer), rules) == _figures(c.changed(changes), rules)):
            changes = fewer
    return changes


def _figures(c: ReviewFacts, rules: Sequence[RuleRow]) -> tuple[Any, ...]:
    made = estimate_or_none(c)
    estimate = None if made is None else (made.estimate.step_time, made.peak_gib)
    return [(fault.rule.id, fault.message) for fault in judged(c, rules)], estimate


def _time(c: ReviewFacts) -> float:
    """Return the step time of a configuration, infinite without an estimate."""
    made = estimate_or_none(c)
    return made.estimate.step_time if made is not None else inf


def combined(steps: Sequence[VerifiedChange]) -> dict[str, Any]:
    """Return the changes of all steps together; later ones override earlier ones."""
    changes: dict[str, Any] = {}
    for step in steps:
        changes |= step.changes
    return changes
