"""Which configuration to train with: estimates of given ones, layouts, and the search over all that are legal."""

from pipeplan.planner.accuracy.error_bars import error_bar
from pipeplan.planner.calibration import (
    Calibration,
    Correction,
    read_calibration,
    require_calibration_file,
    write_calibration,
)
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import CostsFrom, ErrorBar, Estimate, RankMemory, StepTime
from pipeplan.planner.estimates.calibrating import calibrated, updated_by_run
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.running import costs_of, schedule_of
from pipeplan.planner.estimates.stages import stage_costs
from pipeplan.planner.flags import TRAINERS, TrainerFlags, flags_of, require_release
from pipeplan.planner.layout import BestLayout, LaidLayer, LayerOption, StageOption, best_layout
from pipeplan.planner.planned import ClosestMiss, Counts, Objective, Planned, RunnerUp, SearchedOrder, Sensitivity
from pipeplan.planner.published_runs.rows import Row, read_rows, row_from
from pipeplan.planner.selection.choices import CHOICES, read_fixed, short_name, written
from pipeplan.planner.selection.planning import plan
from pipeplan.planner.selection.progress import PlanListener, PlanProgress
from pipeplan.planner.selection.question import default_limit
from pipeplan.planner.selection.trials import part_of

__all__ = [
    "CHOICES",
    "TRAINERS",
    "BestLayout",
    "Calibration",
    "ClosestMiss",
    "Configuration",
    "Correction",
    "CostsFrom",
    "Counts",
    "ErrorBar",
    "Estimate",
    "LaidLayer",
    "LayerOption",
    "Objective",
    "PlanListener",
    "PlanProgress",
    "Planned",
    "RankMemory",
    "Row",
    "RunnerUp",
    "SearchedOrder",
    "Sensitivity",
    "StageOption",
    "StepTime",
    "TrainerFlags",
    "best_layout",
    "calibrated",
    "costs_of",
    "default_limit",
    "error_bar",
    "estimate",
    "flags_of",
    "part_of",
    "plan",
    "read_calibration",
    "read_fixed",
    "read_rows",
    "require_calibration_file",
    "require_release",
    "row_from",
    "schedule_of",
    "short_name",
    "stage_costs",
    "updated_by_run",
    "write_calibration",
    "written",
]
