"""The flags with which Megatron-LM runs the schedules that it has: 1F1B, interleaved 1F1B by groups, and either overlapped.

Megatron makes the order of ops by itself from these flags; whether a schedule *is* that order is for the caller to know.
What it refuses is refused here, by the rules of Megatron-core's ``TransformerConfig``, ``PipelineParallelLayerLayout`` and
``schedules``, and of Megatron-LM's ``validate_args``; what it needs beside is said in the text.

Its layout string has a part a stage, in the order of the model, apart by ``|``: ``E`` the embedding, ``t`` a transformer
layer, ``m`` a layer that predicts further tokens, ``L`` the loss with the output layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from pipeplan.errors import InputError, ShapeError
from pipeplan.formats.training import TrainerSettings, Training
from pipeplan.model import Schedule, counted, one_line

RELEASES = ("0.14", "0.15", "0.16", "0.17", "0.18", "0.19")
"""Of Megatron-core, each with the same flags for the same orders; overlapped pairs are of 0.14 and later."""

LATEST = "0.16"
"""What pip installs."""

_OF_LAYOUTS = (
    "--num-virtual-stages-per-pipeline-rank",
    "--num-layers-per-virtual-pipeline-stage",
    "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
)
"""What Megatron refuses beside a layout, which says the same and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronOrder:
    """Which of Megatron's orders a schedule is.

    Attributes
    ----------
    group_size
        How many microbatches a chunk runs before the next one does; None with one chunk a rank.
    overlap
        Whether a forward and a backward run as one overlapped pair.
    delayed_weights
        Whether weight gradients come apart from those of inputs, right behind them.
    recompute
        Whether every stage makes its activations again right before its backward.
    """

    group_size: int | None = None
    overlap: bool = False
    delayed_weights: bool = False
    recompute: bool = False


def megatron_flags(schedule: Schedule, order: MegatronOrder, training: Training) -> TrainerSettings:
    """A bash array of Megatron-LM's flags for a schedule, below comments that say what they need and exclude.

    Parameters
    ----------
    schedule
        On a line, or on a loop of stages.
    order
        Which of Megatron's orders it is.
    training
        Layers per stage, batch, replicas and the release of Megatron-core.

    Raises
    ------
    ShapeError
        For what Megatron has no schedule for or refuses: groups smaller than the ranks or larger than the microbatches, a
        last group smaller than the ranks, interleaving on one rank, overlapped pairs of one chunk a rank or with
        recomputation or several layers of further tokens, layers that are not one number a stage.
    InputError
        For a release that is not known.
    """
    release = megatron_release(training.trainer_version)
    _require_order(schedule, order, training)
    warnings = tuple(_warnings(schedule))
    comments = [*_heading(schedule, training, release), *_notes(schedule, order, training)]
    comments += [f"Beware: {sentence}." for sentence in warnings]
    flags = [*_shape_flags(schedule, training), *_split_flags(schedule, training), *_order_flags(order)]
    lines = [line for comment in comments for line in _commented(comment)]
    lines += ["PIPELINE_ARGS=(", *(f"    {flag}" for flag in flags), ")", ""]
    return TrainerSettings(text="\n".join(lines), warnings=warnings)


def megatron_layout(schedule: Schedule, training: Training) -> str:
    """The layout string of stages with these numbers of transformer layers.

    The first stage has the embedding, the last one the loss and, before it, the layers that predict further tokens: Megatron
    wants these together, behind all others, on a rank's last chunk.

    Raises
    ------
    ShapeError
        Without layers, or for layers that are not one number a stage.
    """
    layers = training.layers_of(schedule.stages)
    if layers is None:
        raise ShapeError("a layout needs the layers of each stage", field="layers_per_stage")
    return "E" + "|".join(_times("t", count) for count in layers) + _times("m", training.mtp_layers) + "L"


def _times(letter: str, count: int) -> str:
    return f"{letter}*{count}" if count > 1 else letter * count


def megatron_release(version: str | None) -> str:
    """Return the known minor release of a version such as 0.16.1, the newest one for None. Raises InputError."""
    release = LATEST if version is None else ".".join(version.split(".")[:2])
    if release not in RELEASES:
        raise InputError(
            f"Megatron-core {one_line(str(version))} is not known here: flags are for {', '.join(RELEASES[:-1])} and "
            f"{RELEASES[-1]}",
            field="trainer_version",
        )
    return release


def _require_order(schedule: Schedule, order: MegatronOrder, training: Training) -> None:
    """Refuse what Megatron refuses. Raises ShapeError."""
    if schedule.placement.chunks > 1:
        _require_group(schedule, schedule.ranks if order.group_size is None else order.group_size)
    elif order.overlap and schedule.ranks > 1:
        raise ShapeError("Megatron-LM overlaps forwards with backwards only where ranks have two chunks or more")
    if order.overlap and order.recompute:
        raise ShapeError("Megatron-LM recomputes no stage in full where it overlaps forwards with backwards")
    if order.overlap and training.mtp_layers > (schedule.ranks > 1):
        raise ShapeError(
            "Megatron-LM overlaps forwards with backwards with at most one layer that predicts further tokens, and none on "
            f"one rank, not {training.mtp_layers} on {schedule.ranks}",
            field="mtp_layers",
        )


def _require_group(schedule: Schedule, group: int) -> None:
    ranks, microbatches = schedule.ranks, schedule.microbatches
    if ranks < 2:
        raise ShapeError("Megatron-LM interleaves on two ranks or more")
    if microbatches < ranks:
        raise ShapeError(
            f"Megatron-LM interleaves at least one microbatch a rank: {microbatches} are too few for {ranks}"
        )
    if not ranks <= group <= microbatches:
        raise ShapeError(
            f"Megatron-LM takes groups of {ranks} (the ranks) to {microbatches} (the microbatches), not {group}",
            field="group_size",
        )
    if 0 < microbatches % group < ranks:
        raise ShapeError(
            f"Megatron-LM takes no last group smaller than the ranks: {microbatches} microbatches in groups of {group} "
            f"leave {microbatches % group}",
            field="group_size",
        )


def _shape_flags(schedule: Schedule, training: Training) -> Iterator[str]:
    yield f"--pipeline-model-parallel-size {schedule.ranks}"
    yield f"--micro-batch-size {training.microbatch_size}"
    yield f"--global-batch-size {_global_batch(schedule, training)}"


def _split_flags(schedule: Schedule, training: Training) -> Iterator[str]:
    """How the model is cut into stages: a layout has all of it, and its number of parts is the chunks'."""
    if training.layers is not None:
        yield f"--num-layers {sum(training.layers)}"
        yield f"--pipeline-model-parallel-layout '{megatron_layout(schedule, training)}'"
    elif schedule.placement.chunks > 1:
        yield f"--num-virtual-stages-per-pipeline-rank {schedule.placement.chunks}"
    if training.mtp_layers:
        yield f"--mtp-num-layers {training.mtp_layers}"


def _order_flags(order: MegatronOrder) -> Iterator[str]:
    if order.group_size is not None:
        yield f"--microbatch-group-size-per-virtual-pipeline-stage {order.group_size}"
    if order.overlap:
        yield "--overlap-moe-expert-parallel-comm"
    if order.delayed_weights:
        yield "--delay-wgrad-compute"
    if order.recompute:
        yield from ("--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1")


def _heading(schedule: Schedule, training: Training, release: str) -> Iterator[str]:
    yield (
        f"Megatron-LM with Megatron-core {release}, for {one_line(schedule.name or 'this schedule')}: "
        f"{counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')}, "
        f"{counted(schedule.microbatches, 'microbatch')}."
    )
    yield (
        f"{counted(training.microbatch_size, 'sequence')} x {counted(schedule.microbatches, 'microbatch')} x "
        f"{counted(training.data_parallel, 'replica')} = {_global_batch(schedule, training)}; "
        f"start {schedule.ranks * training.data_parallel} processes, times those of tensor and context parallelism."
    )


def _notes(schedule: Schedule, order: MegatronOrder, training: Training) -> Iterator[str]:
    """What the flags need beside them, and exclude."""
    if training.layers is not None:
        yield f"Beside the layout, which says how many chunks a rank has, give none of {', '.join(_OF_LAYOUTS)}."
    elif schedule.stages > 1:
        yield f"The layers must be a multiple of {schedule.stages}; for others, give the layers of each stage."
    if order.overlap:
        yield (
            "Overlapped pairs need a mixture of experts with --expert-model-parallel-size of 2 or more, "
            "--moe-token-dispatcher-type alltoall or flex, --bf16 or --fp16, and PyTorch 2.6 or later;"
        )
        yield (
            "they exclude --moe-shared-expert-overlap, --recompute-granularity full, --recompute-method and "
            "--recompute-num-layers."
        )
    if order.delayed_weights:
        yield (
            "--delay-wgrad-compute needs --transformer-impl transformer_engine and excludes --moe-use-legacy-grouped-gemm; "
            "it puts off the weight gradients of transformer layers, not those of embedding and head."
        )


def _warnings(schedule: Schedule) -> Iterator[str]:
    if schedule.placement.chunks > 1 and schedule.ranks == 2:
        yield (
            "on two ranks never give --no-overlap-p2p-communication, and with Megatron-core alone set overlap_p2p_comm=True "
            "and batch_p2p_comm=False, which are not its defaults: of batched transfers it takes those of one direction for "
            "the other's, and gradients are wrong"
        )


def _commented(sentence: str) -> list[str]:
    return wrap(
        sentence, 120, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
    )


def _global_batch(schedule: Schedule, training: Training) -> int:
    return training.microbatch_size * schedule.microbatches * training.data_parallel
