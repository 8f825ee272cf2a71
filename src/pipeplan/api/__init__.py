"""The public API: one function per command, the types they return, and code shared by the command line and the web app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.api.answers import contents_of, save
    from pipeplan.api.arguments import DEFAULT_SCHEDULE, ScheduleLike, configured
    from pipeplan.api.catalogue import StrategyRecord, fixed_chunks, machines, schedules
    from pipeplan.api.checks import CheckOptions, Verdict, check, checked
    from pipeplan.api.comparing.bounds import LeastBound
    from pipeplan.api.comparing.columns import ColumnOptions
    from pipeplan.api.comparing.compare import compare, compared, comparison_of, with_shape_of
    from pipeplan.api.comparing.comparison import Comparison, comparison_of_results
    from pipeplan.api.config_files import BundledCosts, load_config, shipped, shipped_costs
    from pipeplan.api.conversions import converted
    from pipeplan.api.differing.diff import DiffOptions, diff, differences
    from pipeplan.api.differing.difference import Diff
    from pipeplan.api.editing.edit_texts import EditedShape, Flaw, Place
    from pipeplan.api.editing.edits import Edit, change_in_words, edited, text_of
    from pipeplan.api.editing.stopped_runs import StoppedRun, Waiting
    from pipeplan.api.explaining.explanation import Explanation, explain, explained
    from pipeplan.api.explaining.remedies import Remedy
    from pipeplan.api.exports import Export, ExportOptions, export, exported_to
    from pipeplan.api.outputs import (
        all_formats,
        built_in_formats,
        content_as,
        export_formats,
        holds_schedule,
        is_picture,
        named_beside,
        output_endings,
        picture_name,
        require_outputs,
    )
    from pipeplan.api.planning.calibrations import CalibrationProfile
    from pipeplan.api.planning.estimates import EstimatedRow, Estimates
    from pipeplan.api.planning.one_configuration import ChosenConfiguration
    from pipeplan.api.planning.plans import Plan
    from pipeplan.api.planning.presets import Gpus, Models, gpus, models
    from pipeplan.api.published import Allowed, AllowOptions, FasterWithMore, NeedsLike
    from pipeplan.api.registering import Plugin, register
    from pipeplan.api.reviewing.rules_table import review_rules
    from pipeplan.api.searching.fronts import ParetoFront
    from pipeplan.api.searching.search_words import decisions_of, gain_of
    from pipeplan.api.searching.searched_result import SearchedResult, searched_figures
    from pipeplan.api.simulating.result import Result, view_of_result
    from pipeplan.api.simulating.simulate import simulate, simulated, timed, without_times
    from pipeplan.api.sources import (
        as_taken_by,
        file_of,
        read_schedule,
        read_timeline,
        resolve,
        same_ranks,
        settings_for,
        shape_of,
    )
    from pipeplan.api.sweeping.study import Study, sweep
    from pipeplan.api.training.cost_profiles import CostProfile, costs_of_run, profile, profiled
    from pipeplan.api.training.measuring import TrainingReport
    from pipeplan.api.training.training_runs import TrainingRun, model_files, run, trained
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
