"""Registry of trainers: every module of this package that declares ``TRAINER`` is a trainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipeplan.errors import PipeplanError, UnknownNameError
from pipeplan.formats import Format, TrainerSettings, Training, formats
from pipeplan.model import Schedule
from pipeplan.trainers.trainer import Trainer

if TYPE_CHECKING:
    from pipeplan.hardware import Cluster
    from pipeplan.planner import Configuration
    from pipeplan.workload import ModelShape

_FIRST = ("megatron", "bridge", "torchtitan")
_LAST = "own"

_OF_PLANS = "_plan"
"""Ending of the names of modules with plan flags, which import the planner and are loaded only for plans."""


def _registered() -> dict[str, Trainer]:
    package = import_module(__package__)
    files = [module.name for module in iter_modules(package.__path__) if not module.name.endswith(_OF_PLANS)]
    order = sorted(files, key=lambda file: (file == _LAST, _FIRST.index(file) if file in _FIRST else len(_FIRST), file))
    modules = (import_module(f"{package.__name__}.{file}") for file in order)
    declared = (getattr(module, "TRAINER", None) for module in modules)
    return {trainer.name: trainer for trainer in declared if trainer is not None}


TRAINERS: Mapping[str, Trainer] = MappingProxyType(_registered())
"""Every trainer by its name."""

_PYTORCH = "pytorch"
"""Name of PyTorch's own runtime, which runs the CSV of a schedule and has no flags."""

RUNNERS = (_PYTORCH, *(name for name, trainer in TRAINERS.items() if trainer.formats))
"""Every trainer that a schedule can be written for."""

_NEWEST: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TrainerVerdict:
    """Verdict whether a trainer can run a schedule; ``reason`` is empty if it can."""

    trainer: str
    format: str
    reason: str = ""

    @property
    def runs(self) -> bool:
        """True if the trainer can run the schedule."""
        return not self.reason


def trainers_of(schedule: Schedule) -> tuple[TrainerVerdict, ...]:
    """Return, for each of :data:`RUNNERS`, whether it can run the schedule and, if not, why."""
    return tuple(_verdict(name, schedule) for name in RUNNERS)


def refusal(name: str, schedule: Schedule) -> str:
    """Return why one of :data:`RUNNERS` cannot run a schedule, in one line; empty if it can."""
    return _verdict(name, schedule).reason


def _verdict(name: str, schedule: Schedule) -> TrainerVerdict:
    if name == _PYTORCH:
        title, chosen = "PyTorch", formats()["torch-csv-comms"]
    else:
        title, chosen = TRAINERS[name].title, TRAINERS[name].formats[0]
    try:
        if chosen.write_settings is not None:
            chosen.write_settings(schedule, Training())
        elif chosen.write_schedule is not None:
            chosen.write_schedule(schedule)
    except PipeplanError as error:
        return TrainerVerdict(title, chosen.name, str(error).partition("\n")[0])
    return TrainerVerdict(title, chosen.name)


def trainer_formats() -> tuple[Format, ...]:
    """Return the formats that hold a trainer's settings for a schedule."""
    return tuple(chosen for trainer in TRAINERS.values() for chosen in trainer.formats)


def require_release(trainer: str, version: str) -> None:
    """Raise InputError for an unsupported release of a trainer, and UnknownNameError for an unknown trainer."""
    if trainer not in TRAINERS:
        raise UnknownNameError("trainer", trainer, TRAINERS, field="flags")
    TRAINERS[trainer].release(version)


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
    from pipeplan.planner import costs_of, schedule_of, stage_costs

    if schedule is None:
        schedule = schedule_of(configuration, costs_of(stage_costs(model, cluster, configuration), configuration))
    return {
        name: trainer.plan_flags(model, cluster, configuration, schedule, versions.get(name))
        for name, trainer in TRAINERS.items()
    }
