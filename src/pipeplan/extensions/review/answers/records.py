"""Records of a review: findings, changes, configurations, runs, files and comparisons."""

from __future__ import annotations

from typing import Any

from pipeplan.extensions.review import Question, Severity
from pipeplan.extensions.review.answers.unjudged import ReviewedQuestion
from pipeplan.foundation.records import Record


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
    column, end_column
        First column of the value, counted from 1, and the column behind its last one; 0 if unknown.
    message, remedy
        Sentences: what is wrong, and what to do.
    source
        File and function of the trainer that refuses it, or the issue that reports it.
    configuration, configuration_file
        Name of the configuration, in a file that holds several; and this file, which may read the setting from another one.
    """

    rule: str
    severity: Severity
    question: Question
    where: str
    file: str
    line: int
    column: int = 0
    end_column: int = 0
    message: str
    remedy: str
    source: str
    configuration: str
    configuration_file: str


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
    questions
        How far each question was answered.
    unknown
        What keeps it from being called clean: the number of layers or their split, a degree, the trainer.
    not_read
        Keys of parallel training that are not read; the rules of their subject are not judged.
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
        Patch of its file, with the changes of all configurations in it; empty without changes.
    unpatched
        Reason why the patch does not make its changes; empty if it does, or if there are none.
    """

    name: str
    file: str
    trainer: str
    settings: dict[str, Any]
    questions: tuple[ReviewedQuestion, ...]
    unknown: tuple[str, ...]
    not_read: tuple[str, ...]
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
    unpatched: str


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


class UnreadableFile(Record, frozen=True, kw_only=True):
    """File that could not be read, and the reason."""

    file: str
    reason: str


class ReviewedFiles(Record, frozen=True, kw_only=True):
    """Files of a review.

    Attributes
    ----------
    folders
        Folders that were walked; their configurations have no patch, unless it is written to a file.
    looked_at
        Number of files.
    skipped
        Number of them that hold no configuration.
    unreadable
        Files that could not be read; those in a folder do not change the verdict.
    """

    folders: tuple[str, ...]
    looked_at: int
    skipped: int
    unreadable: tuple[UnreadableFile, ...]


class SettingDifference(Record, frozen=True, kw_only=True):
    """Setting that differs between two configurations, by the trainer's own key; null: not stated."""

    setting: str
    before: Any
    after: Any


class ReviewComparison(Record, frozen=True, kw_only=True):
    """Comparison of two configurations: what changed, and what it costs.

    Attributes
    ----------
    before, after
        Files of both.
    settings
        Settings that differ.
    new, gone
        Findings of rules that only the second, and only the first configuration breaks.
    step_time_s, peak_memory_gib
        Estimates before and after; null unless both have one.
    """

    before: str
    after: str
    settings: tuple[SettingDifference, ...]
    new: tuple[ReviewFinding, ...]
    gone: tuple[ReviewFinding, ...]
    step_time_s: tuple[float, float] | None
    peak_memory_gib: tuple[float, float] | None
