"""The public API: one function per command, the types they return, and code shared by the command line and the web app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.api.answers import contents_of, save
    from pipeplan.api.arguments import ScheduleLike
    from pipeplan.api.catalogue import StrategyRecord, fixed_chunks, schedules
    from pipeplan.api.checks import CheckOptions, Verdict, check, checked
    from pipeplan.api.comparing.columns import ColumnOptions
    from pipeplan.api.comparing.compare import (
        CompareOptions,
        compare,
        compared,
        comparison_of,
        settings_for,
        with_shape_of,
    )
    from pipeplan.api.comparing.comparison import Comparison, LeastBound, comparison_of_results
    from pipeplan.api.config_files import BundledCosts, load_config, shipped, shipped_costs
    from pipeplan.api.conversions import ConvertOptions, convert, converted
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
        content_as,
        export_formats,
        holds_schedule,
        is_picture,
        named_beside,
        output_endings,
        picture_name,
        require_outputs,
    )
    from pipeplan.api.planning.estimates import EstimatedRow, Estimates
    from pipeplan.api.planning.one_configuration import ChosenConfiguration
    from pipeplan.api.planning.plans import Plan
    from pipeplan.api.planning.presets import Gpus, Models, gpus, models
    from pipeplan.api.results import Result
    from pipeplan.api.searching.fronts import FrontMark, ParetoFront
    from pipeplan.api.searching.search_record import SearchRecord
    from pipeplan.api.searching.search_words import decisions_of, gain_of
    from pipeplan.api.simulations import simulate, simulated, timed, without_times
    from pipeplan.api.sources import as_taken_by, file_of, read, resolve, same_ranks, shape_of
    from pipeplan.api.training.calibrations import CalibrationProfile
    from pipeplan.api.training.cost_profiles import CostProfile, calibrated, costs_of_run, profile, profiled
    from pipeplan.api.training.measuring import TrainingReport
    from pipeplan.api.training.training_runs import TrainingRun, model_files, run, trained

__all__ = [
    "BundledCosts",
    "CalibrationProfile",
    "CheckOptions",
    "ChosenConfiguration",
    "ColumnOptions",
    "CompareOptions",
    "Comparison",
    "ConvertOptions",
    "CostProfile",
    "Diff",
    "DiffOptions",
    "Edit",
    "EditedShape",
    "EstimatedRow",
    "Estimates",
    "Explanation",
    "Export",
    "ExportOptions",
    "Flaw",
    "FrontMark",
    "Gpus",
    "LeastBound",
    "Models",
    "ParetoFront",
    "Place",
    "Plan",
    "Remedy",
    "Result",
    "ScheduleLike",
    "SearchRecord",
    "StoppedRun",
    "StrategyRecord",
    "TrainingReport",
    "TrainingRun",
    "Verdict",
    "Waiting",
    "all_formats",
    "as_taken_by",
    "calibrated",
    "change_in_words",
    "check",
    "checked",
    "compare",
    "compared",
    "comparison_of",
    "comparison_of_results",
    "content_as",
    "contents_of",
    "convert",
    "converted",
    "costs_of_run",
    "decisions_of",
    "diff",
    "differences",
    "edited",
    "explain",
    "explained",
    "export",
    "export_formats",
    "exported_to",
    "file_of",
    "fixed_chunks",
    "gain_of",
    "gpus",
    "holds_schedule",
    "is_picture",
    "load_config",
    "model_files",
    "models",
    "named_beside",
    "output_endings",
    "picture_name",
    "profile",
    "profiled",
    "read",
    "require_outputs",
    "resolve",
    "run",
    "same_ranks",
    "save",
    "schedules",
    "settings_for",
    "shape_of",
    "shipped",
    "shipped_costs",
    "simulate",
    "simulated",
    "text_of",
    "timed",
    "trained",
    "with_shape_of",
    "without_times",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "answers": {"contents_of", "save"},
            "arguments": {"ScheduleLike"},
            "catalogue": {"StrategyRecord", "fixed_chunks", "schedules"},
            "checks": {"CheckOptions", "Verdict", "check", "checked"},
            "comparing.columns": {"ColumnOptions"},
            "comparing.compare": {
                "CompareOptions",
                "compare",
                "compared",
                "comparison_of",
                "settings_for",
                "with_shape_of",
            },
            "comparing.comparison": {"Comparison", "LeastBound", "comparison_of_results"},
            "config_files": {"BundledCosts", "load_config", "shipped", "shipped_costs"},
            "conversions": {"ConvertOptions", "convert", "converted"},
            "differing.diff": {"DiffOptions", "diff", "differences"},
            "differing.difference": {"Diff"},
            "editing.edit_texts": {"EditedShape", "Flaw", "Place"},
            "editing.edits": {"Edit", "change_in_words", "edited", "text_of"},
            "editing.stopped_runs": {"StoppedRun", "Waiting"},
            "explaining.explanation": {"Explanation", "explain", "explained"},
            "exports": {"Export", "ExportOptions", "export", "exported_to"},
            "training.measuring": {"TrainingReport"},
            "outputs": {
                "all_formats",
                "content_as",
                "export_formats",
                "holds_schedule",
                "is_picture",
                "named_beside",
                "output_endings",
                "picture_name",
                "require_outputs",
            },
            "planning.estimates": {"EstimatedRow", "Estimates"},
            "planning.one_configuration": {"ChosenConfiguration"},
            "planning.plans": {"Plan"},
            "planning.presets": {"Gpus", "Models", "gpus", "models"},
            "explaining.remedies": {"Remedy"},
            "results": {"Result"},
            "searching.fronts": {"FrontMark", "ParetoFront"},
            "searching.search_record": {"SearchRecord"},
            "searching.search_words": {"decisions_of", "gain_of"},
            "simulations": {"simulate", "simulated", "timed", "without_times"},
            "sources": {"as_taken_by", "file_of", "read", "resolve", "same_ranks", "shape_of"},
            "training.calibrations": {"CalibrationProfile"},
            "training.cost_profiles": {"CostProfile", "calibrated", "costs_of_run", "profile", "profiled"},
            "training.training_runs": {"TrainingRun", "model_files", "run", "trained"},
        },
    )
