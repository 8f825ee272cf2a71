"""A better order than any published one for the finalists: what the search finds within the memory that a GPU has left."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice

import numpy as np

from pipeplan.costs import Limits
from pipeplan.errors import PipeplanError
from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.running import costs_of, placed
from pipeplan.planner.estimates.seconds import Factors
from pipeplan.planner.estimates.stages import stage_costs
from pipeplan.planner.planned import SearchedOrder
from pipeplan.solver import Problem, search
from pipeplan.workload import ModelShape

MOST_OPS = 20_000
"""Of a step whose order is searched for: in longer ones a search of seconds changes too little."""

SEARCHED = 2
"""Finalists, each with stages on other ranks."""


def better_order(
    model: ModelShape,
    cluster: Cluster,
    finalists: Iterable[Estimate],
    *,
    memory_limit: float,
    seconds: float,
    workers: int = 1,
    calibration: Factors | None = None,
) -> SearchedOrder | None:
    """The best order that a search finds for the finalists, where it is better than their own; None where it is not.

    Parameters
    ----------
    finalists
        The best first; those with one rank, and steps of very many ops, are passed over.
    memory_limit
        Bytes of a GPU: what parameters and transients leave of it is for activations.
    seconds
        For all of them.
    """
    suited: dict[object, Estimate] = {}
    for each in finalists:
        configuration = each.configuration
        if configuration.pipeline > 1 and 3 * configuration.stages * configuration.microbatches <= MOST_OPS:
            suited.setdefault(placed(configuration).rank_of, each)
    chosen = list(islice(suited.values(), SEARCHED))
    found = []
    end = time.monotonic() + seconds
    for left, start in zip(range(len(chosen), 0, -1), chosen, strict=True):
        share = (end - time.monotonic()) / left
        order = _searched(model, cluster, start, memory_limit, seconds=share, workers=workers, calibration=calibration)
        if order is not None:
            found.append(order)
    return min(found, key=lambda order: order.estimate.step_time, default=None)


def _searched(
    model: ModelShape,
    cluster: Cluster,
    start: Estimate,
    memory_limit: float,
    *,
    seconds: float,
    workers: int,
    calibration: Factors | None,
) -> SearchedOrder | None:
    configuration: Configuration = start.configuration
    costs = costs_of(stage_costs(model, cluster, configuration, calibration=calibration), configuration)
    besides = np.array([rank.total - rank.activations for rank in start.memory])
    try:
        problem = Problem(
            placed(configuration),
            configuration.microbatches,
            costs,
            Limits(memory_limit - besides, in_activations=False),
        )
        found = search(problem, seconds=max(seconds, 0.0), workers=workers)
        order = estimate(
            model, cluster, configuration, calibration=calibration, schedule=found.schedule, with_error_bar=False
        )
    except PipeplanError:
        # Costs or a placement that the search does not take, or a limit too small for any order that it knows.
        return None
    if order.peak_bytes > memory_limit or order.step_time >= start.step_time:
        return None
    return SearchedOrder(
        estimate=order,
        instead_of=start.step_time,
        schedule=found.schedule,
        found_by=found.found_by,
        optimality_gap=max(0.0, found.optimality_gap),  # rounding of the bound
    )
