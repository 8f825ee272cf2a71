"""Workbench for pipeline-parallel training schedules: generate, simulate, search, draw, run and compare them.

>>> import pipeplan
>>> pipeplan.simulate("1f1b", ranks=4, microbatches=8).timeline.bubble.over_ideal
0.375

Each command of the shell is the function of the same name, with the same options. Its answer can be saved (``save(path)``),
printed (``print()``), shown in a notebook, and converted to a dictionary or a data frame (``to_dict()``, ``to_frame()``).
Names are loaded on first use, so that importing pipeplan is fast.

Its public submodules are for code that builds on pipeplan: ``costs``, ``formats``, ``model``, ``passes``, ``runtime``,
``strategies``, ``testing`` and ``trainers``. What belongs to an extension is imported from it, such as
``pipeplan.extensions.planning.hardware``; errors are in ``pipeplan.foundation.errors``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pipeplan import (
        costs as costs,
        formats as formats,
        model as model,
        passes as passes,
        runtime as runtime,
        strategies as strategies,
        testing as testing,
        trainers as trainers,
    )
    from pipeplan.answers.answers import save as save
    from pipeplan.answers.listing import machines as machines, register as register, schedules as schedules
    from pipeplan.answers.checking import Verdict as Verdict, check as check
    from pipeplan.answers.comparing.compare import compare as compare
    from pipeplan.answers.comparing.comparison import Comparison as Comparison
    from pipeplan.extensions.training.diff.diff import diff as diff
    from pipeplan.extensions.training.diff.difference import Diff as Diff
    from pipeplan.answers.explaining.explanation import Explanation as Explanation, explain as explain
    from pipeplan.answers.exporting import Export as Export, export as export
    from pipeplan.extensions.planning.answers.estimates import Estimates as Estimates
    from pipeplan.extensions.planning.answers.estimation import estimate as estimate
    from pipeplan.extensions.planning.answers.planned import plan as plan
    from pipeplan.extensions.planning.answers.plans import Plan as Plan
    from pipeplan.extensions.planning.answers.presets import gpus as gpus, models as models
    from pipeplan.extensions.search.answers.replanning import Replanner as Replanner
    from pipeplan.extensions.review.answers.result import Review as Review
    from pipeplan.extensions.review.answers.review import review as review
    from pipeplan.extensions.review.answers.rules_table import review_rules as review_rules
    from pipeplan.extensions.search.answers.fronts import ParetoFront as ParetoFront
    from pipeplan.extensions.search.answers.searches import pareto as pareto, search as search
    from pipeplan.answers.simulating.result import Result as Result
    from pipeplan.answers.simulating.simulate import simulate as simulate
    from pipeplan.answers.sources import read_schedule as read_schedule, read_timeline as read_timeline
    from pipeplan.answers.sweeping import Study as Study, sweep as sweep
    from pipeplan.extensions.training.answers.cost_profiles import CostProfile as CostProfile, profile as profile
    from pipeplan.extensions.training.answers.training_runs import TrainingRun as TrainingRun, run as run
    from pipeplan.costs import Costs as Costs, Settings as Settings
    from pipeplan.foundation.errors import PipeplanError as PipeplanError
    from pipeplan.formats import Training as Training
    from pipeplan.model import (
        Kind as Kind,
        Op as Op,
        Placement as Placement,
        Schedule as Schedule,
        Timeline as Timeline,
    )

    __all__: list[str]
else:
    __all__, _load, __dir__ = lazy_names(__name__)

    def __getattr__(name: str) -> object:
        """Return a name from its module. Raises MissingExtensionError if that module's extension is not installed."""
        try:
            return _load(name)
        except ModuleNotFoundError as error:
            parts = (error.name or "").split(".")
            if parts[:2] != ["pipeplan", "extensions"]:
                raise
            raise import_module("pipeplan.foundation.extensions").MissingExtensionError(parts[2]) from None
