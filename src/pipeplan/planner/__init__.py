"""Planner: estimates of given configurations, and the search over all valid configurations."""

from pipeplan.planner.answers import (
    ClosestMiss,
    CostsFrom,
    Counts,
    ErrorBar,
    Estimate,
    Fit,
    GpuMemory,
    Objective,
    Pipelined,
    PlanResult,
    RunnerUp,
    SearchedOrder,
    Sensitivity,
    StepTime,
    Totals,
    TrainerPlan,
)
from pipeplan.planner.calibration import (
    Calibration,
    CalibrationRecord,
    Correction,
    read_calibration,
    require_calibration_file,
    write_calibration,
)
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.error_bars import error_bar
from pipeplan.planner.estimates.calibrating import calibrated, updated_by_run
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.memory_rules import memory_rules, software_with
from pipeplan.planner.estimates.running import costs_of, placed, schedule_of
from pipeplan.planner.estimates.software import EARLY, software
from pipeplan.planner.estimates.stages import even_layout, layout_of, stage_costs
from pipeplan.planner.fitting import default_limit, fit_of, widest_limit
from pipeplan.planner.selection.finalists import best_layout_of
from pipeplan.planner.selection.legality import UNUSUAL
from pipeplan.planner.selection.plans import DEFAULT_TOKENS, plan
from pipeplan.planner.selection.request import (
    CHOICES,
    PlanListener,
    PlanProgress,
    part_of,
    read_fixed,
    short_name,
    written,
)

__all__ = [
    "CHOICES",
    "DEFAULT_TOKENS",
    "EARLY",
    "UNUSUAL",
    "Calibration",
    "CalibrationRecord",
    "ClosestMiss",
    "Configuration",
    "Correction",
    "CostsFrom",
    "Counts",
    "ErrorBar",
    "Estimate",
    "Fit",
    "GpuMemory",
    "Objective",
    "Pipelined",
    "PlanListener",
    "PlanProgress",
    "PlanResult",
    "RunnerUp",
    "SearchedOrder",
    "Sensitivity",
    "StepTime",
    "Totals",
    "TrainerPlan",
    "best_layout_of",
    "calibrated",
    "costs_of",
    "default_limit",
    "error_bar",
    "estimate",
    "even_layout",
    "fit_of",
    "layout_of",
    "memory_rules",
    "part_of",
    "placed",
    "plan",
    "read_calibration",
    "read_fixed",
    "require_calibration_file",
    "schedule_of",
    "short_name",
    "software",
    "software_with",
    "stage_costs",
    "updated_by_run",
    "widest_limit",
    "write_calibration",
    "written",
]
