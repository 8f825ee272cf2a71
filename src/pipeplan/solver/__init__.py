"""The search for better schedules: the problem, engines, proofs, the portfolio that runs them, and the front."""

from pipeplan.solver.engines.published import published
from pipeplan.solver.front import Front, Mark, Point, pareto
from pipeplan.solver.portfolio import ENGINES, search
from pipeplan.solver.problem import Instance, Objective
from pipeplan.solver.result import Improvement, Progress, Result
from pipeplan.solver.robustness import Jitter, Robustness, robustness
from pipeplan.solver.run import Engine, Run

__all__ = [
    "ENGINES",
    "Engine",
    "Front",
    "Improvement",
    "Instance",
    "Jitter",
    "Mark",
    "Objective",
    "Point",
    "Progress",
    "Result",
    "Robustness",
    "Run",
    "pareto",
    "published",
    "robustness",
    "search",
]
