"""The search for better schedules: the problem, moves, engines, proofs, the portfolio that runs them, and the front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.extensions.search.budget import Effort as Effort
    from pipeplan.extensions.search.choices import CHOICES as CHOICES
    from pipeplan.extensions.search.choices import Choice as Choice
    from pipeplan.extensions.search.choices import Choices as Choices
    from pipeplan.extensions.search.engines.building_blocks import BuildingBlocks as BuildingBlocks
    from pipeplan.extensions.search.engines.list_scheduling import ListScheduling as ListScheduling
    from pipeplan.extensions.search.engines.order_annealing import LocalSearch as LocalSearch
    from pipeplan.extensions.search.engines.proving import EarlyProof as EarlyProof
    from pipeplan.extensions.search.engines.proving import Proving as Proving
    from pipeplan.extensions.search.engines.published import EVERYTHING_UP_TO as EVERYTHING_UP_TO
    from pipeplan.extensions.search.engines.published import DrivenByCosts as DrivenByCosts
    from pipeplan.extensions.search.engines.published import FixedOrders as FixedOrders
    from pipeplan.extensions.search.engines.published import best_published as best_published
    from pipeplan.extensions.search.engines.published import driven_by_costs as driven_by_costs
    from pipeplan.extensions.search.engines.published import fixed_orders as fixed_orders
    from pipeplan.extensions.search.engines.published import published as published
    from pipeplan.extensions.search.exact.engines import Exact as Exact
    from pipeplan.extensions.search.exact.engines import FewRanks as FewRanks
    from pipeplan.extensions.search.front import Front as Front
    from pipeplan.extensions.search.front import FrontMark as FrontMark
    from pipeplan.extensions.search.front import Point as Point
    from pipeplan.extensions.search.front import pareto as pareto
    from pipeplan.extensions.search.front import undominated_marks as undominated_marks
    from pipeplan.extensions.search.moves import MOVES as MOVES
    from pipeplan.extensions.search.moves import Move as Move
    from pipeplan.extensions.search.placements import BestPlacement as BestPlacement
    from pipeplan.extensions.search.placements import PlacementTried as PlacementTried
    from pipeplan.extensions.search.placements import PublishedEntry as PublishedEntry
    from pipeplan.extensions.search.placements import Turn as Turn
    from pipeplan.extensions.search.placements import best_placement as best_placement
    from pipeplan.extensions.search.placements import is_of as is_of
    from pipeplan.extensions.search.placements import searched_here as searched_here
    from pipeplan.extensions.search.placements import together as together
    from pipeplan.extensions.search.portfolio import ENGINES as ENGINES
    from pipeplan.extensions.search.portfolio import engines_going_on as engines_going_on
    from pipeplan.extensions.search.portfolio import require_shape as require_shape
    from pipeplan.extensions.search.portfolio import search as search
    from pipeplan.extensions.search.problem import Problem as Problem
    from pipeplan.extensions.search.reordering import Reorderer as Reorderer
    from pipeplan.extensions.search.reordering import Reordering as Reordering
    from pipeplan.extensions.search.result import ALL_RECOMPUTED as ALL_RECOMPUTED
    from pipeplan.extensions.search.result import Improvement as Improvement
    from pipeplan.extensions.search.result import Published as Published
    from pipeplan.extensions.search.result import SearchProgress as SearchProgress
    from pipeplan.extensions.search.result import SearchResult as SearchResult
    from pipeplan.extensions.search.result import is_as_published as is_as_published
    from pipeplan.extensions.search.result import latest_compiled as latest_compiled
    from pipeplan.extensions.search.run import Engine as Engine
    from pipeplan.extensions.search.run import Run as Run
    from pipeplan.extensions.search.run import value_as_is as value_as_is

    __all__: list[str]
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
