"""Registry of trainers: every module of this package that declares ``TRAINER`` is a trainer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipeplan.errors import InputError, PipeplanError, UnknownNameError
from pipeplan.formats import Format, TrainerSettings, Training, formats
from pipeplan.model import Schedule, one_line, shortened
from pipeplan.trainers.layout import LONGEST, TrainerLayout
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


_EVERY: Mapping[str, Trainer] = MappingProxyType(_registered())

TRAINERS: Mapping[str, Trainer] = MappingProxyType(
    {name: trainer for name, trainer in _EVERY.items() if trainer.plans is not None}
)
"""Every trainer that a plan can be for, by its name."""

_PYTORCH = "pytorch"
"""Name of PyTorch's own runtime, which runs the CSV of a schedule and has no flags."""

RUNNERS = (_PYTORCH, *(name for name, trainer in _EVERY.items() if trainer.formats))
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


def layout_trainers() -> tuple[str, ...]:
    """Return the trainers that have a text for a layout."""
    return tuple(name for name, trainer in TRAINERS.items() if trainer.write_layout is not None)


def read_layout(text: str) -> TrainerLayout:
    """Return the layout in a trainer's text, or in numbers of layers such as ``9+10+10+9``.

    Raises
    ------
    InputError
        If the text is no trainer's layout, or an invalid one.
    ShapeError
        If flags do not divide the layers.
    """
    if len(text) > LONGEST:
        raise InputError(f"the layout is longer than {LONGEST:,} characters", field="layers")
    words = re.split(r"[\s+|,]+", text.strip())
    if all(re.fullmatch(r"\d{1,6}", word) for word in words) and any(map(int, words)):
        return TrainerLayout(layers=tuple(map(int, words)))
    # Megatron-LM comes last: its flags and keys have names that Megatron-Bridge uses, too.
    for trainer in reversed([*TRAINERS.values()]):
        if trainer.parse_layout is not None and re.search(trainer.layout_mark, text, re.MULTILINE):
            return trainer.parse_layout(text)
    raise InputError(
        f"unknown layout '{one_line(shortened(text.strip(), 60))}': expected one of Megatron-LM (Et*3|t*4|t*3L), of "
        'Megatron-Bridge ([["embedding", "decoder"], ["decoder", "loss"]]), of torchtitan (tok_embeddings,layers.0 '
        "layers.1,norm,lm_head), or layers of each stage (3+4+3)",
        field="layers",
    )


def write_layout(layout: TrainerLayout, to: str) -> str:
    """Return the text of a layout for one of :func:`layout_trainers`.

    Raises
    ------
    UnknownNameError
        If the trainer has no text for layouts.
    ShapeError
        If it cannot run the layout.
    """
    write = TRAINERS[to].write_layout if to in TRAINERS else None
    if write is None:
        raise UnknownNameError("trainer with layouts", to, layout_trainers(), field="to")
    return write(layout)


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
        title, chosen = _EVERY[name].title, _EVERY[name].formats[0]
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
    return tuple(chosen for trainer in _EVERY.values() for chosen in trainer.formats)


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
