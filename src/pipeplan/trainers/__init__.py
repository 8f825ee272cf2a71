"""Trainers that run plans and schedules: settings of a schedule, flags of a plan, and layout texts of each."""

from pipeplan.trainers.layout import TrainerLayout
from pipeplan.trainers.megatron_layout import uneven_layers
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
    write_layout,
)
from pipeplan.trainers.trainer import Trainer

__all__ = [
    "TRAINERS",
    "Trainer",
    "TrainerLayout",
    "TrainerVerdict",
    "flags_of",
    "layout_trainers",
    "plan_trainer",
    "plan_trainers",
    "read_layout",
    "refusal",
    "require_release",
    "runners",
    "trainers_of",
    "uneven_layers",
    "write_layout",
]
