"""Trainers that a plan can be for, and the flags of a plan by trainer.

A trainer of :data:`pipeplan.trainers.TRAINERS` takes plans if ``flags/`` has a module with its name, or if its record names
a module. The module has ``plan_flags``, and ``refusal_of`` if the trainer cannot build every model.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.running import costs_of, schedule_of
from pipeplan.extensions.planning.estimates.stages import stage_costs
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.formats import TrainerSettings
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.model import Schedule
from pipeplan.trainers import TRAINERS, Trainer

_NEWEST: Mapping[str, str] = MappingProxyType({})


def _module_name(trainer: Trainer) -> str | None:
    if trainer.plans is not None:
        return trainer.plans
    own = f"{__package__}.flags.{trainer.name}"
    return own if trainer.name.isidentifier() and find_spec(own) else None


def _module(trainer: Trainer) -> Any:
    name = _module_name(trainer)
    assert name is not None
    return import_module(name)


def plan_trainers() -> dict[str, Trainer]:
    """Return the trainers that a plan can be for, by their names."""
    return {name: trainer for name, trainer in TRAINERS.items() if _module_name(trainer) is not None}


def plan_trainer(name: str) -> Trainer:
    """Return a trainer that a plan can be for. Raises UnknownNameError for another name."""
    trainer = TRAINERS.find(name)
    if trainer is None or _module_name(trainer) is None:
        raise UnknownNameError("trainer", name, plan_trainers(), field="flags")
    return trainer


def refusal_of(trainer: Trainer, model: ModelShape) -> str:
    """Return why a trainer cannot build a model; empty if it can."""
    refuse = getattr(_module(trainer), "refusal_of", None)
    return "" if refuse is None else refuse(model)


def plan_flags(  # noqa: PLR0917 - as the function of each trainer
    trainer: Trainer,
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    schedule: Schedule,
    version: str | None = None,
) -> TrainerSettings:
    """Return the flags of a configuration that runs a schedule, for a release; None: the newest supported one."""
    settings: TrainerSettings = _module(trainer).plan_flags(model, cluster, configuration, schedule, version)
    return settings


def flags_of(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    schedule: Schedule | None = None,
    *,
    versions: Mapping[str, str] = _NEWEST,
) -> dict[str, TrainerSettings]:
    """Return the flags to train with a configuration, by trainer.

    ``schedule`` runs in place of the configuration's own, with the same ranks, stages and microbatches. ``versions`` are
    releases by trainer, such as ``{"torchtitan": "main"}``; the newest supported ones for the others.

    Raises PipeplanError if the degrees do not divide the model, the schedule cannot take the shape, or for a wrong release.
    """
    if schedule is None:
        schedule = schedule_of(configuration, costs_of(stage_costs(model, cluster, configuration), configuration))
    return {
        name: plan_flags(trainer, model, cluster, configuration, schedule, versions.get(name))
        for name, trainer in plan_trainers().items()
    }
