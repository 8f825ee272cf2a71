"""The costs that a plan predicts for a configuration, as settings for any schedule. Importing this loads the planner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeplan.api.planning.configuration_files import read_configuration
from pipeplan.costs import Config
from pipeplan.files import GIBIBYTE
from pipeplan.hardware import Cluster
from pipeplan.planner import Configuration, costs_of, default_limit, estimate, stage_costs
from pipeplan.workload import ModelShape

_MEBIBYTE = 2**20


def planned_costs(document: Mapping[str, Any]) -> Config:
    """See :func:`costs_planned_for`; of a configuration file's keys, without files.

    Raises
    ------
    InputError
        For a key that is missing, and a value that cannot be.
    """
    return costs_planned_for(*read_configuration(document, None))


def costs_planned_for(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Config:
    """A configuration's costs, the same for all its ranks: schedules with any number of chunks can have them.

    Times are the mean of the ranks, with the embedding and the head spread over all of them; bytes beside activations are
    those of the rank that holds the most. The limit is the GPU's memory less what a framework reserves.

    Raises
    ------
    PipeplanError
        For a configuration that cannot be.
    """
    costs = costs_of(stage_costs(model, cluster, configuration), configuration)
    ranks = configuration.pipeline
    found = estimate(model, cluster, configuration, with_error_bar=False)
    held = max(rank.total - rank.activations for rank in found.memory)

    def mean(values: Any) -> float:
        return float(values.sum()) / ranks

    settings = {
        "ranks": ranks,
        "microbatches": configuration.microbatches,
        "forward_times": _digits(1e3 * mean(costs.forward)),
        "backward_input_times": _digits(1e3 * mean(costs.backward_input)),
        "backward_weight_times": _digits(1e3 * mean(costs.backward_weight)),
        "p2p_time": _digits(1e3 * float(costs.transfer.latency)),
        "time_unit": "ms",
        "activation_bytes": _mebibytes(mean(costs.memory.activation)),
        "weight_activation_bytes": _mebibytes(mean(costs.memory.freed_by_weight)),
        "static_bytes": _mebibytes(held),
        "memory_limit": f"{default_limit(cluster) / GIBIBYTE:.0f}GiB",
    }
    return Config(settings=settings, schedule=configuration.schedule)


def _digits(value: float) -> float:
    """Four digits, which is more than a prediction is worth."""
    return float(f"{value:.4g}")


def _mebibytes(value: float) -> float:
    return float(round(value / _MEBIBYTE) * _MEBIBYTE)
