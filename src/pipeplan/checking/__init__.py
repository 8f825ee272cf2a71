"""Is a schedule right? An oracle that shares nothing with the simulator but the model."""

from pipeplan.checking.checker import check
from pipeplan.checking.problem import Problem, Report, marked_grid

__all__ = ["Problem", "Report", "check", "marked_grid"]
