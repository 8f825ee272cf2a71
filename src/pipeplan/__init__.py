"""Workbench for pipeline-parallel training schedules: generate, simulate, search, draw, run and compare them.

>>> import pipeplan
>>> pipeplan.simulate("1f1b", ranks=4, microbatches=8).timeline.bubble.over_ideal
0.375

Each command of the shell is the function of the same name, with the same options. Its answer can be saved (``save(path)``),
printed (``print()``), shown in a notebook, and converted to a dictionary or a data frame (``to_dict()``, ``to_frame()``).
Names are loaded on first use, so that importing pipeplan is fast.

Its public submodules are for code that builds on pipeplan: ``costs``, ``errors``, ``formats``, ``hardware``, ``model``,
``passes``, ``planner``, ``runtime``, ``strategies``, ``sweeps``, ``testing``, ``trainers`` and ``workload``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeplan import (
        costs as costs,
    )
    from pipeplan import (
        errors as errors,
    )
    from pipeplan import (
        formats as formats,
    )
    from pipeplan import (
        hardware as hardware,
    )
    from pipeplan import (
        model as model,
    )
    from pipeplan import (
        passes as passes,
    )
    from pipeplan import (
        planner as planner,
    )
    from pipeplan import (
        runtime as runtime,
    )
    from pipeplan import (
        strategies as strategies,
    )
    from pipeplan import (
        sweeps as sweeps,
    )
    from pipeplan import (
        testing as testing,
    )
    from pipeplan import (
        trainers as trainers,
    )
    from pipeplan import (
        workload as workload,
    )
    from pipeplan.api import (
        CalibrationProfile,
        Comparison,
        CostProfile,
        Diff,
        Estimates,
        Explanation,
        Export,
        Gpus,
        LayoutText,
        Models,
        ParetoFront,
        Plan,
        Result,
        ScheduleLike,
        SearchRecord,
        Study,
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
        read_schedule,
        read_timeline,
        register,
        run,
        save,
        schedules,
        simulate,
        sweep,
    )
    from pipeplan.api.planning.estimation import estimate
    from pipeplan.api.planning.planned import plan
    from pipeplan.api.replanning import Replan, Replanner
    from pipeplan.api.reviewing.result import Review
    from pipeplan.api.reviewing.review import review
    from pipeplan.api.reviewing.rules_table import ReviewRules, review_rules
    from pipeplan.api.searching.searches import pareto, search
    from pipeplan.api.searching.steady_states import SteadyStates, steady_state
    from pipeplan.costs import Costs, Settings
    from pipeplan.errors import PipeplanError
    from pipeplan.formats import Training
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
    "LayoutText",
    "Models",
    "Op",
    "ParetoFront",
    "PipeplanError",
    "Placement",
    "Plan",
    "Replan",
    "Replanner",
    "Result",
    "Review",
    "ReviewRules",
    "Schedule",
    "ScheduleLike",
    "SearchRecord",
    "Settings",
    "SteadyStates",
    "Study",
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
    "read_timeline",
    "register",
    "review",
    "review_rules",
    "run",
    "save",
    "schedules",
    "search",
    "simulate",
    "steady_state",
    "sweep",
]

SUBMODULES = (
    "costs",
    "errors",
    "formats",
    "hardware",
    "model",
    "passes",
    "planner",
    "runtime",
    "strategies",
    "sweeps",
    "testing",
    "trainers",
    "workload",
)
"""Public submodules, which are loaded on first use as well; ``docs/reference/submodules.md`` lists their public names."""

_HOMES = {
    "pipeplan.api.planning.estimation": {"estimate"},
    "pipeplan.api.planning.planned": {"plan"},
    "pipeplan.api.reviewing.result": {"Review"},
    "pipeplan.api.reviewing.review": {"review"},
    "pipeplan.api.reviewing.rules_table": {"ReviewRules", "review_rules"},
    "pipeplan.api.replanning": {"Replan", "Replanner"},
    "pipeplan.api.searching.searches": {"pareto", "search"},
    "pipeplan.api.searching.steady_states": {"SteadyStates", "steady_state"},
    "pipeplan.costs": {"Costs", "Settings"},
    "pipeplan.errors": {"PipeplanError"},
    "pipeplan.formats": {"Training"},
    "pipeplan.model": {"Kind", "Op", "Placement", "Schedule", "Timeline"},
}
"""Modules of the public names that are not in :mod:`pipeplan.api`; plans and searches load the planner and the solver."""


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return import_module(f"pipeplan.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'pipeplan' has no attribute '{name}'")
    home = next((home for home, names in _HOMES.items() if name in names), "pipeplan.api")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *SUBMODULES})
