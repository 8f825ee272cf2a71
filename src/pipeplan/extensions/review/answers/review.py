"""Review an existing configuration: does it start, is it right, where does it lose, what to change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pipeplan.costs import COUNT, Options, option, options_of
from pipeplan.extensions.planning.answers.options import ClusterLike, FilePath, ModelLike
from pipeplan.extensions.planning.flags import cluster_of, model_of
from pipeplan.extensions.review import (
    RULES,
    Patches,
    Reading,
    ReviewFacts,
    improvements,
    judgement,
    patches_of,
    properties_of_shape,
    read_configurations,
    read_text_of,
)
from pipeplan.extensions.review.answers.comparing import compared
from pipeplan.extensions.review.answers.headlines import headline_of
from pipeplan.extensions.review.answers.judged import Judged, configuration_of, finding_of
from pipeplan.extensions.review.answers.records import ReviewedConfiguration, ReviewFinding
from pipeplan.extensions.review.answers.result import Review, Verdict
from pipeplan.extensions.review.answers.runs import reviewed_run
from pipeplan.extensions.review.answers.sources import Gathered, gathered
from pipeplan.extensions.review.answers.unjudged import summed
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.files import path_of
from pipeplan.model import counted, one_line, shortened
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
        hint="GPU:PER_NODExNODES, such as h100-sxm:8x16.",
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
        Files with a trainer's arguments, a recipe or a layout; folders, of which every configuration is reviewed, without a
        patch; or a trainer's arguments as a mapping. Two files with one configuration each are compared. Nothing in them
        is executed.
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
        For a file that cannot be read, and one without a setting that a review knows. Of several files, these are in
        ``files`` of the review.

    Examples
    --------
    >>> pipeplan.review({"num_layers": 46, "pipeline_model_parallel_size": 4}).findings[0].rule
    'layers-per-rank'
    """
    return reviewed(sources, options_of(ReviewOptions, options))


def reviewed(
    sources: Sequence[FilePath | Mapping[str, Any]],
    options: ReviewOptions,
    *,
    hook: bool = False,
    patches: bool = False,
    show: Callable[[float, str], object] = lambda share, description: None,
) -> Review:
    """See :func:`review`.

    Parameters
    ----------
    hook
        Whether the files are those of a commit: they may hold no configuration, and two of them are not compared.
    patches
        Whether the configurations in folders get patches, which take time.
    show
        Shows the share of the files that is done.
    """
    _require_release(options)
    if not sources:
        raise InputError("a review needs a file with a configuration: 'pipeplan help review' ends with an example")
    paths = [source if isinstance(source, Mapping) else path_of(source, "the configuration") for source in sources]
    walks = any(isinstance(path, Path) and path.is_dir() for path in paths)
    names = {id(path): _ALONE if len(paths) == 1 else f"{_ALONE}-{number}" for number, path in enumerate(paths, 1)}

    completed = _completion(options)

    def read(source: Path | Mapping[str, Any], only_runs: bool) -> list[Judged]:
        readings = _readings(source, names.get(id(source), _ALONE), options)
        if only_runs and not any(one.facts.own or _is_run(one.facts) for one in readings):
            return []
        return [_judged(one, completed) for one in readings]

    result = gathered(paths, read, show, hook=hook)
    if not (result.read or result.unreadable or hook):
        raise InputError(
            f"no configuration in {', '.join(map(str, paths))}: looked at {counted(result.looked_at, 'file')}"
        )
    pair = len(paths) == len(result.read) == len({one.reading.source.file for one in result.read}) == _PAIR
    return _review(result, options, completed, compares=pair and not hook, patches=patches or not walks)


_PAIR = 2

_OF_RUNS = ("tp", "pp", "cp", "ep", "layout", "dp_shard", "modules_per_part", "zero_stage")


def _is_run(facts: ReviewFacts) -> bool:
    """Return True if a configuration itself states a degree or a split, as that of a model alone does not."""
    return any(name in facts.settings and not facts.settings[name].assumed for name in _OF_RUNS)


def _judged(reading: Reading, completed: _Completion) -> Judged:
    reading = replace(reading, facts=completed(reading.facts))
    return Judged(reading, judgement(reading.facts, RULES))


def _review(
    result: Gathered[Judged], options: ReviewOptions, completed: _Completion, *, compares: bool, patches: bool
) -> Review:
    found = [[finding_of(fault, one.reading) for fault in one.judgement.faults] for one in result.read]
    findings = [finding for own in found for finding in own]
    alone = len(result.read) == 1
    readings = [one.reading for one in result.read]
    steps = [list(improvements(reading.facts, RULES)) if patches else [] for reading in readings]
    patched = Patches({}, ("",) * len(readings))
    if any(steps):
        patched = patches_of(readings, steps, RULES, completed)
    configurations = [
        configuration_of(one, changes, patched.diffs.get(one.reading.source.file, ""), reason, alone=alone)
        for one, changes, reason in zip(result.read, steps, patched.reasons, strict=True)
    ]
    single = configurations[0] if alone else None
    run = None
    if options.trace is not None:
        if single is None:
            raise InputError("traces belong to one configuration: pass one file with one configuration", field="trace")
        run, further = reviewed_run(path_of(options.trace, "the traces", field="trace"), single)
        findings += further
    comparison = None
    if compares:
        first, second = (one.reading.facts for one in result.read)
        comparison = compared((first, second), (configurations[0], configurations[1]), (found[0], found[1]))
    questions = summed([configuration.questions for configuration in configurations])
    return Review(
        headline=headline_of(findings, configurations, questions, comparison=comparison, files=result.files, run=run),
        verdict=_verdict(findings, configurations, failed=result.failed or bool(result.unreadable and not result.read)),
        findings=tuple(findings),
        questions=questions,
        patch="".join(patched.diffs.values()),
        step_time_s=None if single is None else single.step_time_s,
        peak_memory_gib=None if single is None else single.peak_memory_gib,
        comparison=comparison,
        configurations=tuple(configurations),
        files=result.files,
        run=run,
    )


def _verdict(
    findings: Sequence[ReviewFinding], configurations: Sequence[ReviewedConfiguration], *, failed: bool
) -> Verdict:
    if failed:
        return "unreadable"
    if any(finding.severity != "advice" for finding in findings):
        return "findings"
    return "unknown" if any(configuration.unknown for configuration in configurations) else "clean"


def reviewed_text(text: str, file: str, options: ReviewOptions) -> Review:
    """Return the review of a text; the suffix of ``file`` selects its form."""
    _require_release(options)
    readings = read_text_of(text, file, trainer=_trainer(options), release=options.trainer_version or "")
    completed = _completion(options)
    result = Gathered(read=[_judged(reading, completed) for reading in readings], looked_at=1)
    return _review(result, options, completed, compares=False, patches=True)


def _require_release(options: ReviewOptions) -> None:
    if options.trainer_version is not None and not is_release(options.trainer_version):
        raise InputError(
            f"invalid release '{one_line(shortened(options.trainer_version, 40))}': expected a number such as 0.16, or main",
            field="trainer_version",
        )


def _trainer(options: ReviewOptions) -> str | None:
    return None if options.trainer == AUTO else options.trainer


def _readings(source: Path | Mapping[str, Any], name: str, options: ReviewOptions) -> tuple[Reading, ...]:
    release = options.trainer_version or ""
    if isinstance(source, Mapping):
        try:
            text = json_text(source, indent=1)
        except (TypeError, RecursionError):
            raise InputError(f"{name} holds what JSON does not, or is nested too deeply") from None
        return read_text_of(text, f"{name}.json", trainer=_trainer(options), release=release)
    return read_configurations(source, trainer=_trainer(options), release=release)


_Completion = Callable[[ReviewFacts], ReviewFacts]
"""Adds to facts what the command line says and the file does not."""


def _completion(options: ReviewOptions) -> _Completion:
    """Return what adds the model, the cluster and the batch of the command line, which are read once."""
    shape = None if options.model is None else model_of(options.model)
    cluster = None if options.cluster is None else cluster_of(options.cluster)
    batch = {"global_batch": options.global_batch, "seq_length": options.sequence}
    stated = {name: value for name, value in batch.items() if value is not None}
    stated |= {} if shape is None else properties_of_shape(shape)

    def completed(facts: ReviewFacts) -> ReviewFacts:
        changes: dict[str, Any] = dict(stated)
        if cluster is not None:
            changes |= {"gpus_per_node": cluster.per_node, "device": cluster.gpu.name}
            # A file that names its nodes, or the GPUs of each, has fewer or more of them.
            if facts.has("gpus_per_node"):
                changes |= {} if facts.has("gpus") else {"nodes": cluster.nodes}
            elif not facts.has("nodes"):
                changes["gpus"] = cluster.gpus
        unsaid = {name: value for name, value in changes.items() if not facts.has(name)}
        return replace(facts.changed(unsaid), shape=shape, cluster=cluster)

    return completed
