"""Answer of a review: the records of its findings, its patch, and their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.parts import facts, figure, line
from pipeplan.extensions.review import plain
from pipeplan.formats import TrainerSettings
from pipeplan.foundation.readable import change as relative
from pipeplan.foundation.readable import percent
from pipeplan.foundation.records import Record
from pipeplan.model import counted

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part

Severity = Literal["error", "warning", "advice"]
Question = Literal["starts", "right", "loses", "fits"]


class ReviewFinding(Record, frozen=True, kw_only=True):
    """Fault of a configuration.

    Attributes
    ----------
    rule
        Identifier of the rule; ``pipeplan list rules`` lists all.
    severity
        ``error``: the trainer refuses the configuration or trains wrongly; ``warning``: it is slow, tight or fragile;
        ``advice``: a better setting exists.
    question
        Question that the rule answers: does it start, is it right, where does it lose, does it fit.
    where
        Place of the setting at fault: file, line, and the key as written.
    file, line
        The same place; line 0 if the file has no line for it.
    message, remedy
        Sentences: what is wrong, and what to do.
    source
        File and function of the trainer that refuses it, or the issue that reports it.
    configuration
        Name of the configuration, in a file that holds several.
    """

    rule: str
    severity: Severity
    question: Question
    where: str
    file: str
    line: int
    message: str
    remedy: str
    source: str
    configuration: str


class ReviewChange(Record, frozen=True, kw_only=True):
    """Change that removes faults, and its effect as estimated again.

    Attributes
    ----------
    settings
        New values by the trainer's own keys; null removes a setting.
    removes
        Rules whose faults it removes.
    gain
        Share of the step time that it saves, negative if the step gets longer; null without an estimate before and after.
    step_time_s, peak_memory_gib
        Step time and peak memory with this change and those before it; null without an estimate.
    """

    settings: dict[str, Any]
    removes: tuple[str, ...]
    gain: float | None
    step_time_s: float | None
    peak_memory_gib: float | None


class ReviewedConfiguration(Record, frozen=True, kw_only=True):
    """Configuration that was reviewed, with its estimate where it says enough for one.

    Attributes
    ----------
    name, file, trainer
        Name in its file, the file, and the trainer.
    settings
        Settings that were read, by the names of rules.
    step_time_s, peak_memory_gib, peak_memory_by_rank_gib
        Estimated step time and memory; null without an estimate.
    memory_limit_gib, fit
        Memory that a framework can use in comfort, and whether the peak fits.
    work_by_rank_s
        Work of each pipeline rank in a step.
    heaviest_rank
        Rank with the most work.
    bubble
        Idle time of all ranks over their number and the step.
    lower_bound_s
        Lower bound on the pipeline's part of the step for these stages; null with one rank.
    idle
        Idle time by its reason, as shares of all idle time.
    assumed
        What the configuration does not say and the estimate assumes.
    not_estimated
        Reason why there is no estimate; empty if there is one.
    changes
        Changes in the order in which they are made.
    patch
        All changes in the form of the input.
    """

    name: str
    file: str
    trainer: str
    settings: dict[str, Any]
    step_time_s: float | None
    peak_memory_gib: float | None
    peak_memory_by_rank_gib: tuple[float, ...] | None
    memory_limit_gib: float | None
    fit: str | None
    work_by_rank_s: tuple[float, ...] | None
    heaviest_rank: int | None
    bubble: float | None
    lower_bound_s: float | None
    idle: dict[str, float] | None
    assumed: tuple[str, ...]
    not_estimated: str
    changes: tuple[ReviewChange, ...]
    patch: str


class ReviewedRun(Record, frozen=True, kw_only=True):
    """Measurements in the traces of a run.

    Attributes
    ----------
    source
        Folder of the traces.
    step_time_s
        Measured step from the first op to the last.
    predicted
        Measured over estimated step time, less 1; null without an estimate.
    work_by_rank_s, idle_by_rank_s
        Measured work and idle time of each rank.
    sentences
        Why the ranks idled.
    """

    source: str
    step_time_s: float
    predicted: float | None
    work_by_rank_s: tuple[float, ...]
    idle_by_rank_s: tuple[float, ...]
    sentences: tuple[str, ...]


PATCH_ENDINGS = (".patch", ".diff")
"""Suffixes of the file with the patch."""

_QUESTIONS: tuple[tuple[Question, str], ...] = (
    ("starts", "does it start"),
    ("right", "is it right"),
    ("loses", "where it loses"),
    ("fits", "does it fit"),
)

_MOST_LISTED = 40
"""Number of findings of one question that the table lists; --json has all."""


@final
class Review(AnswerRecord, frozen=True, kw_only=True, eq=False):
    """Review of one or more configurations.

    ``to_frame()`` has a row per finding. ``save("fix.patch")`` writes the patch.

    Attributes
    ----------
    findings
        Everything that a rule finds, the errors of each configuration first.
    patch
        Changes in the form of the input: a unified diff, or the settings one per line; empty if there are none.
    step_time_s, peak_memory_gib
        Estimate of the configuration as it is; null for several configurations, and without an estimate.
    configurations
        Every configuration with its estimate and its changes.
    run
        What the traces of a run show; null without traces.
    """

    findings: tuple[ReviewFinding, ...]
    patch: str
    step_time_s: float | None
    peak_memory_gib: float | None
    configurations: tuple[ReviewedConfiguration, ...]
    run: ReviewedRun | None

    @property
    def clean(self) -> bool:
        """True if there are neither errors nor warnings."""
        return all(finding.severity == "advice" for finding in self.findings)

    def _own_file(self, name: str) -> TrainerSettings | None:
        """Return the patch for a file of its suffix."""
        return TrainerSettings(text=self.patch) if name.lower().endswith(PATCH_ENDINGS) else None

    def _table(self) -> Iterator[Part]:
        """Return each configuration: its findings by question, its estimate, its changes and its patch."""
        for place, configuration in enumerate(self.configurations):
            own = self._of(configuration)
            if len(self.configurations) > 1 and not own:
                continue
            if place:
                yield line()
            yield from _configuration(configuration, own)
        clean = [configuration for configuration in self.configurations if not self._of(configuration)]
        if len(self.configurations) > 1 and clean:
            yield line()
            yield line(f"without findings: {', '.join(map(_in_list, clean))}")
        if self.run is not None:
            yield from _run(self.run)

    def _of(self, configuration: ReviewedConfiguration) -> list[ReviewFinding]:
        """Return the findings of one configuration; configurations of several files may have the same name."""
        alone = len(self.configurations) == 1
        return [
            finding
            for finding in self.findings
            if alone or (finding.configuration, finding.file) == (configuration.name, configuration.file)
        ]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [finding.to_dict() for finding in self.findings]

    def __repr__(self) -> str:
        errors = sum(finding.severity == "error" for finding in self.findings)
        warnings = sum(finding.severity == "warning" for finding in self.findings)
        return f"<Review: {counted(errors, 'error')}, {counted(warnings, 'warning')}>"


def _in_list(configuration: ReviewedConfiguration) -> str:
    """Return the name of a configuration, with a note if its time and memory were not judged."""
    name = configuration.name or configuration.file
    return f"{name} (no estimate)" if configuration.not_estimated else name


_UNJUDGED = "nothing found; step time and memory not judged (no estimate)"
"""End of the question where a configuration loses, if it has no estimate."""


def _configuration(configuration: ReviewedConfiguration, findings: Sequence[ReviewFinding]) -> Iterator[Part]:
    name = f"{configuration.file} {configuration.name}".strip()
    yield line(f"{name}: {configuration.trainer or 'unknown trainer'}", "bold")
    for question, title in _QUESTIONS:
        own = [finding for finding in findings if finding.question == question]
        yield line()
        judged = question != "loses" or configuration.step_time_s is not None
        yield line(title if own else f"{title}: {'nothing found' if judged else _UNJUDGED}", "bold" if own else "")
        for finding in own[:_MOST_LISTED]:
            yield line(f"{finding.severity} [{finding.rule}] {finding.where}", indent=2)
            yield line(f"{finding.message}.", indent=4)
            yield line(f"{finding.remedy}.", indent=4)
        if len(own) > _MOST_LISTED:
            yield line(f"and {len(own) - _MOST_LISTED} more: --json lists all", indent=2)
    yield line()
    yield from _estimate(configuration)
    yield from _changes(configuration)


def _estimate(configuration: ReviewedConfiguration) -> Iterator[Part]:
    if configuration.step_time_s is None:
        yield line(f"no estimate: {configuration.not_estimated}")
        return
    rows = [("step", f"{figure(configuration.step_time_s)} s")]
    if configuration.peak_memory_gib is not None and configuration.memory_limit_gib is not None:
        rows.append(
            (
                "peak memory",
                f"{configuration.peak_memory_gib:.1f} GiB of {configuration.memory_limit_gib:.1f}: {configuration.fit}",
            )
        )
    work = configuration.work_by_rank_s or ()
    if len(work) > 1 and configuration.bubble is not None:
        mean = sum(work) / len(work)
        rows.append(
            (
                "heaviest rank",
                f"{configuration.heaviest_rank}, {percent(max(work) / mean - 1)} more work than the mean",
            )
        )
        idle = f"{percent(configuration.bubble)} of the step, over all ranks"
        rows.append(("bubble", f"{idle}{_reasons(configuration.idle)}"))
    if configuration.lower_bound_s is not None:
        rows.append(("lower bound", f"{figure(configuration.lower_bound_s)} s for the pipeline with these stages"))
    yield facts(rows)
    yield from (line(f"assumed: {sentence}") for sentence in configuration.assumed)


def _reasons(idle: Mapping[str, float] | None) -> str:
    if not idle:
        return ""
    most = sorted(idle.items(), key=lambda item: -item[1])[:3]
    return ": " + ", ".join(f"{percent(share)} {reason}" for reason, share in most)


def _changes(configuration: ReviewedConfiguration) -> Iterator[Part]:
    if not configuration.changes:
        return
    yield line()
    yield line("what to change", "bold")
    for step in configuration.changes:
        yield line(_words(step), indent=2)
        removed = f"removes {' and '.join(step.removes)}"
        yield line("; ".join((removed, *_effect(step))), indent=4)
    yield line()
    yield configuration.patch.rstrip("\n")


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


def _run(run: ReviewedRun) -> Iterator[Part]:
    yield line()
    yield line(f"run in {run.source}", "bold")
    predicted = "" if run.predicted is None else f" ({run.predicted:+.0%} of the estimate)"
    yield line(f"measured step: {figure(run.step_time_s)} s{predicted}")
    yield from (line(sentence) for sentence in run.sentences)
