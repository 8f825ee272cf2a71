"""Published schedules, one family a file."""

from pipeplan.strategies.registry import STRATEGIES, strategy
from pipeplan.strategies.strategy import Formula, Shape, Strategy

__all__ = ["STRATEGIES", "Formula", "Shape", "Strategy", "strategy"]
