"""Planner: estimates of given configurations, and the search over all valid configurations."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "calibration": (
        "Calibration CalibrationRecord Correction read_calibration require_calibration_file write_calibration"
    ),
    "choice.describing": "configuration_document",
    "choice.finalists": "best_layout_of",
    "choice.legality": "UNUSUAL",
    "choice.plans": "plan",
    "choice.request": "CHOICES DEFAULT_TOKENS PlanListener PlanProgress read_fixed short_name written",
    "configuration": "Configuration",
    "error_bars": "error_bar",
    "estimates.calibrating": "calibrated updated_by_run",
    "estimates.estimating": "estimate",
    "estimates.memory_rules": "memory_rules software_with",
    "estimates.running": "costs_of placed schedule_of",
    "estimates.software": "EARLY software usual_software",
    "estimates.stages": "even_layout layout_of stage_costs",
    "fitting": "default_limit fit_of widest_limit",
    "plan_records": "Objective PlanResult",
    "results": "CostsFrom ErrorBar Estimate Fit GpuMemory StepTime",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
