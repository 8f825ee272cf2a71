"""Settings for other trainers: which of their schedules is ours."""

from __future__ import annotations

from pipeplan.errors import ShapeError
from pipeplan.formats import Format, MegatronOrder, TrainerSettings, Training, megatron_flags
from pipeplan.model import COMPUTE_KINDS, HOST_KINDS, Kind, Schedule, among
from pipeplan.passes import insert_recompute, merge_backward, split_backward, without_recompute
from pipeplan.strategies import STRATEGIES


def megatron_settings(schedule: Schedule, training: Training) -> TrainerSettings:
    """Megatron-LM's flags for a schedule, if it is one that Megatron makes; its communication is Megatron's own.

    Raises
    ------
    ShapeError
        If Megatron does not run this order of ops, or refuses its shape.
    InputError
        For a release of Megatron-core that is not known.
    """
    compute = schedule.keep(among(schedule.columns.kind, (*COMPUTE_KINDS, *HOST_KINDS)))
    _require_stages(compute)
    plain, order = _order_of(compute)
    settings = megatron_flags(compute, order, training)
    if plain != _as_megatron_makes_it(compute, order):
        raise ShapeError(f"{_name(schedule)} is not the order in which Megatron-LM runs {_in_words(order)}")
    return settings


def _require_stages(schedule: Schedule) -> None:
    """Refuse what no flag can ask Megatron for, whatever the order. Raises ShapeError."""
    placement = schedule.placement
    if placement.name not in ("linear", "loop") or schedule.slices > 1:
        cut = f", its sequences cut into {schedule.slices}" if schedule.slices > 1 else ""
        raise ShapeError(
            f"Megatron-LM runs 1F1B and interleaved 1F1B, its stages in a line or a loop and its sequences whole; "
            f"{_name(schedule)} ({placement.name}{cut}) is neither"
        )


def _order_of(schedule: Schedule) -> tuple[Schedule, MegatronOrder]:
    """A schedule with full backwards and nothing recomputed, and the order of Megatron's that it may be.

    Raises
    ------
    ShapeError
        For weight backwards that are put off further than Megatron can, for recomputation that is not every stage's, and for
        copies to the host.
    """
    if not schedule.kinds.isdisjoint(HOST_KINDS):
        raise ShapeError(
            "Megatron-LM's flags offload modules of every microbatch alike, not microbatches at their places in a schedule: "
            "leave offload out",
            field="offload",
        )
    passes = without_recompute(schedule)
    if passes != schedule and insert_recompute(passes) != schedule:
        raise ShapeError(
            "Megatron-LM's flags recompute every stage alike, right before its backward: which stages, they cannot say"
        )
    full = merge_backward(passes)
    overlap = bool(full.joined.any())
    _require_weights(passes, full, overlap)
    group = _group_size(full)
    return full, MegatronOrder(
        group_size=group, overlap=overlap, delayed_weights=full != passes, recompute=passes != schedule
    )


def _require_weights(schedule: Schedule, full: Schedule, overlap: bool) -> None:
    """Refuse weight backwards where ``--delay-wgrad-compute`` does not put them.

    That is right behind the backward for the inputs, in pairs, and for all backwards alike. Raises ShapeError.
    """
    if full.kinds != {Kind.F, Kind.B}:
        raise ShapeError(
            "Megatron-LM runs full forwards and backwards, or weight gradients right behind those of inputs; "
            f"{_name(schedule)} puts them off further"
        )
    if full != schedule and not overlap:
        raise ShapeError(
            "Megatron-LM takes weight gradients apart from those of inputs only where forwards and backwards overlap; here "
            "they stand side by side: merge them (merge_backward)"
        )
    if full != schedule and split_backward(full) != schedule:
        raise ShapeError("Megatron-LM takes weight gradients apart in all backwards or in none, not in some")


def _group_size(schedule: Schedule) -> int | None:
    """How many forwards of a rank's first chunk come before the first of its second; None for one chunk."""
    row = schedule.row(0)
    stages = row.stage[row.kind == Kind.F]
    other = (stages != stages[0]).nonzero()[0] if len(stages) else []
    return int(other[0]) if len(other) else None


def _as_megatron_makes_it(schedule: Schedule, order: MegatronOrder) -> Schedule:
    name = ("" if order.group_size is None else "interleaved-") + ("1f1b-overlap" if order.overlap else "1f1b")
    strategy = STRATEGIES[name]
    return strategy(
        strategy.shape(schedule.ranks, schedule.microbatches, schedule.placement.chunks, group_size=order.group_size)
    )


def _in_words(order: MegatronOrder) -> str:
    kind = "1F1B" if order.group_size is None else f"interleaved 1F1B in groups of {order.group_size}"
    return f"{kind} with overlapped pairs" if order.overlap else kind


def _name(schedule: Schedule) -> str:
    return schedule.name or "this schedule"


MEGATRON = Format(
    name="megatron",
    title="Megatron-LM flags",
    help="The flags with which Megatron-LM makes the same schedule by itself: 1F1B, interleaved 1F1B, and with overlap.",
    ending=".megatron.txt",
    media="text/plain; charset=utf-8",
    write_settings=megatron_settings,
)
"""Whether a schedule is Megatron-LM's is seen by making it, which formats cannot."""
