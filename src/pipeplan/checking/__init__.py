"""Validation of schedules, independent of the simulation: the two share only the model."""

from pipeplan.checking.checker import Sends, check
from pipeplan.checking.findings import Finding, Report, finding, marked_grid
from pipeplan.checking.memory import check_memory
from pipeplan.checking.times import check_times

__all__ = ["Finding", "Report", "Sends", "check", "check_memory", "check_times", "finding", "marked_grid"]
