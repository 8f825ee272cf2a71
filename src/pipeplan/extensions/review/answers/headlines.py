"""Headline of a review: one sentence on what starts, what is right, what is lost, and what the patch gains.

What was not judged is counted: a sentence never calls a configuration right beyond the rules that could judge it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pipeplan.answers.parts import figure
from pipeplan.extensions.review import Severity
from pipeplan.extensions.review.answers.records import (
    ReviewComparison,
    ReviewedConfiguration,
    ReviewedFiles,
    ReviewedRun,
    ReviewFinding,
)
from pipeplan.extensions.review.answers.unjudged import ReviewedQuestion
from pipeplan.foundation.readable import change, percent
from pipeplan.model import counted

NOTHING_GAINED = 0.005
"""Gain of a patch below which it is not worth a word."""

_MOST_NAMED = 3
"""Rules that a headline names; the table lists all."""

DOES_NOT_FIT = "memory-does-not-fit"
"""Rule of a peak above the memory of the GPU."""


def headline_of(
    findings: Sequence[ReviewFinding],
    configurations: Sequence[ReviewedConfiguration],
    questions: Sequence[ReviewedQuestion],
    *,
    comparison: ReviewComparison | None,
    files: ReviewedFiles,
    run: ReviewedRun | None,
) -> str:
    """Return the sentence on a configuration, on the comparison of two, or on all of several files."""
    unreadable = _unreadable(files)
    if not configurations:
        return unreadable or f"No configuration in {counted(files.looked_at, 'file')}"
    if comparison is not None:
        sentence = "; ".join(_of_two(comparison, configurations, findings))
    elif len(configurations) == 1:
        sentence = "; ".join(_of_one(configurations[0], findings))
    else:
        sentence = "; ".join(_of_several(configurations, findings, questions))
    if run is not None:
        predicted = "" if run.predicted is None else f", {change(run.predicted)} of the estimate"
        sentence += f"; its run took {figure(run.step_time_s)} s a step{predicted}"
    return f"{sentence}; {unreadable}" if unreadable else sentence


def _unreadable(files: ReviewedFiles) -> str:
    if not files.unreadable:
        return ""
    count = len(files.unreadable)
    return f"{files.unreadable[0].file} cannot be read" if count == 1 else f"{count} files cannot be read"


def _of_one(configuration: ReviewedConfiguration, findings: Sequence[ReviewFinding]) -> Iterator[str]:
    errors = _with(findings, "error")
    stopped = [finding for finding in errors if finding.question == "starts"]
    faults = f"{counted(len(errors), 'error')} ({_named(errors)})"
    if stopped:
        yield f"{configuration.file} does not start: {faults}"
    elif errors:
        yield f"{configuration.file} starts but trains wrongly: {faults}"
    else:
        yield _sound(configuration)
    warnings = _with(findings, "warning")
    if not errors:
        if figures := _figures(configuration.step_time_s, configuration.peak_memory_gib):
            over = any(finding.rule == DOES_NOT_FIT for finding in warnings)
            fit = f", which does not fit in {configuration.memory_limit_gib:.1f} GiB" if over else ""
            yield f"it takes {figures}{fit}"
        if warnings:
            yield f"{counted(len(warnings), 'warning')} ({_named(warnings)})"
    yield from _remedy(configuration, [*errors, *warnings])


def _sound(configuration: ReviewedConfiguration) -> str:
    """Return how far a configuration without errors is right: by all rules, or by those that could judge it."""
    name, unknown = configuration.file, configuration.unknown
    judged = sum(question.judged for question in configuration.questions)
    rules = judged + sum(question.not_judged for question in configuration.questions)
    if not judged:
        return f"{name} is not judged: no rule could be applied"
    if unknown:
        missing = f"{' and '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} unknown"
        return (
            f"Whether {name} starts is not known, because {missing}; {judged} of {rules} rules could judge it: no error"
        )
    if judged == rules:
        return f"{name} starts and is right by all {rules} rules"
    return f"{name} starts and is right as far as {judged} of {rules} rules could judge"


def _remedy(configuration: ReviewedConfiguration, faults: Sequence[ReviewFinding]) -> Iterator[str]:
    """Yield what the changes achieve: they remove errors, or they gain time."""
    if not configuration.changes:
        return
    name, removes = ("the changes", "remove") if configuration.unpatched else ("the patch", "removes")
    removed = {rule for step in configuration.changes for rule in step.removes}
    errors = _with(faults, "error")
    left = [finding for finding in errors if finding.rule not in removed]
    last = configuration.changes[-1]
    figures = _figures(last.step_time_s, last.peak_memory_gib)
    if left:
        yield f"{name} {removes} {len(errors) - len(left)} of {counted(len(errors), 'error')}"
        return
    before, after = configuration.step_time_s, last.step_time_s
    gain = 0.0 if before is None or after is None else 1 - after / before
    if gain >= NOTHING_GAINED:
        count = len(configuration.changes)
        yield f"{'a change gains' if count == 1 else f'{count} changes gain'} {percent(gain)}: {figures}"
    elif figures:
        yield f"with {name} it takes {figures}"
    else:
        named = errors or _with(faults, "warning")
        gone = [finding for finding in named if finding.rule in removed]
        what = "it" if len(named) == 1 else "them"
        if gone:
            yield f"{name} {removes} {what if gone == named else f'{len(gone)} of {len(named)}'}"


def _of_several(
    configurations: Sequence[ReviewedConfiguration],
    findings: Sequence[ReviewFinding],
    questions: Sequence[ReviewedQuestion],
) -> Iterator[str]:
    errors, warnings = _with(findings, "error"), _with(findings, "warning")
    broken, slow = _owners(errors), _owners(warnings)
    count = counted(len(configurations), "configuration")
    if broken:
        verb = "does" if len(broken) == 1 else "do"
        faults = f"{counted(len(errors), 'error')} ({_named(errors)})"
        yield f"{len(broken)} of {count} {verb} not start, or {verb} not train right: {faults}"
    if warned := len(slow - broken):
        have = "has warnings" if warned == 1 else "have warnings"
        yield f"{warned} more {have}" if broken else f"{warned} of {count} {have} ({_named(warnings)})"
    judged = sum(question.judged for question in questions)
    rules = judged + sum(question.not_judged for question in questions)
    unknown = sum(bool(configuration.unknown) for configuration in configurations)
    known = f", and layers, degrees or the trainer of {unknown} are unknown" if unknown else ""
    if not broken and not slow:
        yield f"{count}: no error or warning as far as {judged:,} of {rules:,} checks were possible{known}"
    elif judged < rules:
        yield f"{judged:,} of {rules:,} checks were possible{known}"


def _owners(findings: Iterable[ReviewFinding]) -> set[tuple[str, str]]:
    return {(finding.configuration_file, finding.configuration) for finding in findings}


def _of_two(
    comparison: ReviewComparison, configurations: Sequence[ReviewedConfiguration], findings: Sequence[ReviewFinding]
) -> Iterator[str]:
    before, after = comparison.before, comparison.after
    broken = {finding.configuration_file for finding in _with(findings, "error")}
    if comparison.step_time_s is not None and comparison.peak_memory_gib is not None:
        (step, other_step), (peak, other_peak) = comparison.step_time_s, comparison.peak_memory_gib
        figures = f"{figure(other_step)} for {figure(step)} s a step, {other_peak:.1f} for {peak:.1f} GiB"
        gain = 1 - other_step / step
        faster = f"{percent(abs(gain))} {'faster' if gain > 0 else 'slower'} than"
        yield f"{after} is {faster if abs(gain) >= NOTHING_GAINED else 'as fast as'} {before}: {figures}"
    else:
        yield f"{after} differs from {before} in {counted(len(comparison.settings), 'setting')}"
    for findings_of, verb in ((comparison.gone, "gone"), (comparison.new, "new")):
        faults = [finding for finding in findings_of if finding.severity != "advice"]
        if faults:
            yield f"{verb}: {_named(faults)}"
    if comparison.step_time_s is None:
        stopped = [name for name in (before, after) if name in broken]
        why = f"{' and '.join(stopped)} {'have' if len(stopped) > 1 else 'has'} errors"
        yield f"no times, because {why if stopped else 'they say too little for an estimate'}"
    if comparison.gone or comparison.new:
        return
    judged = sum(question.judged for each in configurations for question in each.questions)
    yield "the same rules find fault with both" if findings else f"no fault in {judged} checks"


def _with(findings: Iterable[ReviewFinding], severity: Severity) -> list[ReviewFinding]:
    return [finding for finding in findings if finding.severity == severity]


def _named(findings: Iterable[ReviewFinding]) -> str:
    """Return the rules that are broken, the most frequent first: ``expert-grid, layers-per-rank and 2 more``."""
    rules = [rule for rule, _ in Counter(finding.rule for finding in findings).most_common()]
    more = f" and {len(rules) - _MOST_NAMED} more" if len(rules) > _MOST_NAMED else ""
    return f"{', '.join(rules[:_MOST_NAMED])}{more}"


def _figures(step: float | None, peak: float | None) -> str:
    """Return ``5.979 s a step and 53.8 GiB``; empty without an estimate."""
    if step is None:
        return ""
    return f"{figure(step)} s a step" + ("" if peak is None else f" and {peak:.1f} GiB")
