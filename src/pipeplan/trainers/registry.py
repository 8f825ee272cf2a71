"""The table of trainers: every module of this package that declares ``TRAINER`` is a trainer."""

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

_FIRST = ("megatron", "torchtitan")
_LAST = "own"

_OF_PLANS = "_plan"
"""Ending of the names of files with a trainer's flags of plans, which load the planner and are loaded for plans alone."""


def _registered() -> dict[str, Trainer]:
    package = import_module(__package__)
    files = [found.name for found in iter_modules(package.__path__) if not found.name.endswith(_OF_PLANS)]
    order = sorted(files, key=lambda file: (file == _LAST, _FIRST.index(file) if file in _FIRST else len(_FIRST), file))
    modules = (import_module(f"{package.__name__}.{file}") for file in order)
    declared = (getattr(module, "TRAINER", None) for module in modules)
    return {trainer.name: trainer for trainer in declared if trainer is not None}


TRAINERS: Mapping[str, Trainer] = MappingProxyType(_registered())
"""Every trainer by its name."""

_PYTORCH = "pytorch"
"""Name of PyTorch's own runtime, which runs a schedule's CSV and has no flags."""

RUNNERS = (_PYTORCH, *(name for name, trainer in TRAINERS.items() if trainer.formats))
"""Everything that a schedule can be written for."""

_NEWEST: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TrainerVerdict:
    """Whether a trainer runs a schedule; ``reason`` is empty where it does."""

    trainer: str
    format: str
    reason: str = ""

    @property
    def runs(self) -> bool:
        """Whether the trainer runs the schedule."""
        return not self.reason


def trainers_of(schedule: Schedule) -> tuple[TrainerVerdict, ...]:
    """Return whether each of :data:`RUNNERS` runs a schedule, with the reason if not."""
    return tuple(_verdict(name, schedule) for name in RUNNERS)


def refusal(name: str, schedule: Schedule) -> str:
    """Return why one of :data:`RUNNERS` cannot run a schedule, in one line; empty where it can."""
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
    """Refuse a release that a trainer's flags are not known for. Raises InputError, and UnknownNameError for the trainer."""
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
        Runs in place of the configuration's own: of as many ranks, stages and microbatches.
    versions
        Releases by trainer, such as ``{"torchtitan": "main"}``; the newest known ones of the others.

    Raises
    ------
    PipeplanError
        For degrees that do not split the model, a shape that the schedule cannot take, or an unknown release.
    """
    from pipeplan.planner import costs_of, schedule_of, stage_costs

    if schedule is None:
        schedule = schedule_of(configuration, costs_of(stage_costs(model, cluster, configuration), configuration))
    return {
        name: trainer.plan_flags(model, cluster, configuration, schedule, versions.get(name))
        for name, trainer in TRAINERS.items()
    }
