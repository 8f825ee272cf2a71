"""Workbench for pipeline-parallel training schedules: generate, simulate, search, draw, run and compare them.

>>> import pipeplan
>>> pipeplan.simulate("1f1b", ranks=4, microbatches=8).timeline.bubble.over_ideal
0.375

Each command of the shell is the function of the same name, with the same options. Its answer can be saved (``save(path)``),
printed (``print()``), shown in a notebook, and converted to a dictionary or a data frame (``to_dict()``, ``to_frame()``).
Names are loaded on first use, so that importing pipeplan is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeplan.api import (
        CalibrationProfile,
        Comparison,
        CostProfile,
        Diff,
        Estimates,
        Explanation,
        Export,
        Gpus,
        Models,
        ParetoFront,
        Plan,
        Result,
        ScheduleLike,
        SearchRecord,
        TrainingRun,
        Verdict,
        check,
        compare,
        convert,
        diff,
        explain,
        export,
        gpus,
        models,
        profile,
        read,
        run,
        save,
        schedules,
        simulate,
    )
    from pipeplan.api.planning.estimation import estimate
    from pipeplan.api.planning.planned import plan
    from pipeplan.api.replanning import Replan, Replanner
    from pipeplan.api.searching.searches import pareto, search
    from pipeplan.api.searching.steady_states import SteadyStates, steady_state
    from pipeplan.costs import Costs, Settings
    from pipeplan.errors import PipeplanError
    from pipeplan.formats import Training, read_schedule
    from pipeplan.model import Kind, Op, Placement, Schedule, Timeline

__version__ = "0.1.0"

__all__ = [
    "CalibrationProfile",
    "Comparison",
    "CostProfile",
    "Costs",
    "Diff",
    "Estimates",
    "Explanation",
    "Export",
    "Gpus",
    "Kind",
    "Models",
    "Op",
    "ParetoFront",
    "PipeplanError",
    "Placement",
    "Plan",
    "Replan",
    "Replanner",
    "Result",
    "Schedule",
    "ScheduleLike",
    "SearchRecord",
    "Settings",
    "SteadyStates",
    "Timeline",
    "Training",
    "TrainingRun",
    "Verdict",
    "check",
    "compare",
    "convert",
    "diff",
    "estimate",
    "explain",
    "export",
    "gpus",
    "models",
    "pareto",
    "plan",
    "profile",
    "read",
    "read_schedule",
    "run",
    "save",
    "schedules",
    "search",
    "simulate",
    "steady_state",
]

_HOMES = {
    "pipeplan.api.planning.estimation": {"estimate"},
    "pipeplan.api.planning.planned": {"plan"},
    "pipeplan.api.replanning": {"Replan", "Replanner"},
    "pipeplan.api.searching.searches": {"pareto", "search"},
    "pipeplan.api.searching.steady_states": {"SteadyStates", "steady_state"},
    "pipeplan.costs": {"Costs", "Settings"},
    "pipeplan.errors": {"PipeplanError"},
    "pipeplan.formats": {"Training", "read_schedule"},
    "pipeplan.model": {"Kind", "Op", "Placement", "Schedule", "Timeline"},
}
"""Modules of the public names that are not in :mod:`pipeplan.api`; plans and searches load the planner and the solver."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pipeplan' has no attribute '{name}'")
    home = next((home for home, names in _HOMES.items() if name in names), "pipeplan.api")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
