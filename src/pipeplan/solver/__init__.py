"""The search for better schedules: the problem, moves, engines, proofs, the portfolio that runs them, and the front."""

from pipeplan.solver.engines.building_blocks import BuildingBlocks
from pipeplan.solver.engines.list_scheduling import ListScheduling
from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.engines.proving import Proving
from pipeplan.solver.engines.published import DrivenByCosts, FixedOrders, published
from pipeplan.solver.exact.engine import Exact
from pipeplan.solver.front import Front, Mark, Point, pareto
from pipeplan.solver.moves import MOVES, Move
from pipeplan.solver.portfolio import ENGINES, search
from pipeplan.solver.problem import Objective, Problem
from pipeplan.solver.result import Found, Improvement, SearchProgress
from pipeplan.solver.robustness import Jitter, Robustness, robustness
from pipeplan.solver.run import Engine, Run

__all__ = [
    "ENGINES",
    "MOVES",
    "BuildingBlocks",
    "DrivenByCosts",
    "Engine",
    "Exact",
    "FixedOrders",
    "Found",
    "Front",
    "Improvement",
    "Jitter",
    "ListScheduling",
    "LocalSearch",
    "Mark",
    "Move",
    "Objective",
    "Point",
    "Problem",
    "Proving",
    "Robustness",
    "Run",
    "SearchProgress",
    "pareto",
    "published",
    "robustness",
    "search",
]
