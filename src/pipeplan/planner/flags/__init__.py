"""What to paste to train with a configuration: Megatron-LM's flags, torchtitan's, and pipeplan's own command."""

from __future__ import annotations

from collections.abc import Callable

from pipeplan.hardware import Cluster
from pipeplan.model import Schedule
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.running import costs_of, schedule_of
from pipeplan.planner.estimates.stages import stage_costs
from pipeplan.planner.flags.megatron import megatron
from pipeplan.planner.flags.own import own
from pipeplan.planner.flags.torchtitan import torchtitan
from pipeplan.planner.flags.trainer_flags import TrainerFlags
from pipeplan.workload import ModelShape

__all__ = ["TRAINERS", "TrainerFlags", "flags_of"]

TRAINERS: dict[str, Callable[[ModelShape, Cluster, Configuration, Schedule], TrainerFlags]] = {
    "megatron": megatron,
    "torchtitan": torchtitan,
    "pipeplan": own,
}
"""By name."""


def flags_of(
    model: ModelShape, cluster: Cluster, configuration: Configuration, schedule: Schedule | None = None
) -> dict[str, TrainerFlags]:
    """What to paste, by trainer.

    Parameters
    ----------
    schedule
        To run in the place of the configuration's own, of as many ranks, stages and microbatches.

    Raises
    ------
    PipeplanError
        For degrees that do not split the model, or a shape that the schedule cannot take.
    """
    if schedule is None:
        schedule = schedule_of(configuration, costs_of(stage_costs(model, cluster, configuration), configuration))
    return {name: written(model, cluster, configuration, schedule) for name, written in TRAINERS.items()}
