"""One configuration of a plan's answer, looked at more closely: its words, its file, its schedule and its flags."""

from __future__ import annotations

from typing import Any

from pipeplan.api.planning.configuration_files import configuration_document
from pipeplan.api.planning.configurations import in_words, layout_in_words, recompute_in_words
from pipeplan.api.planning.estimates import estimate_record
from pipeplan.api.planning.plans import Plan, flags_record
from pipeplan.api.results import Result, result_of
from pipeplan.hardware import Cluster
from pipeplan.planner import Configuration, Estimate, costs_of, estimate, flags_of, schedule_of, stage_costs
from pipeplan.simulation import simulate
from pipeplan.workload import ModelShape


def about(found: Plan, chosen: Estimate) -> dict[str, Any]:
    """A configuration of a plan as people and files say it."""
    configuration = chosen.configuration
    return {
        "words": in_words(configuration),
        "layout": layout_in_words(configuration),
        "recompute": recompute_in_words(configuration),
        "document": configuration_document(found.model, found.cluster_of(chosen), configuration),
    }


def simulated(shape: ModelShape, machines: Cluster, configuration: Configuration, calibration: Any = None) -> Result:
    """The schedule of a configuration on its times, and what it holds of activations.

    Raises
    ------
    PipeplanError
        For a configuration that cannot be, and for more ops than can be simulated at once.
    """
    costs = costs_of(stage_costs(shape, machines, configuration, calibration=calibration), configuration)
    return result_of(simulate(schedule_of(configuration, costs), costs))


def look(shape: ModelShape, machines: Cluster, configuration: Configuration) -> tuple[dict[str, Any], Result]:
    """A configuration's estimate and flags as plain values, and its schedule on its times.

    Raises
    ------
    PipeplanError
        For a configuration that cannot be.
    """
    chosen = estimate(shape, machines, configuration)
    result = simulated(shape, machines, chosen.configuration)
    flags = flags_of(shape, machines, chosen.configuration, result.schedule)
    return estimate_record(chosen) | {"flags": flags_record(flags)}, result
