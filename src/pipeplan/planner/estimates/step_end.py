"""What stands behind the last backward: reducing gradients, the optimizer, gathering weights; and what of it is hidden.

Sources: Megatron-LM (arXiv 2104.04473 section 2.1, 2205.05198 table 5) and its distributed optimizer, ZeRO (arXiv
1910.02054); ring collectives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.hardware import Cluster, collective_time, memory_time, optimizer_time
from pipeplan.model import Floats
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.seconds import UNCALIBRATED, TimeFactors, exposed
from pipeplan.planner.estimates.software import software
from pipeplan.planner.estimates.stages import StageCosts
from pipeplan.workload import ModelShape

Places = NDArray[np.signedinteger]
"""Rank of each stage, for each copy of the model: shape (copies, stages)."""


@dataclass(frozen=True, slots=True, eq=False)
class StepEnd:
    """Times of each pipeline rank behind its last backward; seconds, shape (ranks,) each.

    Attributes
    ----------
    reduce
        Exposed reduction of gradients, tied embeddings with it.
    optimizer
        Updating the rank's share of the parameters.
    gather
        Exposed gathering of updated weights.
    """

    reduce: Floats
    optimizer: Floats
    gather: Floats


@dataclass(frozen=True, slots=True)
class _Held:
    """Parameters of a rank."""

    dense: float
    expert: float


def step_end(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    stages: StageCosts,
    *,
    table: Places,
    calibration: TimeFactors | None = None,
) -> StepEnd:
    """What each rank does at the step's end, given which rank holds each stage (``table``, shape (copies, stages))."""
    trainer, factors = software(configuration.software), calibration or UNCALIBRATED
    ranks = configuration.pipeline
    held = _held(stages, table, ranks)
    collective = factors.factor("collective")
    reduce, gather, optimizer = np.zeros(ranks), np.zeros(ranks), np.zeros(ranks)
    backward = _sum_by_rank(stages.backward_input + stages.backward_weight, table, ranks)
    forward = _sum_by_rank(stages.forward, table, ranks)
    for rank, parameters in enumerate(held):
        reduced, gathered = _communication(cluster, configuration, parameters, trainer.fp32_gradients)
        cover = backward[rank] if "data" in trainer.hides else 0.0
        reduce[rank] = exposed(reduced * collective, cover)
        cover = forward[rank] if "parameters" in trainer.hides else 0.0
        gather[rank] = exposed(gathered * collective, cover)
        update = optimizer_time(cluster.gpu, _updated(configuration, parameters), bytes_each=trainer.update_bytes)
        cleared = memory_time(
            cluster.gpu, (4.0 if trainer.fp32_gradients else 2.0) * (parameters.dense + parameters.expert)
        )
        optimizer[rank] = (update + cleared) * factors.factor("optimizer")
    tied = _tied(model, cluster, configuration, trainer.fp32_gradients) * collective
    reduce[table[0][0]] += tied
    reduce[table[0][-1]] += tied
    return StepEnd(reduce, optimizer, gather)


def _held(stages: StageCosts, table: Places, ranks: int) -> list[_Held]:
    dense = np.array([sum(each.layer.parameters.dense for each in stage) for stage in stages.layers], np.float64)
    expert = np.array([sum(each.layer.parameters.expert for each in stage) for stage in stages.layers], np.float64)
    both = zip(_sum_by_rank(dense, table, ranks), _sum_by_rank(expert, table, ranks), strict=True)
    return [_Held(float(one), float(other)) for one, other in both]


def _sum_by_rank(values: Floats, table: Places, ranks: int) -> Floats:
    sums = np.zeros(ranks)
    for copy in table:
        np.add.at(sums, copy, values)
    return sums


def _updated(configuration: Configuration, held: _Held) -> float:
    if configuration.zero == 0:
        return held.dense + held.expert
    return held.dense / (configuration.data * configuration.context) + held.expert / configuration.expert_data


def _communication(
    cluster: Cluster, configuration: Configuration, held: _Held, fp32_gradients: bool
) -> tuple[float, float]:
    """Return the seconds of reducing a rank's gradients and of gathering its weights, with nothing beside."""
    reduced = gathered = 0.0
    width = 4.0 if fp32_gradients else 2.0
    groups = (
        (held.dense, configuration.data * configuration.context, configuration.tensor),
        (held.expert, configuration.expert_data, configuration.expert * configuration.expert_tensor),
    )
    for parameters, replicas, stride in groups:
        if not parameters or replicas == 1:
            continue
        if configuration.zero == 0:
            reduced += collective_time(cluster, "all_reduce", width * parameters, replicas, stride)
        elif not configuration.gathers_weights:
            reduced += collective_time(cluster, "reduce_scatter", width * parameters, replicas, stride)
            gathered += collective_time(cluster, "all_gather", 2.0 * parameters, replicas, stride)
    return reduced, gathered


def _tied(model: ModelShape, cluster: Cluster, configuration: Configuration, fp32_gradients: bool) -> float:
    """Return the seconds of adding the gradients of a tied embedding on the first and the last stage."""
    if not model.tied_embeddings or configuration.pipeline == 1:
        return 0.0
    bytes_ = (4.0 if fp32_gradients else 2.0) * model.vocabulary * model.hidden / configuration.tensor
    apart = configuration.tensor * configuration.context * configuration.data * (configuration.pipeline - 1)
    return collective_time(cluster, "all_reduce", bytes_, 2, apart)
