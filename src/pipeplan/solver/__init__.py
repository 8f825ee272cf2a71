"""Cost-driven schedules: the published heuristics, and a search that starts from them."""

from pipeplan.strategies.heuristics import HEURISTICS, Heuristic, heuristic
from pipeplan.solver.problem import Instance, Objective
from pipeplan.solver.front import Front, Mark, Point, pareto
from pipeplan.solver.portfolio import ENGINES, search
from pipeplan.solver.result import Improvement, Progress, Result
from pipeplan.solver.robustness import Jitter, Robustness, robustness
from pipeplan.solver.run import Engine, Run
from pipeplan.solver.engines.published import published

__all__ = [
    "ENGINES",
    "HEURISTICS",
    "Engine",
    "Front",
    "Heuristic",
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
    "heuristic",
    "pareto",
    "published",
    "robustness",
    "search",
]
