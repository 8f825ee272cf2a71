"""Cost-driven schedules: the published heuristics."""

from pipeplan.search.heuristics import HEURISTICS, Heuristic, heuristic

__all__ = ["HEURISTICS", "Heuristic", "heuristic"]
