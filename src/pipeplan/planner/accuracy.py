"""How far off predictions were on the nearest published runs."""

from __future__ import annotations

from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import ErrorBar
from pipeplan.workload import ModelShape


def error_bar(model: ModelShape, cluster: Cluster, configuration: Configuration) -> ErrorBar | None:
    """From the nearest published runs; None where there is none near."""
    return None
