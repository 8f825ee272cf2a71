"""Trainers that run schedules and plans: settings of a schedule, layout texts, and releases of each."""

from __future__ import annotations

from pipeplan.trainers.layout import MOST_ENTRIES, TrainerLayout
from pipeplan.trainers.megatron_layout import uneven_layers, unrolled
from pipeplan.trainers.registry import (
    TRAINERS,
    TrainerVerdict,
    find_layout,
    layout_trainers,
    read_layout,
    refusal,
    runners,
    trainers_of,
    with_stage_layers,
    write_layout,
)
from pipeplan.trainers.torchtitan_layout import AUTOMODEL, TORCHTITAN, ModuleNames, module_names
from pipeplan.trainers.trainer import (
    NEWEST,
    OTHER,
    TRAINER_KINDS,
    Trainer,
    TrainerKind,
    in_releases,
    is_release,
    trainer_kind,
    trainer_names,
)

__all__ = [
    "AUTOMODEL",
    "MOST_ENTRIES",
    "NEWEST",
    "OTHER",
    "TORCHTITAN",
    "TRAINERS",
    "TRAINER_KINDS",
    "ModuleNames",
    "Trainer",
    "TrainerKind",
    "TrainerLayout",
    "TrainerVerdict",
    "find_layout",
    "in_releases",
    "is_release",
    "layout_trainers",
    "module_names",
    "read_layout",
    "refusal",
    "runners",
    "trainer_kind",
    "trainer_names",
    "trainers_of",
    "uneven_layers",
    "unrolled",
    "with_stage_layers",
    "write_layout",
]
