"""Flags of a plan, by trainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from pipeplan.extensions.planning import Configuration, costs_of, schedule_of, stage_costs
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.formats import TrainerSettings
from pipeplan.model import Schedule
from pipeplan.trainers import Trainer, plan_trainers

_NEWEST: Mapping[str, str] = MappingProxyType({})


def plan_flags(  # noqa: PLR0917 - as the function of each trainer
    trainer: Trainer,
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    schedule: Schedule,
    version: str | None = None,
) -> TrainerSettings:
    """Return the flags of a configuration that runs a schedule, for a release; None: the newest supported one."""
    assert trainer.plans is not None
    write: Callable[..., TrainerSettings] = import_module(trainer.plans).plan_flags
    return write(model, cluster, configuration, schedule, version)


def flags_of(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    schedule: Schedule | None = None,
    *,
    versions: Mapping[str, str] = _NEWEST,
) -> dict[str, TrainerSettings]:
    """Return the flags to train with a configuration, by trainer.

    Parameters
    ----------
    schedule
        Schedule to run in place of the configuration's own, with the same ranks, stages and microbatches.
    versions
        Releases by trainer, such as ``{"torchtitan": "main"}``; the newest supported ones for the others.

    Raises
    ------
    PipeplanError
        If the degrees do not divide the model, the schedule cannot take the shape, or a release is unsupported.
    """
    if schedule is None:
        schedule = schedule_of(configuration, costs_of(stage_costs(model, cluster, configuration), configuration))
    return {
        name: plan_flags(trainer, model, cluster, configuration, schedule, versions.get(name))
        for name, trainer in plan_trainers().items()
    }
