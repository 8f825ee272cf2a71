"""Trainers that run plans and schedules: settings of a schedule, flags of a plan, and layout texts of each."""

from pipeplan.trainers.layout import MOST_ENTRIES, TrainerLayout
from pipeplan.trainers.megatron_layout import uneven_layers, unrolled
from pipeplan.trainers.registry import (
    TRAINERS,
    TrainerVerdict,
    flags_of,
    layout_trainers,
    plan_trainer,
    plan_trainers,
    read_layout,
    refusal,
    require_release,
    runners,
    trainers_of,
    with_stage_layers,
    write_layout,
)
from pipeplan.trainers.torchtitan_layout import AUTOMODEL, TORCHTITAN, ModuleNames, module_names
from pipeplan.trainers.trainer import Trainer, function_name

__all__ = [
    "AUTOMODEL",
    "MOST_ENTRIES",
    "TORCHTITAN",
    "TRAINERS",
    "ModuleNames",
    "Trainer",
    "TrainerLayout",
    "TrainerVerdict",
    "flags_of",
    "function_name",
    "layout_trainers",
    "module_names",
    "plan_trainer",
    "plan_trainers",
    "read_layout",
    "refusal",
    "require_release",
    "runners",
    "trainers_of",
    "uneven_layers",
    "unrolled",
    "with_stage_layers",
    "write_layout",
]
