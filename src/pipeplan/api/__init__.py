"""The public API: the parts of pipeplan behind a handful of questions."""

from pipeplan.api.catalogue import schedules
from pipeplan.api.commands import EXPORTS, check, compare, export, simulate
from pipeplan.api.differences import Diff, diff
from pipeplan.api.explanations import Explanation, explain
from pipeplan.api.outputs import save
from pipeplan.api.results import Comparison, Result

__all__ = [
    "EXPORTS",
    "Comparison",
    "Diff",
    "Explanation",
    "Result",
    "check",
    "compare",
    "diff",
    "explain",
    "export",
    "save",
    "schedules",
    "simulate",
]
