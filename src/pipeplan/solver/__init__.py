"""The search for better schedules: the problem, engines, proofs, the portfolio that runs them, and the front."""

from pipeplan.solver.engines.published import published
from pipeplan.solver.front import Front, Mark, Point, pareto
from pipeplan.solver.portfolio import ENGINES, search
from pipeplan.solver.problem import Objective, Problem
from pipeplan.solver.result import Found, Improvement, SearchProgress
from pipeplan.solver.robustness import Jitter, Robustness, robustness
from pipeplan.solver.run import Engine, Run

__all__ = [
    "ENGINES",
    "Engine",
    "Found",
    "Front",
    "Improvement",
    "Jitter",
    "Mark",
    "Objective",
    "Point",
    "Problem",
    "Robustness",
    "Run",
    "SearchProgress",
    "pareto",
    "published",
    "robustness",
    "search",
]
