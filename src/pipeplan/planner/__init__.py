"""Which configuration to train with: estimates of given ones, layouts, and the search over all that are legal."""

from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import CostsFrom, ErrorBar, Estimate, RankMemory, StepTime
from pipeplan.planner.planned import ClosestMiss, Counts, Objective, Planned, RunnerUp, Sensitivity

__all__ = [
    "ClosestMiss",
    "Configuration",
    "CostsFrom",
    "Counts",
    "ErrorBar",
    "Estimate",
    "Objective",
    "Planned",
    "RankMemory",
    "RunnerUp",
    "Sensitivity",
    "StepTime",
]
