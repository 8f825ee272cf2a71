"""Comparison of two configurations: what changed, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.extensions.review import ReviewFacts, spelling
from pipeplan.extensions.review.answers.records import (
    ReviewComparison,
    ReviewedConfiguration,
    ReviewFinding,
    SettingDifference,
)


def compared(
    facts: tuple[ReviewFacts, ReviewFacts],
    configurations: tuple[ReviewedConfiguration, ReviewedConfiguration],
    findings: tuple[Sequence[ReviewFinding], Sequence[ReviewFinding]],
) -> ReviewComparison:
    """Return the comparison of two configurations; a setting counts if one of their files states it."""
    before, after = configurations
    names = dict.fromkeys((*before.settings, *after.settings))
    first, second = facts
    differences = [
        SettingDifference(
            setting=spelling(first, name, "list"), before=first.get(name, None), after=second.get(name, None)
        )
        for name in names
        if first.get(name, None) != second.get(name, None)
    ]
    rules = [{finding.rule for finding in each} for each in findings]
    return ReviewComparison(
        before=before.file,
        after=after.file,
        settings=tuple(differences),
        gone=tuple(finding for finding in findings[0] if finding.rule not in rules[1]),
        new=tuple(finding for finding in findings[1] if finding.rule not in rules[0]),
        step_time_s=_both(before.step_time_s, after.step_time_s),
        peak_memory_gib=_both(before.peak_memory_gib, after.peak_memory_gib),
    )


def _both(before: float | None, after: float | None) -> tuple[float, float] | None:
    return None if before is None or after is None else (before, after)
