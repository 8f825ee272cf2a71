"""Schedule strategies: published orders and cost-driven heuristics, one family per file."""

from pipeplan.strategies.protocol import Formula, FromCosts, Shape, Strategy
from pipeplan.strategies.registry import STRATEGIES, is_strategy, strategy

__all__ = ["STRATEGIES", "Formula", "FromCosts", "Shape", "Strategy", "is_strategy", "strategy"]
