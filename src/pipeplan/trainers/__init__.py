"""Trainers that run plans and schedules: settings of a schedule, flags of a plan, and layout texts of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names
from pipeplan.trainers.layout import MOST_ENTRIES, TrainerLayout
from pipeplan.trainers.megatron_hybrid import layers_of_pattern, short_form_of
from pipeplan.trainers.megatron_layout import uneven_layers, unrolled
from pipeplan.trainers.registry import (
    TRAINERS,
    TrainerVerdict,
    find_layout,
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
from pipeplan.trainers.table import (
    NEWEST,
    OTHER,
    TRAINER_KINDS,
    TrainerKind,
    in_releases,
    is_release,
    trainer_kind,
    trainer_names,
)
from pipeplan.trainers.torchtitan_layout import AUTOMODEL, TORCHTITAN, ModuleNames, module_names
from pipeplan.trainers.trainer import Trainer, function_name

if TYPE_CHECKING:
    from pipeplan.trainers.megatron_plan import offloaded_share
    from pipeplan.trainers.own_plan import (
        assumptions_of,
        cluster_of,
        configuration_document,
        is_configuration,
        model_of,
        read_configuration,
    )
else:
    # Only plans need these names, whose modules load the planner.
    _, __getattr__, __dir__ = lazy_names(__name__)

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
    "assumptions_of",
    "cluster_of",
    "configuration_document",
    "find_layout",
    "flags_of",
    "function_name",
    "in_releases",
    "is_configuration",
    "is_release",
    "layers_of_pattern",
    "layout_trainers",
    "model_of",
    "module_names",
    "offloaded_share",
    "plan_trainer",
    "plan_trainers",
    "read_configuration",
    "read_layout",
    "refusal",
    "require_release",
    "runners",
    "short_form_of",
    "trainer_kind",
    "trainer_names",
    "trainers_of",
    "uneven_layers",
    "unrolled",
    "with_stage_layers",
    "write_layout",
]
