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

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pipeplan import (
        costs as costs,
        errors as errors,
        formats as formats,
        hardware as hardware,
        model as model,
        passes as passes,
        planner as planner,
        runtime as runtime,
        strategies as strategies,
        sweeps as sweeps,
        testing as testing,
        trainers as trainers,
        workload as workload,
    )
    from pipeplan.api.answers import save as save
    from pipeplan.api.arguments import ScheduleLike as ScheduleLike
    from pipeplan.api.catalogue import schedules as schedules
    from pipeplan.api.checks import Verdict as Verdict, check as check
    from pipeplan.api.comparing.compare import compare as compare
    from pipeplan.api.comparing.comparison import Comparison as Comparison
    from pipeplan.api.conversions import convert as convert
    from pipeplan.api.differing.diff import diff as diff
    from pipeplan.api.differing.difference import Diff as Diff
    from pipeplan.api.explaining.explanation import Explanation as Explanation, explain as explain
    from pipeplan.api.exports import Export as Export, export as export
    from pipeplan.api.conversions import LayoutText as LayoutText
    from pipeplan.api.planning.estimates import Estimates as Estimates
    from pipeplan.api.planning.estimation import estimate as estimate
    from pipeplan.api.planning.planned import plan as plan
    from pipeplan.api.planning.plans import Plan as Plan
    from pipeplan.api.planning.presets import Gpus as Gpus, Models as Models, gpus as gpus, models as models
    from pipeplan.api.registering import register as register
    from pipeplan.api.replanning import Replan as Replan, Replanner as Replanner
    from pipeplan.api.reviewing.result import Review as Review
    from pipeplan.api.reviewing.review import review as review
    from pipeplan.api.reviewing.rules_table import ReviewRules as ReviewRules, review_rules as review_rules
    from pipeplan.api.searching.fronts import ParetoFront as ParetoFront
    from pipeplan.api.searching.search_record import SearchRecord as SearchRecord
    from pipeplan.api.searching.searches import pareto as pareto, search as search
    from pipeplan.api.simulating.result import Result as Result
    from pipeplan.api.simulating.simulate import simulate as simulate
    from pipeplan.api.sources import read as read, read_schedule as read_schedule, read_timeline as read_timeline
    from pipeplan.api.sweeping.study import Study as Study, sweep as sweep
    from pipeplan.api.planning.calibrations import CalibrationProfile as CalibrationProfile
    from pipeplan.api.training.cost_profiles import CostProfile as CostProfile, profile as profile
    from pipeplan.api.training.training_runs import TrainingRun as TrainingRun, run as run
    from pipeplan.costs import Costs as Costs, Settings as Settings
    from pipeplan.errors import PipeplanError as PipeplanError
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
    __all__, __getattr__, __dir__ = lazy_names(__name__)
