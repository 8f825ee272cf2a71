"""The public API: the parts of pipeplan behind a handful of questions."""

from pipeplan.workbench.api import EXPORTS, check, compare, export, simulate
from pipeplan.workbench.catalogue import schedules
from pipeplan.workbench.diff import Diff, diff
from pipeplan.workbench.explain import Explanation, explain
from pipeplan.workbench.outputs import save
from pipeplan.workbench.results import Comparison, Result

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
