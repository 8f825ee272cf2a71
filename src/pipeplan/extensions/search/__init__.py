"""The search for better schedules: the problem, moves, engines, proofs, the portfolio that runs them, and the front."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "budget": "Effort",
    "choices": "CHOICES Choice Choices",
    "engines.building_blocks": "BuildingBlocks",
    "engines.list_scheduling": "ListScheduling",
    "engines.order_annealing": "LocalSearch",
    "engines.proving": "EarlyProof Proving",
    "engines.published": (
        "EVERYTHING_UP_TO DrivenByCosts FixedOrders best_published driven_by_costs fixed_orders published"
    ),
    "exact.engines": "Exact FewRanks",
    "front": "Front FrontMark Point pareto undominated_marks",
    "moves": "MOVES Move",
    "placements": "BestPlacement PlacementTried PublishedEntry Turn best_placement is_of searched_here together",
    "portfolio": "ENGINES engines_going_on require_shape search",
    "problem": "Problem",
    "reordering": "Reorderer Reordering",
    "result": "ALL_RECOMPUTED Improvement Published SearchProgress SearchResult is_as_published",
    "run": "Engine Run value_as_is",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
