"""Cost-driven schedules: the published heuristics, and a search that starts from them."""

from pipeplan.search.heuristics import HEURISTICS, Heuristic, heuristic
from pipeplan.search.instance import Instance, Objective
from pipeplan.search.pareto import Front, Mark, Point, pareto
from pipeplan.search.portfolio import ENGINES, search
from pipeplan.search.result import Improvement, Progress, Result
from pipeplan.search.robustness import Jitter, Robustness, robustness
from pipeplan.search.run import Engine, Run
from pipeplan.search.starts import published

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
