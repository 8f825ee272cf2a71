"""Records of a review: each finding, and each configuration with its estimate and its changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeplan.answers.simulating.result import idle_times_of
from pipeplan.extensions.planning.answers.one_configuration import simulated
from pipeplan.extensions.review import (
    Estimated,
    Judgement,
    Reading,
    ReviewFacts,
    RuleFault,
    VerifiedChange,
    estimate_or_none,
    missing_facts,
    spelling,
)
from pipeplan.extensions.review.answers.records import ReviewChange, ReviewedConfiguration, ReviewFinding
from pipeplan.extensions.review.answers.unjudged import not_read, questions_of, unknown_in
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Reason


@dataclass(frozen=True)
class Judged:
    """Configuration that was read and judged."""

    reading: Reading
    judgement: Judgement


def finding_of(fault: RuleFault, reading: Reading) -> ReviewFinding:
    """Return the record of a fault in a configuration."""
    rule, place = fault.rule, fault.place
    return ReviewFinding(
        rule=rule.id,
        severity=rule.severity,
        question=rule.question,
        where=str(place),
        file=place.file or reading.source.file,
        line=place.line,
        column=place.start + 1,
        end_column=place.end + 1 if place.start >= 0 else 0,
        message=fault.message,
        remedy=fault.remedy,
        source=rule.source,
        configuration=reading.facts.name,
        configuration_file=reading.source.file,
    )


def configuration_of(
    one: Judged, steps: Sequence[VerifiedChange], patch: str, unpatched: str, *, alone: bool
) -> ReviewedConfiguration:
    """Return the record of a configuration; the causes of idle time are found where it is ``alone``."""
    facts = one.reading.facts
    made = estimate_or_none(facts)
    trainer = facts.trainer.title if facts.trainer.name else ""
    return ReviewedConfiguration(
        name=facts.name,
        file=one.reading.source.file,
        trainer=trainer if facts.own is None else "pipeplan",
        settings={name: entry.value for name, entry in facts.settings.items() if not entry.assumed},
        questions=questions_of(one.judgement, facts),
        unknown=unknown_in(one.judgement, facts),
        not_read=tuple(not_read(one.judgement, facts)),
        assumed=() if made is None else made.assumed,
        not_estimated="" if made is not None else _why_not(facts, one.judgement.faults),
        changes=tuple(_change(step, facts) for step in steps),
        patch=patch if steps and not unpatched else "",
        unpatched=unpatched,
        **_estimates(made, alone=alone),
    )


def _why_not(facts: ReviewFacts, faults: Sequence[RuleFault]) -> str:
    if any(fault.rule.severity == "error" for fault in faults):
        return "the configuration does not start"
    return missing_facts(facts)


_ESTIMATES = (
    *("step_time_s", "peak_memory_gib", "peak_memory_by_rank_gib", "memory_limit_gib", "fit", "work_by_rank_s"),
    *("heaviest_rank", "bubble", "lower_bound_s", "idle"),
)
"""Fields of a configuration's record that need an estimate."""


def _estimates(made: Estimated | None, *, alone: bool) -> dict[str, Any]:
    if made is None:
        return dict.fromkeys(_ESTIMATES)
    count = made.configuration.microbatches
    # The causes need the simulated step, which is worth its time for one configuration.
    bound, idle = _pipeline_figures(made) if alone else (None, None)
    return {
        "step_time_s": made.estimate.step_time,
        "peak_memory_gib": made.peak_gib,
        "peak_memory_by_rank_gib": made.estimate.peak_memory_by_rank_gib,
        "memory_limit_gib": made.limit_gib,
        "fit": made.fit,
        "work_by_rank_s": tuple(count * time for time in made.rank_times),
        "heaviest_rank": made.heaviest,
        "bubble": made.bubble,
        "lower_bound_s": bound,
        "idle": idle,
    }


def _change(step: VerifiedChange, facts: ReviewFacts) -> ReviewChange:
    before, after = step.before, step.after
    return ReviewChange(
        settings={spelling(facts, name, "list"): value for name, value in step.changes.items()},
        removes=step.removes,
        gain=None if before is None or after is None else 1 - after.estimate.step_time / before.estimate.step_time,
        step_time_s=None if after is None else after.estimate.step_time,
        peak_memory_gib=None if after is None else after.peak_gib,
    )


_MOST_OPS = 60_000
"""Number of ops up to which the step is simulated for its reasons."""


def _pipeline_figures(made: Estimated) -> tuple[float | None, dict[str, float] | None]:
    """Return the lower bound of the pipeline's makespan in seconds, and the shares of idle time by reason.

    Returns None for both with one rank, or if the step has too many ops.
    """
    configuration = made.configuration
    if configuration.pipeline == 1 or 3 * configuration.stages * configuration.microbatches > _MOST_OPS:
        return None, None
    try:
        result = simulated(made.model, made.cluster, configuration)
    except PipeplanError:
        return None, None
    totals = idle_times_of(result).totals(result.ranks).sum(axis=0)
    whole = float(totals.sum())
    shares = {reason.key: float(totals[reason]) / whole for reason in Reason if whole and totals[reason]}
    return float(result.lower_bound), shares
