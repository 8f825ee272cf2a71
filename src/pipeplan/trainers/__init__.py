"""Trainers that run plans and schedules: settings of a schedule, flags of a plan, and layout texts of each."""

from pipeplan.trainers.registry import (
    TRAINERS,
    TrainerVerdict,
    flags_of,
    refusal,
    require_release,
    runners,
    trainers_of,
)
from pipeplan.trainers.trainer import Trainer

__all__ = [
    "TRAINERS",
    "Trainer",
    "TrainerVerdict",
    "flags_of",
    "refusal",
    "require_release",
    "runners",
    "trainers_of",
]
