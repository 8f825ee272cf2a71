"""The flags with which Megatron-LM runs the schedules that it has: 1F1B, and interleaved 1F1B by groups of microbatches.

Megatron makes the order of ops by itself from these flags; whether a schedule *is* that order is for the caller to know. Its
layout string has a part a stage, in the order of the model, apart by ``|``: ``E`` the embedding, ``t`` a transformer layer,
``L`` the loss with the output layer (``PipelineParallelLayerLayout`` in ``core/transformer``).
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.errors import ShapeError
from pipeplan.model import Kind, Schedule


def megatron_flags(
    schedule: Schedule,
    *,
    group_size: int | None = None,
    layers: Sequence[int] | None = None,
    micro_batch_size: int = 1,
    data_parallel: int = 1,
) -> str:
    """A bash array of Megatron-LM's flags for a schedule.

    Parameters
    ----------
    schedule
        1F1B on a line, or interleaved 1F1B on a loop.
    group_size
        How many microbatches a chunk runs before the next one does; None: the ranks.
    layers
        How many transformer layers each stage has, for stages of different size; None: all the same.
    micro_batch_size, data_parallel
        Sequences in a microbatch, and replicas of the pipeline: they make the global batch.

    Raises
    ------
    ShapeError
        For what Megatron has no schedule for or refuses: another placement, split backwards, a group smaller than the
        ranks or larger than the microbatches, a last group smaller than the ranks, layers that are not one number a stage.
    """
    placement = schedule.placement
    if placement.name not in ("linear", "loop") or schedule.slices > 1 or schedule.kinds != {Kind.F, Kind.B}:
        raise ShapeError(
            "Megatron-LM runs 1F1B and interleaved 1F1B, with full forwards and backwards; "
            f"{schedule.name or 'this schedule'} ({placement.name}) is neither"
        )
    batch = micro_batch_size * schedule.microbatches * data_parallel
    flags = [
        f"--pipeline-model-parallel-size {schedule.ranks}",
        f"--micro-batch-size {micro_batch_size}",
        f"--global-batch-size {batch}",
    ]
    if layers is not None:
        flags += [
            f"--num-layers {sum(layers)}",
            f"--pipeline-model-parallel-layout '{megatron_layout(schedule, layers)}'",
        ]
    if placement.chunks > 1:
        if layers is None:
            flags.append(f"--num-virtual-stages-per-pipeline-rank {placement.chunks}")
        group = _valid_group(schedule, schedule.ranks if group_size is None else group_size)
        flags.append(f"--microbatch-group-size-per-virtual-pipeline-stage {group}")
    return "\n".join(
        [
            f"# {schedule.microbatches} microbatches of {micro_batch_size}, {data_parallel} replica(s): "
            f"{micro_batch_size} x {schedule.microbatches} x {data_parallel} = {batch}",
            "PIPELINE_ARGS=(",
            *(f"    {flag}" for flag in flags),
            ")",
            "",
        ]
    )


def megatron_layout(schedule: Schedule, layers: Sequence[int]) -> str:
    """The layout string of stages with these numbers of transformer layers; the first has the embedding, the last the loss.

    Raises
    ------
    ShapeError
        For layers that are not one number a stage.
    """
    if len(layers) != schedule.stages or min(layers) < 0 or not sum(layers):
        raise ShapeError(f"layers must be {schedule.stages} numbers of at least 0, one per stage, not {tuple(layers)}")
    parts = ["" if count == 0 else "t" if count == 1 else f"t*{count}" for count in layers]
    return "E" + "|".join(parts) + "L"


def _valid_group(schedule: Schedule, group: int) -> int:
    """The group size, if Megatron accepts it. Raises ShapeError."""
    ranks, microbatches = schedule.ranks, schedule.microbatches
    if ranks < 2:
        raise ShapeError("Megatron-LM interleaves on two ranks or more")
    if not ranks <= group <= microbatches:
        raise ShapeError(
            f"Megatron-LM takes groups of {ranks} (the ranks) to {microbatches} (the microbatches), not {group}"
        )
    if 0 < microbatches % group < ranks:
        raise ShapeError(
            f"Megatron-LM takes no last group smaller than the ranks: {microbatches} microbatches in groups of {group} "
            f"leave {microbatches % group}"
        )
    return group
