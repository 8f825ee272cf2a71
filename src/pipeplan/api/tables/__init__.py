"""What ``print()`` of an answer shows: its tables for a terminal. Needs rich, which is imported when this is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import RenderableType

from pipeplan.api.catalogue import Catalogue
from pipeplan.api.checks import Verdict
from pipeplan.api.comparing.comparisons import Comparison
from pipeplan.api.differing.differences import Diff
from pipeplan.api.explaining.explanations import Explanation
from pipeplan.api.machines import Machines
from pipeplan.api.planning.calibrations import CalibrationProfile
from pipeplan.api.planning.estimates import Estimates
from pipeplan.api.planning.plans import Plan
from pipeplan.api.planning.presets import Gpus, Models
from pipeplan.api.presentable import Presentable
from pipeplan.api.results import Result
from pipeplan.api.searching.fronts import ParetoFront
from pipeplan.api.searching.steady_answers import SteadyStates
from pipeplan.api.tables import parts
from pipeplan.api.tables.calibrations import calibration_parts
from pipeplan.api.tables.catalogue import catalogue_parts
from pipeplan.api.tables.checks import verdict_parts
from pipeplan.api.tables.comparisons import comparison_parts
from pipeplan.api.tables.differences import diff_parts
from pipeplan.api.tables.estimates import estimates_parts
from pipeplan.api.tables.explanations import explanation_parts
from pipeplan.api.tables.machines import machine_parts
from pipeplan.api.tables.plans import plan_parts
from pipeplan.api.tables.presets import gpu_parts, model_parts
from pipeplan.api.tables.results import result_parts
from pipeplan.api.tables.searches import front_parts
from pipeplan.api.tables.steady_states import steady_parts
from pipeplan.api.tables.training_runs import cost_parts, training_parts
from pipeplan.api.training.training_runs import CostProfile, TrainingRun

_TABLES: dict[type[Presentable], Callable[[Any], Iterable[RenderableType]]] = {
    CalibrationProfile: calibration_parts,
    Catalogue: catalogue_parts,
    Comparison: comparison_parts,
    CostProfile: cost_parts,
    Diff: diff_parts,
    Estimates: estimates_parts,
    Explanation: explanation_parts,
    Gpus: gpu_parts,
    Machines: machine_parts,
    Models: model_parts,
    ParetoFront: front_parts,
    Plan: plan_parts,
    Result: result_parts,
    SteadyStates: steady_parts,
    TrainingRun: training_parts,
    Verdict: verdict_parts,
}
"""What each class of answer prints."""


def show(answer: Presentable) -> None:
    """Print the tables of an answer to stdout."""
    parts.show(*_TABLES[type(answer)](answer))


def html(answer: Presentable) -> str:
    """The tables of an answer as HTML."""
    return parts.html(*_TABLES[type(answer)](answer))
