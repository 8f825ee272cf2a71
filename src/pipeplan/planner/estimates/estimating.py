"""A prediction of one configuration: step time by what spends it, and memory on every rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeplan.errors import ShapeError
from pipeplan.hardware import Cluster
from pipeplan.model import Floats, Schedule
from pipeplan.planner.calibration import Calibration
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.error_bars import error_bar
from pipeplan.planner.estimated import CostsFrom, Estimate, StepTime
from pipeplan.planner.estimates.memory import rank_memory
from pipeplan.planner.estimates.per_layer import format_peak
from pipeplan.planner.estimates.running import StepRun, run
from pipeplan.planner.estimates.seconds import KINDS, UNCALIBRATED, TimeFactors
from pipeplan.planner.estimates.software import op_gap_of, software
from pipeplan.planner.estimates.stages import StageCosts, stage_costs
from pipeplan.planner.estimates.step_end import StepEnd, step_end
from pipeplan.workload import ModelShape, token_flops


def estimate(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    *,
    calibration: TimeFactors | None = None,
    schedule: Schedule | None = None,
    with_error_bar: bool = True,
) -> Estimate:
    """Return the estimate of a configuration: step time by what spends it, and memory on every rank.

    Parameters
    ----------
    calibration
        Factors of one's own machine; None: analytic times as they are.
    schedule
        To run instead of the configuration's own, of as many ranks, chunks and microbatches.
    with_error_bar
        Whether to look for the nearest published runs.

    Raises
    ------
    PipeplanError
        For degrees that do not make up the cluster or do not split the model, a batch that does not divide, a shape
        that the schedule cannot take, or a calibration of another GPU.
    """
    check_whole(cluster, configuration)
    if isinstance(calibration, Calibration):
        calibration.require(cluster.gpu)
    stages = stage_costs(model, cluster, configuration, calibration=calibration)
    ran = run(stages, configuration, schedule)
    table = ran.schedule.placement.table
    end = step_end(model, cluster, configuration, stages, table=table, calibration=calibration)
    time = step_time(configuration, stages, ran, end)
    tokens = configuration.global_batch * configuration.sequence
    flops = token_flops(model, configuration.sequence).training * tokens
    filled = replace(configuration, layers=stages.layout)
    return Estimate(
        configuration=filled,
        time=time,
        memory=rank_memory([[each.layer for each in stage] for stage in stages.layers], ran.schedule, filled),
        flops=flops,
        mfu=flops / (configuration.gpus * time.total * format_peak(cluster.gpu, configuration.precision)),
        tokens_per_second=tokens / time.total,
        stage_forward=tuple(stages.forward.tolist()),
        stage_backward_input=tuple(stages.backward_input.tolist()),
        stage_backward_weight=tuple(stages.backward_weight.tolist()),
        transfer=stages.transfer,
        costs_from=_costs_from(calibration, model, filled),
        assumed=_assumed(model, configuration),
        error_bar=error_bar(model, cluster, configuration) if with_error_bar else None,
    )


def check_whole(cluster: Cluster, configuration: Configuration) -> None:
    """Refuse degrees that do not make up the cluster, and batches that do not divide.

    Raises
    ------
    ShapeError
        With what does not divide.
    """
    if configuration.gpus != cluster.gpus:
        raise ShapeError(
            f"tensor {configuration.tensor} x pipeline {configuration.pipeline} x context {configuration.context} x data "
            f"{configuration.data} are {configuration.gpus} GPUs, the cluster has {cluster.gpus}",
            field="data",
        )
    ranks, experts = configuration.gpus // configuration.pipeline, configuration.expert * configuration.expert_tensor
    if ranks % experts:
        raise ShapeError(
            f"expert {configuration.expert} x expert tensor {configuration.expert_tensor} does not divide the {ranks} GPUs "
            "of a pipeline rank, of which experts' degrees are made",
            field="expert",
        )
    replicas = configuration.data * configuration.microbatch_size
    if configuration.global_batch % replicas:
        raise ShapeError(
            f"a global batch of {configuration.global_batch} does not divide into {configuration.data} replicas of "
            f"microbatches of {configuration.microbatch_size}",
            field="global_batch",
        )


_ROUNDING = 1e-9
"""Share of a step below which idle time is the rounding of sums of many durations."""


def step_time(configuration: Configuration, stages: StageCosts, ran: StepRun, end: StepEnd) -> StepTime:
    """The step by what spends it on the rank that is done last; idle time and transfers are the bubble."""
    begins = ran.starts if not software(configuration.software).barrier else np.zeros_like(ran.starts)
    done = ran.ends - begins + end.reduce
    rank = int(done.argmax())
    spent = _spent(configuration, stages, ran, rank)
    kinds = dict(zip(KINDS, spent.sum(axis=0).tolist(), strict=True))
    recompute = float(_on_rank(stages.recompute, ran, rank).sum()) * configuration.microbatches
    overhead = kinds["host"] + _gaps(configuration, stages, ran, rank)
    compute = sum(kinds[kind] for kind in ("gemm", "grouped_gemm", "attention", "memory"))
    exposed = {kind: kinds[kind] for kind in ("tensor", "context", "expert")}
    pipeline = float(done[rank] - end.reduce[rank])
    bubble = pipeline - compute - overhead - sum(exposed.values()) - kinds["data"]
    return StepTime(
        compute=compute - recompute,
        recompute=recompute,
        bubble=bubble if bubble > _ROUNDING * pipeline else 0.0,
        overhead=overhead,
        data=float(end.reduce[rank] + end.gather.max()) + kinds["data"],
        optimizer=float(end.optimizer.max()),
        **exposed,
    )


def _spent(configuration: Configuration, stages: StageCosts, ran: StepRun, rank: int) -> Floats:
    """Return the seconds of all microbatches on a rank by kind of work, F, I and W together; shape (stages of it, kinds)."""
    times: Floats = _on_rank(stages.seconds.sum(axis=1), ran, rank) * configuration.microbatches
    return times


def _on_rank(values: Floats, ran: StepRun, rank: int) -> Floats:
    table = ran.schedule.placement.table
    found: Floats = values[(table == rank).any(axis=0)] / len(table)
    return found


def _gaps(configuration: Configuration, stages: StageCosts, ran: StepRun, rank: int) -> float:
    ops = float(np.diff(ran.schedule.offsets)[rank]) / ran.schedule.microbatches * configuration.microbatches
    return ops * op_gap_of(configuration)


def _costs_from(
    calibration: TimeFactors | None, model: ModelShape, configuration: Configuration
) -> dict[str, CostsFrom]:
    kinds = ("gemm", "grouped_gemm", "attention", "memory", "head", "loss", "collective", "optimizer")
    if isinstance(calibration, Calibration):
        return {kind: calibration.costs_from(kind, model, configuration) for kind in kinds}
    factors = calibration or UNCALIBRATED
    return {kind: "analytic" if factors.factor(kind) == 1.0 else "calibrated" for kind in kinds}


def _assumed(model: ModelShape, configuration: Configuration) -> tuple[str, ...]:
    said = [f"software: {software(configuration.software).title}", "attention: causal"]
    if model.experts is not None:
        said.append("experts: each gets equally many tokens, none is dropped")
    return tuple(said)
