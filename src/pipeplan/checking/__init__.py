"""Is a schedule right? An oracle that shares nothing with the simulation but the model."""

from pipeplan.checking.checker import Sends, check
from pipeplan.checking.memory import check_memory
from pipeplan.checking.problem import Problem, Report, marked_grid

__all__ = ["Problem", "Report", "Sends", "check", "check_memory", "marked_grid"]
