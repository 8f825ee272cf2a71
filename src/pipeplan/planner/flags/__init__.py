"""What to paste to train with a configuration: Megatron-LM's flags, torchtitan's, and pipeplan's own command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pipeplan.errors import InputError
from pipeplan.formats import Training, megatron_release, torchtitan_accumulation
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

__all__ = ["TRAINERS", "TrainerFlags", "flags_of", "require_release"]

TRAINERS: dict[str, Callable[[ModelShape, Cluster, Configuration, Schedule, str | None], TrainerFlags]] = {
    "megatron": megatron,
    "torchtitan": torchtitan,
    "pipeplan": own,
}
"""By name."""


LATEST: Mapping[str, str] = MappingProxyType({})
"""The newest release of every trainer that can be installed and is known."""


def require_release(trainer: str, version: str) -> None:
    """Refuse a release of a trainer that flags are not known for. Raises InputError."""
    if trainer == "megatron":
        megatron_release(version)
    elif trainer == "torchtitan":
        torchtitan_accumulation(Training(trainer_version=version, sequence_length=1), steps=1)
    else:
        raise InputError(
            f"flags of {trainer} are for the installed release alone, not {version}", field="trainer_version"
        )


def flags_of(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    schedule: Schedule | None = None,
    *,
    versions: Mapping[str, str] = LATEST,
) -> dict[str, TrainerFlags]:
    """What to paste, by trainer.

    Parameters
    ----------
    schedule
        To run in the place of the configuration's own, of as many ranks, stages and microbatches.

    versions
        Releases by trainer, such as ``{"torchtitan": "main"}``; those of others are the newest ones.

    Raises
    ------
    PipeplanError
        For degrees that do not split the model, a shape that the schedule cannot take, or an unknown release.
    """
    if schedule is None:
        schedule = schedule_of(configuration, costs_of(stage_costs(model, cluster, configuration), configuration))
    return {
        name: written(model, cluster, configuration, schedule, versions.get(name)) for name, written in TRAINERS.items()
    }
