"""The public API: one function a command, the types that they give, and what the shell and the web share with them."""

from pipeplan.api.arguments import Given, ScheduleLike
from pipeplan.api.catalogue import schedules
from pipeplan.api.checks import Verdict, check
from pipeplan.api.comparisons import Comparison, compare
from pipeplan.api.conversions import convert
from pipeplan.api.differences import Diff, diff
from pipeplan.api.explanations import Explanation, explain
from pipeplan.api.exports import Export, export
from pipeplan.api.fronts import ParetoFront
from pipeplan.api.outputs import save
from pipeplan.api.results import Result, SearchRecord
from pipeplan.api.simulations import simulate
from pipeplan.api.sources import read
from pipeplan.api.training_runs import CostProfile, TrainingRun, profile, run

__all__ = [
    "Comparison",
    "CostProfile",
    "Diff",
    "Explanation",
    "Export",
    "Given",
    "ParetoFront",
    "Result",
    "ScheduleLike",
    "SearchRecord",
    "TrainingRun",
    "Verdict",
    "check",
    "compare",
    "convert",
    "diff",
    "explain",
    "export",
    "profile",
    "read",
    "run",
    "save",
    "schedules",
    "simulate",
]
