"""Review a configuration that somebody already has: does it start, is it right, where does it lose, what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pipeplan.answers.explaining.explanation import explained
from pipeplan.answers.simulating.result import idle_times_of
from pipeplan.costs import COUNT, Options, Settings, option, options_of
from pipeplan.extensions.planning.answers.one_configuration import simulated
from pipeplan.extensions.planning.answers.options import ClusterLike, FilePath, ModelLike
from pipeplan.extensions.planning.flags import cluster_of, model_of
from pipeplan.extensions.review import (
    RULES,
    Estimated,
    Reading,
    ReviewFacts,
    RuleFault,
    VerifiedChange,
    combined,
    estimate_or_none,
    improvements,
    judged,
    missing_facts,
    patched,
    read_configurations,
    read_text_of,
    spelling,
)
from pipeplan.extensions.review.answers.result import (
    Review,
    ReviewChange,
    ReviewedConfiguration,
    ReviewedRun,
    ReviewFinding,
)
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import InputError, PipeplanError
from pipeplan.foundation.files import path_of
from pipeplan.foundation.readable import TIME_UNITS, change, percent
from pipeplan.model import Reason, one_line, shortened
from pipeplan.trainers import is_release, trainer_names

if TYPE_CHECKING:
    from pipeplan.extensions.review.keywords import ReviewOptionsKeywords

AUTO = "auto"
"""Choice of the trainer that the file shows."""


@dataclass(frozen=True, kw_only=True)
class ReviewOptions(Options):
    """Options of a review."""

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    trainer: str = option(
        AUTO, kind="choice", group="trainer", choices=(AUTO, *trainer_names()),
        flags=("--for",), help="Trainer of the configuration; auto: as the file shows.",
    )
    trainer_version: str | None = option(
        kind="text", title="Release", group="trainer",
        help="Release of the trainer, such as 0.16 for megatron-lm: only its rules apply.", default="the newest",
    )
    model: ModelLike | None = option(
        kind="object", group="training", longest=4096,
        help="Model, where the file does not name it: a preset or a config.json.",
    )
    cluster: ClusterLike | None = option(
        kind="object", group="training", longest=4096,
        help="Cluster, where the file does not name it: GPU:PER_NODExNODES, such as h100-sxm:8x16, or a file.",
    )
    global_batch: int | None = option(
        kind="count", group="training", unit="sequences", range=COUNT,
        help="Sequences per step, where the file does not say.",
    )
    sequence: int | None = option(
        kind="count", group="training", unit="tokens", range=COUNT,
        help="Sequence length in tokens, where the file does not say.",
    )
    trace: FilePath | None = option(
        kind="file", title="Traces", group="training",
        help="Folder with the traces of a run of this configuration, which is reviewed, too.",
    )
    # fmt: on


_ALONE = "configuration"


def review(*sources: FilePath | Mapping[str, Any], **options: Unpack[ReviewOptionsKeywords]) -> Review:
    """Review configurations: does each start, is it right, where does it lose, and what to change.

    Parameters
    ----------
    *sources
        Files with a trainer's arguments, a recipe or a layout; or a trainer's arguments as a mapping. Nothing in them is
        executed.
    **options
        The options of a review (:class:`~pipeplan.extensions.review.answers.review.ReviewOptions`).

    Other Parameters
    ----------------
    trainer
        Trainer of the configuration; auto: as the file shows (default: auto).
    trainer_version
        Release of the trainer, such as 0.16 for megatron-lm: only its rules apply (default: the newest).
    model
        Model, where the file does not name it: a preset or a config.json.
    cluster
        Cluster, where the file does not name it: GPU:PER_NODExNODES, such as h100-sxm:8x16, or a file.
    global_batch
        Sequences per step, where the file does not say.
    sequence
        Sequence length in tokens, where the file does not say.
    trace
        Folder with the traces of a run of this configuration, which is reviewed, too.

    Raises
    ------
    InputError
        For a file that cannot be read, and one without a setting that a review knows.

    Examples
    --------
    >>> pipeplan.review({"num_layers": 46, "pipeline_model_parallel_size": 4}).findings[0].rule
    'layers-per-rank'
    """
    return reviewed(sources, options_of(ReviewOptions, options))


def reviewed(sources: Sequence[FilePath | Mapping[str, Any]], options: ReviewOptions) -> Review:
    """See :func:`review`."""
    _require_release(options)
    if not sources:
        raise InputError("a review needs a file with a configuration")
    named = [
        (source, _ALONE if len(sources) == 1 else f"{_ALONE}-{number}") for number, source in enumerate(sources, 1)
    ]
    return _review([reading for source, name in named for reading in _readings(source, name, options)], options)


def _review(readings: Sequence[Reading], options: ReviewOptions) -> Review:
    readings = [replace(reading, facts=_with_options(reading.facts, options)) for reading in readings]
    findings: list[ReviewFinding] = []
    configurations = []
    for reading in readings:
        faults = judged(reading.facts, RULES)
        findings += [_finding(fault, reading) for fault in faults]
        configurations.append(_configuration(reading, faults, alone=len(readings) == 1))
    single = configurations[0] if len(configurations) == 1 else None
    run = None
    if options.trace is not None:
        if single is None:
            raise InputError("traces belong to one configuration: pass one file with one configuration", field="trace")
        run, further = reviewed_run(path_of(options.trace, "the traces", field="trace"), single)
        findings += further
    return Review(
        findings=tuple(findings),
        patch="".join(configuration.patch for configuration in configurations),
        step_time_s=None if single is None else single.step_time_s,
        peak_memory_gib=None if single is None else single.peak_memory_gib,
        configurations=tuple(configurations),
        run=run,
    )


def reviewed_text(text: str, file: str, options: ReviewOptions) -> Review:
    """Return the review of a text; the suffix of ``file`` selects its form."""
    _require_release(options)
    readings = read_text_of(text, file, trainer=_trainer(options), release=options.trainer_version or "")
    return _review(readings, options)


def _require_release(options: ReviewOptions) -> None:
    if options.trainer_version is not None and not is_release(options.trainer_version):
        raise InputError(
            f"invalid release '{one_line(shortened(options.trainer_version, 40))}': expected a number such as 0.16, or main",
            field="trainer_version",
        )


def _trainer(options: ReviewOptions) -> str | None:
    return None if options.trainer == AUTO else options.trainer


def _readings(source: FilePath | Mapping[str, Any], name: str, options: ReviewOptions) -> tuple[Reading, ...]:
    release = options.trainer_version or ""
    if isinstance(source, Mapping):
        return read_text_of(json_text(source, indent=1), f"{name}.json", trainer=_trainer(options), release=release)
    path = path_of(source, "the configuration")
    return read_configurations(path, trainer=_trainer(options), release=release)


def _with_options(facts: ReviewFacts, options: ReviewOptions) -> ReviewFacts:
    """Return the facts with the model, the cluster and the batch of the command line, where the file does not say."""
    changes: dict[str, Any] = {}
    shape = None if options.model is None else model_of(options.model)
    cluster = None if options.cluster is None else cluster_of(options.cluster)
    if shape is not None:
        changes |= {"layers": shape.layers, "heads": shape.heads, "experts": shape.experts and shape.experts.count}
    if cluster is not None:
        changes |= {"gpus": cluster.gpus, "gpus_per_node": cluster.per_node, "device": cluster.gpu.name}
    changes |= {"global_batch": options.global_batch, "seq_length": options.sequence}
    unsaid = {name: value for name, value in changes.items() if value is not None and not facts.has(name)}
    return replace(facts.changed(unsaid), shape=shape, cluster=cluster)


def _finding(fault: RuleFault, reading: Reading) -> ReviewFinding:
    rule, place = fault.rule, fault.place
    return ReviewFinding(
        rule=rule.id,
        severity=rule.severity,
        question=rule.question,
        where=str(place),
        file=place.file or reading.source.file,
        line=place.line,
        message=fault.message,
        remedy=fault.remedy,
        source=rule.source,
        configuration=reading.facts.name,
    )


def _configuration(reading: Reading, faults: Sequence[RuleFault], *, alone: bool) -> ReviewedConfiguration:
    facts = reading.facts
    made = estimate_or_none(facts)
    steps = list(improvements(facts, RULES))
    changes = combined(steps)
    return ReviewedConfiguration(
        name=facts.name,
        file=reading.source.file,
        trainer=facts.trainer.title if facts.trainer.name else "",
        settings={name: entry.value for name, entry in facts.settings.items() if not entry.assumed},
        assumed=() if made is None else made.assumed,
        not_estimated="" if made is not None else _why_not(facts, faults),
        changes=tuple(_change(step, facts) for step in steps),
        patch=patched(reading, changes).diff if changes else "",
        **_estimates(made, alone=alone),
    )


def _why_not(facts: ReviewFacts, faults: Sequence[RuleFault]) -> str:
    if any(fault.rule.severity == "error" for fault in faults):
        return "the configuration does not start"
    return missing_facts(facts)


def _estimates(made: Estimated | None, *, alone: bool) -> dict[str, Any]:
    if made is None:
        names = (
            "step_time_s",
            "peak_memory_gib",
            "peak_memory_by_rank_gib",
            "memory_limit_gib",
            "fit",
            "work_by_rank_s",
        )
        return dict.fromkeys((*names, "heaviest_rank", "bubble", "lower_bound_s", "idle"))
    count = made.configuration.microbatches
    # The causes of idle time need the simulated step, which is worth its time for one configuration.
    bound, idle = pipeline_figures(made) if alone else (None, None)
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
    both = before is not None and after is not None
    return ReviewChange(
        settings={spelling(facts, name, "list"): value for name, value in step.changes.items()},
        removes=step.removes,
        gain=1 - after.estimate.step_time / before.estimate.step_time if both and before and after else None,
        step_time_s=None if after is None else after.estimate.step_time,
        peak_memory_gib=None if after is None else after.peak_gib,
    )


_MOST_OPS = 60_000
"""Number of ops up to which the step is simulated for its reasons."""


def pipeline_figures(made: Estimated) -> tuple[float | None, dict[str, float] | None]:
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


_UNEVEN = 0.08
"""Measured work of the heaviest rank over the mean, less 1, above which a review warns."""

_SLOWER = 0.25
"""Measured over estimated step time, less 1, above which a review warns; most predictions are nearer."""


def reviewed_run(folder: Path, configuration: ReviewedConfiguration) -> tuple[ReviewedRun, list[ReviewFinding]]:
    """Return what the traces of a run show, and findings about it.

    Raises PipeplanError for a folder without traces that can be read.
    """
    explanation = explained(str(folder), Settings())
    result = explanation.result
    unit = 1 / TIME_UNITS.get(result.time_unit, 1.0)
    step = unit * result.makespan
    work = tuple(unit * value for value in result.work)
    predicted = None if configuration.step_time_s is None else step / configuration.step_time_s - 1
    run = ReviewedRun(
        source=str(folder),
        step_time_s=step,
        predicted=predicted,
        work_by_rank_s=work,
        idle_by_rank_s=tuple(unit * value for value in result.idle),
        sentences=explanation.sentences,
    )
    return run, _findings(run, configuration)


def _findings(run: ReviewedRun, configuration: ReviewedConfiguration) -> list[ReviewFinding]:
    mean = sum(run.work_by_rank_s) / len(run.work_by_rank_s)
    heaviest = max(range(len(run.work_by_rank_s)), key=run.work_by_rank_s.__getitem__)
    uneven = run.work_by_rank_s[heaviest] / mean - 1 if mean else 0.0
    pipeline = configuration.settings.get("pp")
    faults = []
    if pipeline and pipeline != len(run.work_by_rank_s):
        message = f"the traces have {len(run.work_by_rank_s)} pipeline ranks, and the configuration {pipeline}"
        faults.append(("run-of-other-ranks", message, "pass the traces of a run of this configuration"))
    if uneven > _UNEVEN:
        message = f"in the run, rank {heaviest} worked {percent(uneven)} longer than the mean of the ranks"
        remedy = "move layers from it to other ranks; `pipeplan profile --from` gives the costs for a search"
        faults.append(("measured-unbalanced", message, remedy))
    if run.predicted is not None and run.predicted > _SLOWER:
        message = f"the run's step took {run.step_time_s:.3g} s, {change(run.predicted)} of the estimate"
        faults.append(
            ("measured-slower", message, "look at the longest waits: `pipeplan explain` of the traces names them")
        )
    return [
        ReviewFinding(
            rule=rule,
            severity="warning",
            question="loses",
            where=run.source,
            file=run.source,
            line=0,
            message=message,
            remedy=remedy,
            source="traces of the run",
            configuration=configuration.name,
        )
        for rule, message, remedy in faults
    ]
