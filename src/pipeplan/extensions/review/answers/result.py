"""Answer of a review, its text and its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

from pipeplan.answers.headlined import BRIEF, HeadlinedAnswer, ShownOptions, more_details
from pipeplan.answers.parts import line
from pipeplan.extensions.review.answers.records import (
    ReviewComparison,
    ReviewedConfiguration,
    ReviewedFiles,
    ReviewedRun,
    ReviewFinding,
)
from pipeplan.extensions.review.answers.reports import annotations_of, sarif_of
from pipeplan.extensions.review.answers.table import (
    comparison_parts,
    configuration_parts,
    file_parts,
    run_parts,
    summary_parts,
)
from pipeplan.extensions.review.answers.unjudged import ReviewedQuestion
from pipeplan.formats import TrainerSettings

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part

Verdict = Literal["clean", "findings", "unknown", "unreadable"]

PATCH_ENDINGS = (".patch", ".diff")
"""Suffixes of the file with the patch."""

SARIF_ENDING = ".sarif"
"""Suffix of the file with the findings for code scanning."""

DETAILS = ("remarks", "why rules were not judged", "all remedies and changes")
"""What ``--verbose`` adds to a review."""

OF_FOLDERS = ("each configuration with its findings",)
"""What ``--verbose`` adds to the summary of folders."""


@final
class Review(HeadlinedAnswer, frozen=True, kw_only=True, eq=False):
    """Review of one or more configurations.

    ``to_frame()`` has a row per finding. ``save("fix.patch")`` writes the patch, ``save("review.sarif")`` the findings for
    code scanning.

    Attributes
    ----------
    headline
        The answer in a sentence: what does not start, what is right as far as rules could judge, and what a patch gains.
    verdict
        ``findings``: there are errors or warnings; ``unknown``: there are none, but the layers or degrees of a configuration
        or its trainer are unknown; ``unreadable``: one of several files could not be read; ``clean``: none of these.
    findings
        Everything that a rule finds, the errors of each configuration first.
    questions
        How far each question was answered, over all configurations.
    patch
        Unified diff of each file that is changed; empty if there are none.
    step_time_s, peak_memory_gib
        Estimate of the configuration as it is; null for several configurations, and without an estimate.
    comparison
        What differs between the configurations of two files; null otherwise.
    configurations
        Every configuration with its estimate and its changes.
    files
        How many files were looked at, and which could not be read.
    run
        What the traces of a run show; null without traces.
    """

    headline: str
    verdict: Verdict
    findings: tuple[ReviewFinding, ...]
    questions: tuple[ReviewedQuestion, ...]
    patch: str
    step_time_s: float | None
    peak_memory_gib: float | None
    comparison: ReviewComparison | None
    configurations: tuple[ReviewedConfiguration, ...]
    files: ReviewedFiles
    run: ReviewedRun | None

    @property
    def clean(self) -> bool:
        """True if there are neither errors nor warnings."""
        return all(finding.severity == "advice" for finding in self.findings)

    @property
    def annotations(self) -> tuple[str, ...]:
        """Findings as commands of GitHub's workflows, which show them at their lines; the errors first."""
        return tuple(annotations_of(self.findings, self.configurations, self.files))

    def _summary_fields(self) -> str:
        return """verdict findings.severity findings.rule findings.where findings.message findings.remedy
        configurations.changes.settings configurations.changes.removes configurations.changes.gain
        configurations.changes.step_time_s step_time_s peak_memory_gib patch questions.question questions.not_judged
        questions.missing.sentence comparison.settings comparison.new.rule comparison.gone.rule comparison.step_time_s
        comparison.peak_memory_gib configurations.name configurations.file configurations.trainer configurations.fit
        configurations.bubble configurations.unknown configurations.not_read configurations.assumed
        configurations.not_estimated run.step_time_s run.predicted run.sentences files.unreadable"""

    def _own_file(self, name: str) -> TrainerSettings | None:
        """Return the patch or the findings for a file of their suffix."""
        if name.lower().endswith(SARIF_ENDING):
            return TrainerSettings(text=sarif_of(self.findings, self.files))
        return TrainerSettings(text=self.patch) if name.lower().endswith(PATCH_ENDINGS) else None

    def _below(self, shown: ShownOptions = BRIEF) -> Iterator[Part]:
        """Yield the summary of folders, the comparison, or each configuration with its findings by question."""
        reviewed = [(configuration, self.of(configuration)) for configuration in self.configurations]
        if self.files.folders:
            yield from summary_parts(self.files, self.configurations, self.findings, self.questions, shown)
            if shown.verbose:
                yield line()
                yield from configuration_parts(reviewed, "", shown)
            yield from more_details(OF_FOLDERS if reviewed else (), shown)
        else:
            if self.comparison is not None:
                yield from comparison_parts(self.comparison, reviewed, shown)
            else:
                yield from configuration_parts(reviewed, self.patch, shown)
            yield from file_parts(self.files)
            yield from more_details(DETAILS if reviewed else (), shown)
        if self.run is not None:
            yield from run_parts(self.run)

    def of(self, configuration: ReviewedConfiguration) -> list[ReviewFinding]:
        """Return the findings of one configuration; configurations of several files may have the same name."""
        alone = len(self.configurations) == 1
        own = (configuration.name, configuration.file)
        return [
            finding for finding in self.findings if alone or (finding.configuration, finding.configuration_file) == own
        ]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [finding.to_dict() for finding in self.findings]
