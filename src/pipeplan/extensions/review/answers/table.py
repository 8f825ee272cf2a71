"""Text of a review: a comparison, the summary of a folder on one page, or each configuration with its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeplan.answers.headlined import ShownOptions, more_rows
from pipeplan.answers.parts import MOST_ROWS, columns, facts, figure, line
from pipeplan.extensions.review import Question, Severity, plain
from pipeplan.extensions.review.answers.records import (
    ReviewChange,
    ReviewComparison,
    ReviewedConfiguration,
    ReviewedFiles,
    ReviewedRun,
    ReviewFinding,
    UnreadableFile,
)
from pipeplan.extensions.review.answers.unjudged import OTHER_SETTINGS, ReviewedQuestion
from pipeplan.foundation.readable import change as relative
from pipeplan.foundation.readable import percent
from pipeplan.model import REASON_WORDS, counted
from pipeplan.trainers import TRAINER_KINDS

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part

_Reviewed = tuple[ReviewedConfiguration, Sequence[ReviewFinding]]
"""Configuration with its findings."""

_TITLES: Mapping[Question, str] = {
    "starts": "does it start",
    "right": "is it right",
    "loses": "where it loses",
    "fits": "does it fit",
}

_MOST_RULES, _MOST_PLACES, _MOST_FILES = MOST_ROWS, 2, 6
"""Rules, places of a rule, and files that the summary of a folder lists without ``--all``."""

_MOST_REASONS = 4
"""Missing facts that a line on unjudged rules names."""

_FEWEST_FILES = 2
"""Minimum number of files with findings for the list of those with the most."""

UNKNOWN_TRAINER = f"""unknown trainer: only rules for every trainer were judged; --trainer names it: {
    ", ".join(kind.names[0] for kind in TRAINER_KINDS)
}"""


def configuration_parts(reviewed: Sequence[_Reviewed], patch: str, shown: ShownOptions) -> Iterator[Part]:
    """Yield the text of configurations with their patch; of several ones, those without findings are only named."""
    several = len(reviewed) > 1
    found = [each for each in reviewed if not several or each[1]]
    listed = found if shown.all else found[:MOST_ROWS]
    for place, (configuration, findings) in enumerate(listed):
        if place:
            yield line()
        if shown.verbose:
            yield from _whole(configuration, findings, shown)
        elif several:
            yield from _shortly(configuration, findings, shown)
        else:
            yield from _alone(configuration, findings, shown)
    yield from more_rows(len(found) - len(listed), "configuration")
    silent = [configuration for configuration, findings in reviewed if several and not findings]
    if silent:
        yield from [line()] if listed else []
        named = silent if shown.all else silent[:MOST_ROWS]
        yield line(f"without findings: {', '.join(map(_in_list, named))}")
        yield from more_rows(len(silent) - len(named), "configuration without findings")
    if patch:
        yield line()
        yield patch.rstrip("\n")


def file_parts(files: ReviewedFiles) -> Iterator[Part]:
    """Yield a line for each file that could not be read, and the number of those without a configuration."""
    yield from (_unreadable(file) for file in files.unreadable)
    if files.skipped:
        yield line(f"skipped: {counted(files.skipped, 'file')} without a configuration")


def _unreadable(file: UnreadableFile, start: str = "", indent: int = 0) -> Part:
    """Return a line on a file that cannot be read; most reasons name it, from ``start`` on."""
    name, reason = file.file.removeprefix(start), file.reason.replace(file.file, file.file.removeprefix(start))
    return line(f"cannot be read: {reason if name in reason else f'{name}: {reason}'}", indent=indent)


def _in_list(configuration: ReviewedConfiguration) -> str:
    """Return the name of a configuration, with a note on what is unknown of it."""
    name = configuration.name or configuration.file
    if configuration.unknown:
        return f"{name} (unknown: {', '.join(configuration.unknown)})"
    return f"{name} (no estimate)" if configuration.not_estimated else name


def _title(configuration: ReviewedConfiguration) -> Part:
    name = f"{configuration.file} {configuration.name}".strip()
    return line(f"{name}: {configuration.trainer or 'unknown trainer'}", "bold")


def _alone(
    configuration: ReviewedConfiguration, findings: Sequence[ReviewFinding], shown: ShownOptions
) -> Iterator[Part]:
    """Yield one configuration by question: each error and warning with the change that removes it, or its remedy."""
    yield _title(configuration)
    if not configuration.trainer:
        yield line(UNKNOWN_TRAINER)
    left = len(findings) if shown.all else MOST_ROWS
    told: set[int] = set()
    faults = [finding for finding in findings if finding.severity != "advice"]
    for answered in configuration.questions:
        own = [finding for finding in findings if finding.question == answered.question]
        yield line(f"{_TITLES[answered.question]}: {_in_counts(own) or _nothing(answered)}", "bold" if own else "")
        for finding in [finding for finding in own if finding.severity != "advice"][:left]:
            left -= 1
            yield line(f"{finding.rule}, {finding.where.partition(' ')[0]}: {finding.message}", indent=2)
            yield line(f"-> {_removal(configuration, finding, told)}", indent=4)
    yield from more_rows(max(len(faults) - (len(findings) if shown.all else MOST_ROWS), 0), "finding")
    yield from _unjudged(configuration.questions, indent=0)
    yield from _not_read(configuration)
    if not any(finding.severity == "error" for finding in findings):
        yield line()
        yield from _estimate(configuration)
    if configuration.unpatched:
        yield line(f"not in the patch: {configuration.unpatched}")


def _in_counts(findings: Sequence[ReviewFinding]) -> str:
    """Return ``3 errors, 1 warning, 2 remarks``; empty without findings."""
    counts = Counter(finding.severity for finding in findings)
    nouns: Mapping[Severity, str] = {"error": "error", "warning": "warning", "advice": "remark"}
    return ", ".join(counted(counts[severity], noun) for severity, noun in nouns.items() if counts[severity])


def _removal(configuration: ReviewedConfiguration, finding: ReviewFinding, told: set[int]) -> str:
    """Return the verified change that removes a finding, with its figures where it is ``told`` first; else the remedy."""
    for place, step in enumerate(configuration.changes):
        if finding.rule in step.removes:
            first = place not in told
            told.add(place)
            return "; ".join((_words(step), *_effect(step))) if first else "removed by the same change"
    return finding.remedy


def _whole(
    configuration: ReviewedConfiguration, findings: Sequence[ReviewFinding], shown: ShownOptions
) -> Iterator[Part]:
    yield _title(configuration)
    if not configuration.trainer:
        yield line(UNKNOWN_TRAINER)
    for answered in configuration.questions:
        own = [finding for finding in findings if finding.question == answered.question]
        yield line()
        yield from _question(answered, own, shown)
    yield from _not_read(configuration)
    yield line()
    yield from _estimate(configuration)
    yield from _changes(configuration)


def _question(answered: ReviewedQuestion, findings: Sequence[ReviewFinding], shown: ShownOptions) -> Iterator[Part]:
    title = _TITLES[answered.question]
    yield line(title if findings else f"{title}: {_nothing(answered)}", "bold" if findings else "")
    listed = findings if shown.all else findings[:MOST_ROWS]
    for finding in listed:
        yield line(f"{finding.severity} [{finding.rule}] {finding.where}", indent=2)
        yield line(f"{finding.message}.", indent=4)
        yield line(f"{finding.remedy}.", indent=4)
    yield from more_rows(len(findings) - len(listed), "finding")
    yield from (line(fact.sentence, indent=2) for fact in answered.missing)


def _nothing(answered: ReviewedQuestion) -> str:
    """Return the answer to a question without findings, which depends on what was judged."""
    if not answered.not_judged:
        return "nothing found" if answered.judged else "no rule applies"
    return f"no fault found by {counted(answered.judged, 'rule')}" if answered.judged else "not judged"


def _not_read(configuration: ReviewedConfiguration) -> Iterator[Part]:
    if configuration.not_read:
        yield line()
        yield line(f"not read: {', '.join(configuration.not_read)}")


def _shortly(
    configuration: ReviewedConfiguration,
    findings: Sequence[ReviewFinding],
    shown: ShownOptions,
    told: Sequence[ReviewFinding] = (),
) -> Iterator[Part]:
    """Return a configuration with a line for each error and warning that was not told above."""
    yield _title(configuration)
    if not configuration.trainer:
        yield line(UNKNOWN_TRAINER)
    faults = [finding for finding in findings if finding.severity != "advice" and finding not in told]
    listed = faults if shown.all else faults[:MOST_ROWS]
    yield from (line(_in_short(finding), indent=2) for finding in listed)
    yield from more_rows(len(faults) - len(listed), "finding")
    yield line(_in_counts(findings) or "no finding", indent=2)
    yield from _unjudged(configuration.questions)
    yield from _not_read(configuration)


def _in_short(finding: ReviewFinding) -> str:
    return f"{finding.severity} [{finding.rule}] {finding.where}: {finding.message}"


def _unjudged(questions: Iterable[ReviewedQuestion], *, indent: int = 2) -> Iterator[Part]:
    """Return a line on the rules of all questions that were not judged."""
    questions = list(questions)
    if count := sum(one.not_judged for one in questions):
        reasons, settings = Counter[str](), ""
        for fact in (fact for one in questions for fact in one.missing):
            what, _, names = fact.what.partition(": ")
            settings = settings or names.partition(" and ")[0]
            reasons[f"{what}{fact.give and f' ({fact.give})'}"] += fact.rules
        named = ", ".join(reason for reason, _ in reasons.most_common(_MOST_REASONS))
        named = named.replace(OTHER_SETTINGS, f"settings such as {settings}") if settings else named
        more = f", and {len(reasons) - _MOST_REASONS} more (--verbose)" if len(reasons) > _MOST_REASONS else ""
        yield line(f"not judged: {counted(count, 'rule')}; missing: {named}{more}", indent=indent)


# Estimate and changes


def _estimate(configuration: ReviewedConfiguration) -> Iterator[Part]:
    if configuration.step_time_s is None:
        yield line(f"no estimate: {configuration.not_estimated}")
        return
    rows = [("step", f"{figure(configuration.step_time_s)} s")]
    if configuration.peak_memory_gib is not None and configuration.memory_limit_gib is not None:
        limit = f"{configuration.memory_limit_gib:.1f}: {configuration.fit}"
        rows.append(("peak memory", f"{configuration.peak_memory_gib:.1f} GiB of {limit}"))
    work = configuration.work_by_rank_s or ()
    if len(work) > 1 and configuration.bubble is not None:
        more = percent(max(work) / (sum(work) / len(work)) - 1)
        rows.append(("heaviest rank", f"{configuration.heaviest_rank}, {more} more work than the mean"))
        idle = f"{percent(configuration.bubble)} of the step, over all ranks"
        rows.append(("bubble", f"{idle}{_reasons(configuration.idle)}"))
    if configuration.lower_bound_s is not None:
        rows.append(("lower bound", f"{figure(configuration.lower_bound_s)} s for the pipeline with these stages"))
    yield facts(rows)
    if configuration.assumed:
        yield line(f"assumed: {'; '.join(configuration.assumed)}")


def _reasons(idle: Mapping[str, float] | None) -> str:
    if not idle:
        return ""
    most = sorted(idle.items(), key=lambda item: -item[1])[:3]
    words = {reason.key: text for reason, text in REASON_WORDS.items()}
    return ": " + ", ".join(f"{percent(share)} of it {words[reason]}" for reason, share in most)


def _changes(configuration: ReviewedConfiguration) -> Iterator[Part]:
    if not configuration.changes:
        return
    yield line()
    yield line("what to change", "bold")
    for step in configuration.changes:
        yield line(_words(step), indent=2)
        removed = f"removes {' and '.join(step.removes)}"
        yield line("; ".join((removed, *_effect(step))), indent=4)
    if configuration.unpatched:
        yield line(f"not in the patch: {configuration.unpatched}", indent=2)


def _words(change: ReviewChange) -> str:
    return ", ".join(
        f"drop {key}" if value is None or value is False else f"{key} {plain(value)}"
        for key, value in change.settings.items()
    )


def _effect(change: ReviewChange) -> Iterator[str]:
    """Yield the figures of a change: its step time, the share that it saves, its peak memory."""
    if change.step_time_s is not None:
        gain = "" if not change.gain else f" ({relative(-change.gain)})"
        yield f"step {figure(change.step_time_s)} s{gain}"
    if change.peak_memory_gib is not None:
        yield f"peak {change.peak_memory_gib:.1f} GiB"


def run_parts(run: ReviewedRun) -> Iterator[Part]:
    """Yield the measurements in the traces of a run."""
    yield line()
    yield line(f"run in {run.source}", "bold")
    predicted = "" if run.predicted is None else f" ({run.predicted:+.0%} of the estimate)"
    yield line(f"measured step: {figure(run.step_time_s)} s{predicted}")
    yield from (line(sentence) for sentence in run.sentences)


# Comparison of two configurations


def comparison_parts(
    comparison: ReviewComparison, reviewed: Iterable[_Reviewed], shown: ShownOptions
) -> Iterator[Part]:
    """Yield the comparison of two configurations, and each of them in short."""
    yield line(f"{comparison.before} -> {comparison.after}", "bold")
    settings = comparison.settings if shown.all else comparison.settings[:MOST_ROWS]
    rows = [(each.setting, f"{_stated(each.before)} -> {_stated(each.after)}") for each in settings]
    yield facts(rows, indent=2) if rows else line("no setting that is read differs", indent=2)
    yield from more_rows(len(comparison.settings) - len(settings), "further setting")
    for title, findings in (("gone", comparison.gone), ("new", comparison.new)):
        faults = findings if shown.verbose else [finding for finding in findings if finding.severity != "advice"]
        listed = faults if shown.all else faults[:MOST_ROWS]
        yield from (line(f"{title}: {_in_short(finding)}", indent=2) for finding in listed)
        yield from more_rows(len(faults) - len(listed), f"{title} finding")
    told = (*comparison.gone, *comparison.new)
    for configuration, own in reviewed:
        yield line()
        if shown.verbose:
            yield from _whole(configuration, own, shown)
        else:
            yield from _shortly(configuration, own, shown, told)


def _stated(value: object) -> str:
    return "not stated" if value is None else plain(value)


# Summary of folders


def summary_parts(
    files: ReviewedFiles,
    configurations: Sequence[ReviewedConfiguration],
    findings: Sequence[ReviewFinding],
    questions: Sequence[ReviewedQuestion],
    shown: ShownOptions,
) -> Iterator[Part]:
    """Yield the summary of folders on one page; files are named from the only folder on."""
    start = f"{files.folders[0].rstrip('/')}/" if len(files.folders) == 1 else ""
    reviewed = len({configuration.file for configuration in configurations})
    counts = f"{counted(len(configurations), 'configuration')} in {counted(reviewed, 'file')}"
    yield line(f"{', '.join(files.folders)}: {counts}; {_in_counts(findings) or 'no finding'}", "bold")
    every = len(findings)
    yield from _by_rule(
        findings, "error", every if shown.all else _MOST_RULES, every if shown.all else _MOST_PLACES, start
    )
    yield from _by_rule(findings, "warning", every if shown.all else _MOST_FILES, every if shown.all else 1, start)
    yield from _by_file(findings, every if shown.all else _MOST_FILES, start)
    yield line()
    unknown = Counter(what for configuration in configurations for what in configuration.unknown)
    if unknown:
        named = ", ".join(f"{what} in {count}" for what, count in unknown.most_common())
        yield line(f"unknown: {named}", indent=2)
    if without_trainer := [one.file.removeprefix(start) for one in configurations if not one.trainer]:
        named = _listed(without_trainer, _MOST_PLACES)
        yield line(f"unknown trainer (only rules for every trainer were judged): {named}", indent=2)
    yield from _unjudged(questions)
    if silent := sorted({key for configuration in configurations for key in configuration.not_read}):
        yield line(f"not read: {_listed(silent, _MOST_FILES)}", indent=2)
    listed = files.unreadable if shown.all else files.unreadable[:_MOST_PLACES]
    yield from (_unreadable(file, start, indent=2) for file in listed)
    yield from more_rows(len(files.unreadable) - len(listed), "unreadable file")
    kinds = f"{reviewed:,} with configurations, {files.skipped:,} without, {len(files.unreadable):,} unreadable"
    yield line(f"looked at {counted(files.looked_at, 'file')}: {kinds}", indent=2)


def _by_rule(findings: Sequence[ReviewFinding], severity: str, most: int, places: int, start: str) -> Iterator[Part]:
    """Yield the rules with the most findings of a severity, each with its first places."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        if finding.severity == severity:
            place = f"{finding.file}:{finding.line}" if finding.line else finding.file
            found.setdefault(finding.rule, []).append(place.removeprefix(start))
    if not found:
        return
    yield line()
    yield line(f"{severity}s by rule", "bold")
    for rule in sorted(found, key=lambda rule: -len(found[rule]))[:most]:
        yield line(f"{len(found[rule])} [{rule}] {_listed(found[rule], places)}", indent=2)
    yield from more_rows(max(len(found) - most, 0), "further rule")


def _by_file(findings: Sequence[ReviewFinding], most: int, start: str) -> Iterator[Part]:
    """Yield a table of the files with the most errors and warnings, if there are several."""
    counts = Counter(finding.configuration_file for finding in findings if finding.severity != "advice")
    errors = Counter(finding.configuration_file for finding in findings if finding.severity == "error")
    if len(counts) < _FEWEST_FILES:
        return
    yield line()
    table = columns("files with the most findings", "errors", "warnings", padding=1)
    for file in sorted(counts, key=lambda file: (-errors[file], -counts[file]))[:most]:
        table.add_row(file.removeprefix(start), str(errors[file]), str(counts[file] - errors[file]))
    yield table


def _listed(names: Iterable[str], most: int) -> str:
    """Return the first names, each once, and the number of the others."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - most} more" if len(distinct) > most else ""
    return f"{', '.join(distinct[:most])}{more}"
