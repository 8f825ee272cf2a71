"""Workbench for pipeline-parallel training schedules: generate, simulate, search, draw, run and compare them.

>>> import pipeplan
>>> pipeplan.simulate("1f1b", ranks=4, microbatches=8).timeline.bubble.over_ideal
0.375

Each command of the shell is the function of the same name, with the same options. Its answer can be saved (``save(path)``),
printed (``print()``), shown in a notebook, and converted to a dictionary or a data frame (``to_dict()``, ``to_frame()``).
Names are loaded on first use, so that importing pipeplan is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pipeplan.api import (
        CalibrationProfile as CalibrationProfile,
        Comparison as Comparison,
        CostProfile as CostProfile,
        Diff as Diff,
        Estimates as Estimates,
        Explanation as Explanation,
        Export as Export,
        Gpus as Gpus,
        Models as Models,
        ParetoFront as ParetoFront,
        Plan as Plan,
        Result as Result,
        ScheduleLike as ScheduleLike,
        SearchRecord as SearchRecord,
        TrainingRun as TrainingRun,
        Verdict as Verdict,
        check as check,
        compare as compare,
        convert as convert,
        diff as diff,
        explain as explain,
        export as export,
        gpus as gpus,
        models as models,
        profile as profile,
        read as read,
        run as run,
        save as save,
        schedules as schedules,
        simulate as simulate,
    )
    from pipeplan.api.planning.planned import estimate as estimate, plan as plan
    from pipeplan.api.searching.searches import pareto as pareto, search as search
    from pipeplan.api.searching.steady_states import SteadyStates as SteadyStates, steady_state as steady_state
    from pipeplan.costs import Costs as Costs, Settings as Settings
    from pipeplan.errors import PipeplanError as PipeplanError
    from pipeplan.formats import Training as Training, read_schedule as read_schedule
    from pipeplan.model import (
        Kind as Kind,
        Op as Op,
        Placement as Placement,
        Schedule as Schedule,
        Timeline as Timeline,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "api": {
                "CalibrationProfile",
                "Comparison",
                "CostProfile",
                "Diff",
                "Estimates",
                "Explanation",
                "Export",
                "Gpus",
                "Models",
                "ParetoFront",
                "Plan",
                "Result",
                "ScheduleLike",
                "SearchRecord",
                "TrainingRun",
                "Verdict",
                "check",
                "compare",
                "convert",
                "diff",
                "explain",
                "export",
                "gpus",
                "models",
                "profile",
                "read",
                "run",
                "save",
                "schedules",
                "simulate",
            },
            "api.planning.planned": {"estimate", "plan"},
            "api.searching.searches": {"pareto", "search"},
            "api.searching.steady_states": {"SteadyStates", "steady_state"},
            "costs": {"Costs", "Settings"},
            "errors": {"PipeplanError"},
            "formats": {"Training", "read_schedule"},
            "model": {"Kind", "Op", "Placement", "Schedule", "Timeline"},
        },
    )
