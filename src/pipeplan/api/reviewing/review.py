"""Review a configuration that somebody already has: does it start, is it right, where does it lose, what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from pipeplan.api.arguments import takes
from pipeplan.api.keywords import ReviewOptionsKeywords
from pipeplan.api.planning.configurations import cluster_of, model_of
from pipeplan.api.planning.options import FilePath
from pipeplan.api.reviewing.findings import ReviewChange, ReviewedConfiguration, ReviewFinding
from pipeplan.api.reviewing.options import AUTO, ReviewOptions
from pipeplan.api.reviewing.pipelines import pipeline_figures
from pipeplan.api.reviewing.result import Review
from pipeplan.api.reviewing.runs import reviewed_run
from pipeplan.costs import options_of
from pipeplan.documents import json_text
from pipeplan.errors import InputError
from pipeplan.files import path_of
from pipeplan.reviewing import (
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
    patched,
    read_configurations,
    read_text_of,
    spelling,
)

_ALONE = "configuration"


@takes(ReviewOptions)
def review(*sources: FilePath | Mapping[str, Any], **options: Unpack[ReviewOptionsKeywords]) -> Review:
    """Review configurations: does each start, is it right, where does it lose, and what to change.

    Parameters
    ----------
    *sources
        Files with a trainer's arguments, a recipe, a layout or rows of pipeplan's own form; or such a row as a mapping.
        Nothing in them is executed.
    **options
        The options of a review (:class:`~pipeplan.api.reviewing.options.ReviewOptions`).

    Raises
    ------
    InputError
        For a file that cannot be read, and one without a setting that a review knows.

    Examples
    --------
    >>> row = {"trainer": "megatron-lm", "model": {"layers": 46}, "config": {"pp": 4, "vpp": None, "layout": None,
    ...        "first_stage_layers": None, "last_stage_layers": None}}
    >>> pipeplan.review(row).findings[0].rule
    'layers-per-rank'
    """
    return reviewed(sources, options_of(ReviewOptions, options))


def reviewed(sources: Sequence[FilePath | Mapping[str, Any]], options: ReviewOptions) -> Review:
    """See :func:`review`."""
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
    readings = read_text_of(text, file, trainer=_trainer(options), release=options.trainer_version or "")
    return _review(readings, options)


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
    missing = [
        words
        for name, words in (("model_name", "a model that pipeplan knows"), ("device", "the GPU"), ("pp", "the degrees"))
        if not facts.has(name)
        and not (name == "model_name" and facts.shape)
        and not (name == "device" and facts.cluster)
    ]
    return (
        f"the configuration does not name {' and '.join(missing)}" if missing else "the model or the split is unknown"
    )


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
