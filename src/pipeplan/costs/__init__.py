"""Times and bytes: tables per stage, and the settings they come from."""

from pipeplan.costs.settings import Limits, Settings, Times, parse_limit
from pipeplan.costs.table import Costs, Memory, Transfer, per_stage

__all__ = ["Costs", "Limits", "Memory", "Settings", "Times", "Transfer", "parse_limit", "per_stage"]
