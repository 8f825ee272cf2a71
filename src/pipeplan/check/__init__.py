"""Is a schedule right? An oracle that shares nothing with the simulator but the model."""

from pipeplan.check.checker import check
from pipeplan.check.memory import MemoryCap
from pipeplan.check.problem import Problem, Report, marked_grid

__all__ = ["MemoryCap", "Problem", "Report", "check", "marked_grid"]
