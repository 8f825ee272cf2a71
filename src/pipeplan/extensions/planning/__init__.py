"""Planner: estimates of given configurations, and the search over all valid configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.extensions.planning.calibration import Calibration as Calibration
    from pipeplan.extensions.planning.calibration import CalibrationRecord as CalibrationRecord
    from pipeplan.extensions.planning.calibration import Correction as Correction
    from pipeplan.extensions.planning.calibration import read_calibration as read_calibration
    from pipeplan.extensions.planning.calibration import require_calibration_file as require_calibration_file
    from pipeplan.extensions.planning.calibration import write_calibration as write_calibration
    from pipeplan.extensions.planning.choice.describing import configuration_document as configuration_document
    from pipeplan.extensions.planning.choice.finalists import best_layout_of as best_layout_of
    from pipeplan.extensions.planning.choice.legality import UNUSUAL as UNUSUAL
    from pipeplan.extensions.planning.choice.plans import DEFAULT_TOKENS as DEFAULT_TOKENS
    from pipeplan.extensions.planning.choice.plans import plan as plan
    from pipeplan.extensions.planning.choice.request import CHOICES as CHOICES
    from pipeplan.extensions.planning.choice.request import PlanListener as PlanListener
    from pipeplan.extensions.planning.choice.request import PlanProgress as PlanProgress
    from pipeplan.extensions.planning.choice.request import read_fixed as read_fixed
    from pipeplan.extensions.planning.choice.request import short_name as short_name
    from pipeplan.extensions.planning.choice.request import written as written
    from pipeplan.extensions.planning.configuration import Configuration as Configuration
    from pipeplan.extensions.planning.error_bars import error_bar as error_bar
    from pipeplan.extensions.planning.estimates.calibrating import calibrated as calibrated
    from pipeplan.extensions.planning.estimates.calibrating import updated_by_run as updated_by_run
    from pipeplan.extensions.planning.estimates.estimating import estimate as estimate
    from pipeplan.extensions.planning.estimates.memory_rules import memory_rules as memory_rules
    from pipeplan.extensions.planning.estimates.memory_rules import software_with as software_with
    from pipeplan.extensions.planning.estimates.running import costs_of as costs_of
    from pipeplan.extensions.planning.estimates.running import placed as placed
    from pipeplan.extensions.planning.estimates.running import schedule_of as schedule_of
    from pipeplan.extensions.planning.estimates.software import EARLY as EARLY
    from pipeplan.extensions.planning.estimates.software import software as software
    from pipeplan.extensions.planning.estimates.stages import even_layout as even_layout
    from pipeplan.extensions.planning.estimates.stages import layout_of as layout_of
    from pipeplan.extensions.planning.estimates.stages import stage_costs as stage_costs
    from pipeplan.extensions.planning.fitting import default_limit as default_limit
    from pipeplan.extensions.planning.fitting import fit_of as fit_of
    from pipeplan.extensions.planning.fitting import widest_limit as widest_limit
    from pipeplan.extensions.planning.plan_records import Objective as Objective
    from pipeplan.extensions.planning.plan_records import PlanResult as PlanResult
    from pipeplan.extensions.planning.results import CostsFrom as CostsFrom
    from pipeplan.extensions.planning.results import ErrorBar as ErrorBar
    from pipeplan.extensions.planning.results import Estimate as Estimate
    from pipeplan.extensions.planning.results import Fit as Fit
    from pipeplan.extensions.planning.results import GpuMemory as GpuMemory
    from pipeplan.extensions.planning.results import StepTime as StepTime

    __all__: list[str]
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
