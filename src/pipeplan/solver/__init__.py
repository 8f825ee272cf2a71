"""The search for better schedules: the problem, moves, engines, proofs, the portfolio that runs them, and the front."""

from pipeplan.solver.budget import Effort
from pipeplan.solver.choices import CHOICES, Choice, Choices
from pipeplan.solver.engines.building_blocks import BuildingBlocks
from pipeplan.solver.engines.list_scheduling import ListScheduling
from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.engines.proving import EarlyProof, Proving
from pipeplan.solver.engines.published import (
    EVERYTHING_UP_TO,
    DrivenByCosts,
    FixedOrders,
    best_published,
    driven_by_costs,
    fixed_orders,
    published,
)
from pipeplan.solver.exact.engines import Exact, FewRanks
from pipeplan.solver.front import Front, FrontMark, Point, pareto, undominated_marks
from pipeplan.solver.moves import MOVES, Move
from pipeplan.solver.placements import (
    BestPlacement,
    PlacementTried,
    PublishedEntry,
    Turn,
    best_placement,
    is_of,
    searched_here,
    together,
)
from pipeplan.solver.portfolio import ENGINES, engines_going_on, require_shape, search
from pipeplan.solver.problem import Problem
from pipeplan.solver.reordering import Reorderer, Reordering
from pipeplan.solver.result import (
    ALL_RECOMPUTED,
    Improvement,
    Published,
    SearchProgress,
    SearchResult,
    is_as_published,
    latest_compiled,
)
from pipeplan.solver.run import Engine, Run, value_as_is

__all__ = [
    "ALL_RECOMPUTED",
    "CHOICES",
    "ENGINES",
    "EVERYTHING_UP_TO",
    "MOVES",
    "BestPlacement",
    "BuildingBlocks",
    "Choice",
    "Choices",
    "DrivenByCosts",
    "EarlyProof",
    "Effort",
    "Engine",
    "Exact",
    "FewRanks",
    "FixedOrders",
    "Front",
    "FrontMark",
    "Improvement",
    "ListScheduling",
    "LocalSearch",
    "Move",
    "PlacementTried",
    "Point",
    "Problem",
    "Proving",
    "Published",
    "PublishedEntry",
    "Reorderer",
    "Reordering",
    "Run",
    "SearchProgress",
    "SearchResult",
    "Turn",
    "best_placement",
    "best_published",
    "driven_by_costs",
    "engines_going_on",
    "fixed_orders",
    "is_as_published",
    "is_of",
    "latest_compiled",
    "pareto",
    "published",
    "require_shape",
    "search",
    "searched_here",
    "together",
    "undominated_marks",
    "value_as_is",
]
