"""Megatron-LM: flags for the schedules that it supports, 1F1B and interleaved 1F1B, with or without overlapped pairs.

Megatron generates the order of ops itself from these flags; :func:`order_of` tells whether a schedule is one of its orders.
What Megatron refuses is refused here, by the rules of Megatron-core's ``TransformerConfig``, ``PipelineParallelLayerLayout``
and ``schedules``, and of Megatron-LM's ``validate_args``.
Its layout strings are in ``megatron_layout``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import wrap

from pipeplan.formats import Format, TrainerSettings, Training
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import COMPUTE_KINDS, HOST_KINDS, Kind, Schedule, among, counted, one_line
from pipeplan.passes import insert_recompute, merge_backward, split_backward, without_recompute
from pipeplan.strategies import strategy
from pipeplan.trainers.layout import TrainerLayout
from pipeplan.trainers.megatron_layout import read_layout, write_layout
from pipeplan.trainers.trainer import bash_array, built_in

_OF_LAYOUTS = (
    "--num-virtual-stages-per-pipeline-rank",
    "--num-layers-per-virtual-pipeline-stage",
    "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
)
"""Flags that Megatron refuses together with a layout."""

FSDP = {2: "optim_grads", 3: "optim_grads_params"}
"""Megatron FSDP's names for the sharded tensors, by ZeRO stage."""

RECOMPUTED = {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
"""Fields with which every stage recomputes its activations directly before its backward."""


SCHEDULES = frozenset({"1f1b", "interleaved-1f1b", "1f1b-overlap", "interleaved-1f1b-overlap"})
"""Strategies that Megatron runs; 1f1b-overlap on one rank only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronOrder:
    """One of Megatron's orders of ops.

    Attributes
    ----------
    group_size
        Number of microbatches that a chunk runs before the next chunk; None with one chunk per rank.
    overlap
        Whether a forward and a backward run as one overlapped pair.
    delayed_weights
        Whether weight gradients are split from input gradients and run directly after them.
    recompute
        Whether every stage recomputes its activations directly before its backward.
    """

    group_size: int | None = None
    overlap: bool = False
    delayed_weights: bool = False
    recompute: bool = False

    def __str__(self) -> str:
        kind = "1F1B" if self.group_size is None else f"interleaved 1F1B in groups of {self.group_size}"
        return f"{kind} with overlapped pairs" if self.overlap else kind

    def makes(self, schedule: Schedule) -> bool:
        """Return True if Megatron runs a schedule of full backwards, without recomputation, in this order."""
        rule = strategy(
            ("" if self.group_size is None else "interleaved-") + ("1f1b-overlap" if self.overlap else "1f1b")
        )
        try:
            shape = rule.shape(
                schedule.ranks, schedule.microbatches, schedule.placement.chunks, group_size=self.group_size
            )
            return bool(rule(shape) == schedule)
        except ShapeError:
            return False


def megatron_settings(schedule: Schedule, training: Training) -> TrainerSettings:
    """Return a bash array of Megatron-LM's flags for a schedule that is one of its orders, with comments.

    The comments say what the flags need and exclude. Megatron adds its own communication. Errors are those of
    :func:`order_and_compute` and :func:`pipeline_flags`.
    """
    compute, order = order_and_compute(schedule, training)
    release = TRAINER.release(training.trainer_version)
    flags = pipeline_flags(compute, order, training)
    warnings = tuple(_warnings(compute))
    comments = [
        *heading(f"Megatron-LM with Megatron-core {release}", compute, training),
        *_notes(compute, training),
        *needs_of(order),
        *(f"Warning: {sentence}." for sentence in warnings),
    ]
    lines = [line for comment in comments for line in commented(comment)]
    lines += [*bash_array("PIPELINE_ARGS", list(flags)), ""]
    return TrainerSettings(text="\n".join(lines), warnings=warnings)


def order_and_compute(schedule: Schedule, training: Training) -> tuple[Schedule, MegatronOrder]:
    """Return a schedule without communication, and the Megatron order that it is.

    Raises
    ------
    ShapeError
        If it is not one, or Megatron cannot run the shape; see :func:`pipeline_flags`.
    """
    compute = schedule.keep(among(schedule.columns.kind, (*COMPUTE_KINDS, *HOST_KINDS)))
    full, order = _order_by_rows(compute)
    order = replace(order, delayed_weights=order.delayed_weights or (order.overlap and training.delayed_weights))
    _require_order(compute, order, training)
    if not order.makes(full):
        raise ShapeError(f"{_name(schedule)} differs from the order that Megatron-LM generates for {order}")
    return compute, order


def order_of(schedule: Schedule) -> MegatronOrder | None:
    """Return the Megatron order of a schedule of compute ops, regardless of its name; None if it is not one."""
    try:
        full, order = _order_by_rows(schedule)
    except ShapeError:
        return None
    return order if order.makes(full) else None


def _order_by_rows(schedule: Schedule) -> tuple[Schedule, MegatronOrder]:
    """Return a schedule with full backwards and without recomputation, and the only Megatron order that it can be.

    Raises
    ------
    ShapeError
        If stages are neither in a line nor in a loop, or the schedule has slices, host copies, recomputation on some stages,
        or weight backwards that Megatron cannot delay so far.
    """
    placement = schedule.placement
    if placement.name not in ("linear", "loop") or schedule.slices > 1:
        cut = f", {schedule.slices} slices per sequence" if schedule.slices > 1 else ""
        raise ShapeError(
            f"Megatron-LM supports only 1F1B and interleaved 1F1B with unsliced sequences, not {_name(schedule)} "
            f"({placement.name}{cut})"
        )
    if not schedule.kinds.isdisjoint(HOST_KINDS):
        raise ShapeError(
            "Megatron-LM's flags offload modules of every microbatch, not single microbatches of a schedule: drop offload",
            field="offload",
        )
    passes = without_recompute(schedule)
    if passes != schedule and insert_recompute(passes) != schedule:
        raise ShapeError(
            "Megatron-LM's flags recompute every stage directly before its backward; they cannot select stages"
        )
    full = merge_backward(passes)
    overlap = bool(full.joined.any())
    _require_weights(passes, full, overlap)
    return full, MegatronOrder(
        group_size=_group_size(full), overlap=overlap, delayed_weights=full != passes, recompute=passes != schedule
    )


def _require_weights(schedule: Schedule, full: Schedule, overlap: bool) -> None:
    """Raise ShapeError unless weight backwards directly follow input backwards in overlapped pairs, all of them or none."""
    if full.kinds != {Kind.F, Kind.B}:
        raise ShapeError(
            "Megatron-LM runs full backwards, or weight backwards directly after input backwards; "
            f"{_name(schedule)} delays them further"
        )
    if full != schedule and not overlap:
        raise ShapeError(
            "Megatron-LM splits weight from input backwards only in overlapped pairs: merge the backwards of this schedule "
            "(merge_backward)"
        )
    if full != schedule and split_backward(full) != schedule:
        raise ShapeError("Megatron-LM splits all backwards or none, not some of them")


def _group_size(schedule: Schedule) -> int | None:
    """Return the number of forwards of a rank's first chunk before its second chunk; None for one chunk."""
    row = schedule.row(0)
    stages = row.stage[row.kind == Kind.F]
    other = (stages != stages[0]).nonzero()[0] if len(stages) else []
    return int(other[0]) if len(other) else None


def _name(schedule: Schedule) -> str:
    return schedule.name or "this schedule"


def pipeline_flags(schedule: Schedule, order: MegatronOrder, training: Training) -> tuple[str, ...]:
    """Return Megatron-LM's flags for a schedule, its layers and its batch.

    Parameters
    ----------
    schedule
        Schedule with its stages in a line or in a loop.
    order
        Megatron order of the schedule.
    training
        Layers per stage, batch and replicas.

    Raises
    ------
    ShapeError
        If Megatron cannot run the shape: groups smaller than the ranks or larger than the microbatches, a last group smaller
        than the ranks, interleaving on one rank, overlapped pairs with one chunk per rank, with recomputation or with
        several MTP layers, or layers that are not one number per stage.
    """
    _require_order(schedule, order, training)
    flags = [
        f"--pipeline-model-parallel-size {schedule.ranks}",
        f"--micro-batch-size {training.microbatch_size}",
        f"--global-batch-size {global_batch(schedule, training)}",
    ]
    layers = training.layers_of(schedule.stages)
    if layers is not None:  # the parts of a layout also imply the chunks
        layout = TrainerLayout(layers=layers, mtp_layers=training.mtp_layers)
        flags += [f"--num-layers {sum(layers)}", f"--pipeline-model-parallel-layout '{write_layout(layout)}'"]
    elif schedule.placement.chunks > 1:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {schedule.placement.chunks}")
    if training.mtp_layers:
        flags.append(f"--mtp-num-layers {training.mtp_layers}")
    if order.group_size is not None:
        flags.append(f"--microbatch-group-size-per-virtual-pipeline-stage {order.group_size}")
    if order.overlap:
        flags.append("--overlap-moe-expert-parallel-comm")
    if order.delayed_weights:
        flags.append("--delay-wgrad-compute")
    if order.recompute:
        flags += [f"--{name.replace('_', '-')} {value}" for name, value in RECOMPUTED.items()]
    return tuple(flags)


def _require_order(schedule: Schedule, order: MegatronOrder, training: Training) -> None:
    if schedule.placement.chunks > 1:
        _require_group(schedule, schedule.ranks if order.group_size is None else order.group_size)
    elif order.overlap and schedule.ranks > 1:
        raise ShapeError("Megatron-LM overlaps forwards with backwards only with at least two chunks per rank")
    if order.overlap and order.recompute:
        raise ShapeError("Megatron-LM does not combine full recomputation with overlapped forwards and backwards")
    if order.overlap and training.mtp_layers > (schedule.ranks > 1):
        raise ShapeError(
            "Megatron-LM overlaps forwards with backwards with at most one MTP layer, and none on one rank, not "
            f"{training.mtp_layers} on {schedule.ranks}",
            field="mtp_layers",
        )


def _require_group(schedule: Schedule, group: int) -> None:
    ranks, microbatches = schedule.ranks, schedule.microbatches
    if ranks < 2:
        raise ShapeError("Megatron-LM interleaves only on at least two ranks")
    if microbatches < ranks:
        raise ShapeError(
            f"{microbatches} microbatches are too few: Megatron-LM interleaves at least one per rank, {ranks}"
        )
    if not ranks <= group <= microbatches:
        raise ShapeError(
            f"invalid group size {group}: Megatron-LM needs {ranks} (the ranks) to {microbatches} (the microbatches)",
            field="group_size",
        )
    if 0 < microbatches % group < ranks:
        raise ShapeError(
            f"invalid group size {group}: it leaves a last group of {microbatches % group} of {microbatches} microbatches, "
            f"and Megatron-LM needs at least {ranks}, the number of ranks",
            field="group_size",
        )


def heading(trainer: str, schedule: Schedule, training: Training) -> Iterator[str]:
    """Yield sentences on the shape, the batch and the processes of a schedule for a trainer on Megatron-core."""
    yield (
        f"{trainer}, for {one_line(schedule.name or 'this schedule')}: "
        f"{counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')}, "
        f"{counted(schedule.microbatches, 'microbatch')}."
    )
    yield (
        f"{counted(training.microbatch_size, 'sequence')} x {counted(schedule.microbatches, 'microbatch')} x "
        f"{counted(training.data_parallel, 'replica')} = {global_batch(schedule, training)}; "
        f"start {schedule.ranks * training.data_parallel} processes times the tensor and context parallel degrees."
    )


def _notes(schedule: Schedule, training: Training) -> Iterator[str]:
    if training.layers is not None:
        yield f"The layout implies the chunks per rank; do not combine it with {', '.join(_OF_LAYOUTS)}."
    elif schedule.stages > 1:
        yield f"The number of layers must be a multiple of {schedule.stages}; otherwise set the layers of each stage."


def needs_of(order: MegatronOrder) -> Iterator[str]:
    """Yield sentences on what an order needs and excludes."""
    if order.overlap:
        yield (
            "Overlapped pairs need a mixture of experts with --expert-model-parallel-size >= 2, "
            "--moe-token-dispatcher-type alltoall or flex, --bf16 or --fp16, and PyTorch >= 2.6;"
        )
        yield (
            "they exclude --moe-shared-expert-overlap, --recompute-granularity full, --recompute-method, "
            "--recompute-num-layers, --recompute-modules moe and CUDA graphs of moe or mlp."
        )
    if order.delayed_weights:
        yield (
            "--delay-wgrad-compute needs --transformer-impl transformer_engine, with --overlap-grad-reduce Transformer "
            "Engine >= 2.8 (in CUDA graphs of attn >= 2.12), without gradient accumulation fusion >= 2.7, and, before "
            "Megatron-core 0.17, excludes --moe-use-legacy-grouped-gemm; it delays the weight gradients of transformer "
            "layers, not those of embedding and head."
        )


def _warnings(schedule: Schedule) -> Iterator[str]:
    if schedule.placement.chunks > 1 and schedule.ranks == 2:
        yield (
            "on two ranks, do not use --no-overlap-p2p-communication; with Megatron-core alone, set overlap_p2p_comm=True "
            "and batch_p2p_comm=False, which are not its defaults. Otherwise batched transfers of the two directions are "
            "mixed up and gradients are wrong"
        )


def fields_of(sentence: str) -> str:
    """Return a sentence with the names of configuration fields in place of flags."""
    return re.sub(r"--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), sentence)


def commented(sentence: str) -> list[str]:
    """Return a sentence as lines of comments."""
    return wrap(
        sentence, 120, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
    )


def global_batch(schedule: Schedule, training: Training) -> int:
    """Return the sequences of a step."""
    return training.microbatch_size * schedule.microbatches * training.data_parallel


TRAINER = built_in(
    "megatron-lm",
    software="megatron-core-overlapped",
    schedules=SCHEDULES,
    formats=(
        Format(
            name="megatron",
            title="Megatron-LM flags",
            help="Flags with which Megatron-LM generates the same schedule: 1F1B and interleaved 1F1B, optionally "
            "overlapped.",
            ending=".megatron.sh",
            media="text/x-shellscript; charset=utf-8",
            write_settings=megatron_settings,
        ),
    ),
    write_layout=write_layout,
    parse_layout=read_layout,
    layout_mark=r"^[ \t\"']*E[^\n]*L[ \t\"']*$|^[ \t\"'(]*[EtmL|][EtmL|*(), \t\d]*$"
    r"|--[a-z][-\w]{0,50}?(?:layers|layout|pipeline)|^[ \t\"]*(?:num_layers|pipeline_model_parallel_\w+)\"?:",
)
