"""Registry of trainers: every module of this package that declares ``TRAINER`` is a trainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipeplan.errors import PipeplanError, UnknownNameError
from pipeplan.formats import TrainerSettings, Training, formats
from pipeplan.model import Schedule
from pipeplan.registry import Registry
from pipeplan.trainers.trainer import Trainer

if TYPE_CHECKING:
    from pipeplan.hardware import Cluster
    from pipeplan.planner import Configuration
    from pipeplan.workload import ModelShape

_FIRST = ("megatron", "bridge", "torchtitan")
_LAST = "own"

_OF_PLANS = "_plan"
"""Ending of the names of modules with plan flags, which import the planner and are loaded only for plans."""


def _built_in() -> list[Trainer]:
    package = import_module(__package__)
    files = [module.name for module in iter_modules(package.__path__) if not module.name.endswith(_OF_PLANS)]
    order = sorted(files, key=lambda file: (file == _LAST, _FIRST.index(file) if file in _FIRST else len(_FIRST), file))
    modules = (import_module(f"{package.__name__}.{file}") for file in order)
    declared = (getattr(module, "TRAINER", None) for module in modules)
    return [trainer for trainer in declared if trainer is not None]


TRAINERS = Registry("pipeplan.trainers", Trainer, "trainer", _built_in, names=lambda trainer: (trainer.name,))
"""Every trainer by its name: those of pipeplan, then registered ones and plugins."""

_PYTORCH = "pytorch"
"""Name of PyTorch's own runtime, which runs the CSV of a schedule and has no flags."""


def runners(among: Mapping[str, Trainer] = TRAINERS) -> tuple[str, ...]:
    """Return the names of all trainers that a schedule can be written for."""
    return (_PYTORCH, *(name for name, trainer in among.items() if trainer.formats))


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
    """Return, for each of :func:`runners`, whether it can run the schedule and, if not, why."""
    return tuple(_verdict(name, schedule) for name in runners())


def refusal(name: str, schedule: Schedule) -> str:
    """Return why one of :func:`runners` cannot run a schedule, in one line; empty if it can.

    Raises UnknownNameError for any other name.
    """
    if name != _PYTORCH and ((trainer := TRAINERS.find(name)) is None or not trainer.formats):
        raise UnknownNameError("trainer", name, runners(), field="trainer")
    return _verdict(name, schedule).reason


def _verdict(name: str, schedule: Schedule) -> TrainerVerdict:
    if name == _PYTORCH:
        title, chosen = "PyTorch", formats()["torch-csv-comms"]
    else:
        trainer = TRAINERS.required(name)
        title, chosen = trainer.title, trainer.formats[0]
    try:
        if chosen.write_settings is not None:
            chosen.write_settings(schedule, Training())
        elif chosen.write_schedule is not None:
            chosen.write_schedule(schedule)
    except PipeplanError as error:
        return TrainerVerdict(title, chosen.name, str(error).partition("\n")[0])
    return TrainerVerdict(title, chosen.name)


def require_release(trainer: str, version: str) -> None:
    """Raise InputError for an unsupported release of a trainer, and UnknownNameError for an unknown trainer."""
    TRAINERS.required(trainer, field="flags").release(version)


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
