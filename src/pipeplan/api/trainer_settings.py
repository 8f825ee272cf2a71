"""Settings for other trainers: which of their schedules is ours."""

from __future__ import annotations

from pipeplan.errors import ShapeError
from pipeplan.formats import Format, TrainerSettings, Training, megatron_flags
from pipeplan.model import Kind, Schedule
from pipeplan.passes import without_communication
from pipeplan.strategies import STRATEGIES


def megatron_settings(schedule: Schedule, training: Training) -> TrainerSettings:
    """Megatron-LM's flags for a schedule, if it is one that Megatron makes.

    Raises
    ------
    ShapeError
        If Megatron does not run this order of ops, or refuses its shape.
    """
    compute = without_communication(schedule)
    group = _group_size(compute)
    flags = megatron_flags(
        compute,
        group_size=group,
        layers=training.layers,
        micro_batch_size=training.microbatch_size,
        data_parallel=training.data_parallel,
    )
    if compute != _as_megatron_makes_it(compute, group):
        raise ShapeError(
            f"{schedule.name or 'this schedule'} is not the order in which Megatron-LM runs "
            f"{'1F1B' if group is None else f'interleaved 1F1B in groups of {group}'}"
        )
    return TrainerSettings(text=flags)


def _group_size(schedule: Schedule) -> int | None:
    """How many forwards of a rank's first chunk come before the first of its second; None for one chunk."""
    row = schedule.row(0)
    stages = row.stage[row.kind == Kind.F]
    other = (stages != stages[0]).nonzero()[0] if len(stages) else []
    return int(other[0]) if len(other) else None


def _as_megatron_makes_it(schedule: Schedule, group: int | None) -> Schedule:
    strategy = STRATEGIES["1f1b" if group is None else "interleaved-1f1b"]
    return strategy(strategy.shape(schedule.ranks, schedule.microbatches, schedule.placement.chunks, group_size=group))


MEGATRON = Format(
    name="megatron",
    title="Megatron-LM flags",
    help="The flags with which Megatron-LM makes the same schedule by itself: 1F1B and interleaved 1F1B.",
    ending=".megatron.txt",
    media="text/plain; charset=utf-8",
    write_settings=megatron_settings,
)
"""Whether a schedule is Megatron-LM's is seen by making it, which formats cannot."""
