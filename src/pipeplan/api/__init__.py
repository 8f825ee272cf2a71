"""The public API: one function a command, the types that they give, and what the shell and the web share with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.api.arguments import Given, ScheduleLike, as_keywords
    from pipeplan.api.catalogue import fixed_chunks, schedules
    from pipeplan.api.checks import TRAINERS, Verdict, check
    from pipeplan.api.comparing.comparisons import (
        Comparison,
        compare,
        compared,
        comparison_of,
        settings_for,
        with_shape_of,
    )
    from pipeplan.api.config_files import load_config
    from pipeplan.api.conversions import convert
    from pipeplan.api.costs_by_name import Shipped, shipped, shipped_costs
    from pipeplan.api.differing.differences import Diff, diff
    from pipeplan.api.editing.edit_texts import EditedShape, Flaw, Place
    from pipeplan.api.editing.edits import Edit, change_in_words, edited, text_of
    from pipeplan.api.editing.stopped_runs import StoppedRun, Waiting
    from pipeplan.api.editing.trainers import TrainerVerdict, trainers_of
    from pipeplan.api.explaining.explanations import Explanation, explain, explained
    from pipeplan.api.exports import Export, export
    from pipeplan.api.outputs import (
        all_formats,
        content_as,
        contents_of,
        export_formats,
        holds_schedule,
        is_picture,
        named_beside,
        output_endings,
        picture_name,
        require_outputs,
        save,
    )
    from pipeplan.api.pictures import Look
    from pipeplan.api.planning.calibrations import CalibrationProfile
    from pipeplan.api.planning.estimates import EstimatedRow, Estimates
    from pipeplan.api.planning.plans import Plan
    from pipeplan.api.planning.presets import Gpus, Models, gpus, models
    from pipeplan.api.results import Result
    from pipeplan.api.searching.fronts import ParetoFront
    from pipeplan.api.searching.search_record import SearchRecord
    from pipeplan.api.searching.search_words import decisions_of, gain_of, gain_of_front
    from pipeplan.api.simulations import simulate, simulated, timed, without_times
    from pipeplan.api.sources import as_taken_by, file_of, read, resolve, same_ranks, shape_of
    from pipeplan.api.training.training_runs import CostProfile, TrainingRun, model_files, profile, run

__all__ = [
    "TRAINERS",
    "CalibrationProfile",
    "Comparison",
    "CostProfile",
    "Diff",
    "Edit",
    "EditedShape",
    "EstimatedRow",
    "Estimates",
    "Explanation",
    "Export",
    "Flaw",
    "Given",
    "Gpus",
    "Look",
    "Models",
    "ParetoFront",
    "Place",
    "Plan",
    "Result",
    "ScheduleLike",
    "SearchRecord",
    "Shipped",
    "StoppedRun",
    "TrainerVerdict",
    "TrainingRun",
    "Verdict",
    "Waiting",
    "all_formats",
    "as_keywords",
    "as_taken_by",
    "change_in_words",
    "check",
    "compare",
    "compared",
    "comparison_of",
    "content_as",
    "contents_of",
    "convert",
    "decisions_of",
    "diff",
    "edited",
    "explain",
    "explained",
    "export",
    "export_formats",
    "file_of",
    "fixed_chunks",
    "gain_of",
    "gain_of_front",
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
    "trainers_of",
    "with_shape_of",
    "without_times",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "arguments": {"Given", "ScheduleLike", "as_keywords"},
            "catalogue": {"fixed_chunks", "schedules"},
            "checks": {"TRAINERS", "Verdict", "check"},
            "comparing.comparisons": {
                "Comparison",
                "compare",
                "compared",
                "comparison_of",
                "settings_for",
                "with_shape_of",
            },
            "config_files": {"load_config"},
            "conversions": {"convert"},
            "costs_by_name": {"Shipped", "shipped", "shipped_costs"},
            "differing.differences": {"Diff", "diff"},
            "editing.edit_texts": {"EditedShape", "Flaw", "Place"},
            "editing.edits": {"Edit", "change_in_words", "edited", "text_of"},
            "editing.stopped_runs": {"StoppedRun", "Waiting"},
            "editing.trainers": {"TrainerVerdict", "trainers_of"},
            "explaining.explanations": {"Explanation", "explain", "explained"},
            "exports": {"Export", "export"},
            "outputs": {
                "all_formats",
                "content_as",
                "contents_of",
                "export_formats",
                "holds_schedule",
                "is_picture",
                "named_beside",
                "output_endings",
                "picture_name",
                "require_outputs",
                "save",
            },
            "pictures": {"Look"},
            "planning.calibrations": {"CalibrationProfile"},
            "planning.estimates": {"EstimatedRow", "Estimates"},
            "planning.plans": {"Plan"},
            "planning.presets": {"Gpus", "Models", "gpus", "models"},
            "results": {"Result"},
            "searching.fronts": {"ParetoFront"},
            "searching.search_record": {"SearchRecord"},
            "searching.search_words": {"decisions_of", "gain_of", "gain_of_front"},
            "simulations": {"simulate", "simulated", "timed", "without_times"},
            "sources": {"as_taken_by", "file_of", "read", "resolve", "same_ranks", "shape_of"},
            "training.training_runs": {"CostProfile", "TrainingRun", "model_files", "profile", "run"},
        },
    )
