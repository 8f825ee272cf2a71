"""Trainers that run plans and schedules, each with its settings of a schedule, its flags of a plan and its layouts."""

from pipeplan.trainers.registry import (
    RUNNERS,
    TRAINERS,
    TrainerVerdict,
    flags_of,
    refusal,
    require_release,
    trainer_formats,
    trainers_of,
)
from pipeplan.trainers.trainer import Trainer

__all__ = [
    "RUNNERS",
    "TRAINERS",
    "Trainer",
    "TrainerVerdict",
    "flags_of",
    "refusal",
    "require_release",
    "trainer_formats",
    "trainers_of",
]
