"""The workbench for pipeline-parallel training schedules: generate, predict, search, see, run, compare.

>>> import pipeplan
>>> pipeplan.simulate("1f1b", ranks=4, microbatches=8).timeline.bubble.over_ideal
0.375

Names are loaded when they are first used, so that importing pipeplan costs next to nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeplan.api import (
        Comparison,
        Diff,
        Explanation,
        Result,
        check,
        compare,
        diff,
        explain,
        export,
        save,
        schedules,
        simulate,
    )
    from pipeplan.costs import Costs, Settings
    from pipeplan.errors import PipeplanError
    from pipeplan.formats import read_schedule
    from pipeplan.model import Kind, Op, Placement, Schedule, Timeline

__version__ = "0.1.0"

_HOME = {
    "Comparison": "pipeplan.api",
    "Costs": "pipeplan.costs",
    "Diff": "pipeplan.api",
    "Explanation": "pipeplan.api",
    "Kind": "pipeplan.model",
    "Op": "pipeplan.model",
    "PipeplanError": "pipeplan.errors",
    "Placement": "pipeplan.model",
    "Result": "pipeplan.api",
    "Schedule": "pipeplan.model",
    "Settings": "pipeplan.costs",
    "Timeline": "pipeplan.model",
    "check": "pipeplan.api",
    "compare": "pipeplan.api",
    "diff": "pipeplan.api",
    "explain": "pipeplan.api",
    "export": "pipeplan.api",
    "read_schedule": "pipeplan.formats",
    "save": "pipeplan.api",
    "schedules": "pipeplan.api",
    "simulate": "pipeplan.api",
}

__all__ = [
    "Comparison",
    "Costs",
    "Diff",
    "Explanation",
    "Kind",
    "Op",
    "PipeplanError",
    "Placement",
    "Result",
    "Schedule",
    "Settings",
    "Timeline",
    "check",
    "compare",
    "diff",
    "explain",
    "export",
    "read_schedule",
    "save",
    "schedules",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pipeplan' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Front(ModuleType):
    """Keeps ``pipeplan.simulate`` and ``pipeplan.check`` the functions, though subpackages have these names.

    Importing a subpackage sets it as an attribute of its package. The functions are what a user means by the name; the
    subpackages are still imported with ``from pipeplan.simulation import ...``.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front
