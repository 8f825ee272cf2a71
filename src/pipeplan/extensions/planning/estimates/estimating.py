"""Estimate of one configuration: step time by what it is spent on, and the memory of every rank.

The end of the step follows the last backward: reduce gradients, run the optimizer, gather weights. Sources: Megatron-LM
(arXiv 2104.04473 section 2.1, 2205.05198 table 5) and its distributed optimizer, ZeRO (arXiv 1910.02054); ring collectives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from pipeplan.extensions.planning.calibration import Calibration
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.error_bars import error_bar
from pipeplan.extensions.planning.estimates.memory import rank_memory
from pipeplan.extensions.planning.estimates.running import StepRun, hides_exchanges, run
from pipeplan.extensions.planning.estimates.seconds import KINDS, UNCALIBRATED, TimeFactors, collective_factor, exposed
from pipeplan.extensions.planning.estimates.software import gathers_weights, op_gap_of, software
from pipeplan.extensions.planning.estimates.stages import StageCosts, format_peak, stage_costs
from pipeplan.extensions.planning.hardware import Cluster, collective_time, memory_time, optimizer_time
from pipeplan.extensions.planning.results import CostsFrom, Estimate, StepTime
from pipeplan.extensions.planning.workload import ModelShape, Operation, RankParameters, token_flops
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Floats, Schedule

Places = NDArray[np.signedinteger]
"""Rank of each stage, for each copy of the model: shape (copies, stages)."""


@dataclass(frozen=True, slots=True, eq=False)
class StepEnd:
    """Time that each pipeline rank spends after its last backward, in seconds; shape (ranks,) each.

    It is the exposed reduction of gradients with those of tied embeddings, the optimizer step, and the exposed gathering.
    """

    reduce: Floats
    optimizer: Floats
    gather: Floats


def step_end(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    stages: StageCosts,
    *,
    table: Places,
    calibration: TimeFactors | None = None,
) -> StepEnd:
    """Return the end of the step on each rank; ``table`` holds the rank of each stage, shape (copies, stages)."""
    trainer, factors = software(configuration.software), calibration or UNCALIBRATED
    ranks = configuration.pipeline
    held = _held(stages, table, ranks)
    reduce, gather, optimizer = np.zeros(ranks), np.zeros(ranks), np.zeros(ranks)
    backward = _sum_by_rank(stages.backward_input + stages.backward_weight, table, ranks)
    forward = _sum_by_rank(stages.forward, table, ranks)
    for rank, parameters in enumerate(held):
        layers = sum(len(stages.layers[stage]) for stage in np.nonzero(table == rank)[-1])
        reduced, gathered = _communication(cluster, configuration, parameters, layers, factors)
        reduce[rank] = _beside(reduced, backward[rank], hidden="data" in trainer.hides)
        gather[rank] = _beside(gathered, forward[rank], hidden="parameters" in trainer.hides)
        update = optimizer_time(cluster.gpu, _updated(configuration, parameters), bytes_each=trainer.update_bytes)
        # Gradients are set to zero for the next step.
        cleared = memory_time(
            cluster.gpu, (4.0 if trainer.fp32_gradients else 2.0) * (parameters.dense + parameters.expert)
        )
        optimizer[rank] = (update + cleared) * factors.factor("optimizer")
    # A tied embedding has copies on the first and the last stage, whose gradients are added.
    tied = _tied(model, cluster, configuration, trainer.fp32_gradients, factors)
    reduce[table[0][0]] += tied
    reduce[table[0][-1]] += tied
    return StepEnd(reduce, optimizer, gather)


def _held(stages: StageCosts, table: Places, ranks: int) -> list[RankParameters]:
    dense = np.array([sum(layer.layer.parameters.dense for layer in stage) for stage in stages.layers], np.float64)
    expert = np.array([sum(layer.layer.parameters.expert for layer in stage) for stage in stages.layers], np.float64)
    both = zip(_sum_by_rank(dense, table, ranks), _sum_by_rank(expert, table, ranks), strict=True)
    return [RankParameters(dense=int(one), expert=int(other)) for one, other in both]


def _sum_by_rank(values: Floats, table: Places, ranks: int) -> Floats:
    sums = np.zeros(ranks)
    for copy in table:
        np.add.at(sums, copy, values)
    return sums


def _updated(configuration: Configuration, held: RankParameters) -> float:
    # From ZeRO-1 on, each replica updates its share.
    if configuration.zero == 0:
        return held.dense + held.expert
    return held.dense / configuration.shards + held.expert / configuration.expert_shards


_BUCKET, _BUCKET_OF_RANK = 40e6, 1e6
"""Parameters per bucket: at least the former, and the latter for each data-parallel rank.

Source: ``bucket_size`` of Megatron Core's DistributedDataParallel."""


def _buckets(configuration: Configuration, parameters: float, layers: int) -> int:
    """Return the number of collectives that reduce the gradients of a rank's parameters, and gather the weights.

    Without overlap there is one. PyTorch FSDP has one for each layer, arXiv 2304.11277 section 3.
    """
    trainer = software(configuration.software)
    if not trainer.hides & {"data", "parameters"}:
        return 1
    if trainer.by_layer:
        return layers
    return max(configuration.chunks, ceil(parameters / max(_BUCKET, _BUCKET_OF_RANK * configuration.data)))


def _beside(collectives: list[tuple[float, int]], cover: float, *, hidden: bool) -> float:
    """Return the exposed part of collectives, each in equal buckets: pairs of seconds and buckets.

    The last gradients are reduced after the last backward, and the first weights gathered before the first forward.
    """
    whole = sum(time for time, _ in collectives)
    alone = sum(time / buckets for time, buckets in collectives) if hidden else whole
    return alone + exposed(whole - alone, cover)


def _communication(
    cluster: Cluster, configuration: Configuration, held: RankParameters, layers: int, factors: TimeFactors
) -> tuple[list[tuple[float, int]], list[tuple[float, int]]]:
    """Return the seconds and buckets of reducing a rank's gradients and of gathering its weights, without overlap."""

    def time(operation: Operation, size: float, ranks: int, stride: int) -> float:
        factor = collective_factor(factors, cluster, ranks, stride)
        return factor * collective_time(cluster, operation, size, ranks, stride)

    trainer = software(configuration.software)
    reduced: list[tuple[float, int]] = []
    gathered: list[tuple[float, int]] = []
    # Bytes per gradient on the network: 16-bit gradients unless the trainer accumulates in 32 bits.
    width = 4.0 if trainer.fp32_gradients else 2.0
    # Parameters, the ranks that shard them, copies of these groups, and the ranks' distance in GPUs: tensor is innermost.
    experts = configuration.expert * configuration.expert_tensor
    groups = (
        (held.dense, configuration.shards, configuration.replicate, configuration.tensor),
        (held.expert, configuration.expert_shards, configuration.expert_replicate, experts),
    )
    for parameters, shards, copies, stride in groups:
        if not parameters or gathers_weights(configuration):
            continue  # fully sharded weights are gathered, and their gradients scattered, for every microbatch
        buckets = _buckets(configuration, parameters, layers)
        one = parameters / buckets
        # ZeRO-1 and above: scatter the sums of gradients, then gather the updated weights.
        if configuration.zero == 0 or not trainer.scatters:
            reducing = time("all_reduce", width * one, shards * copies, stride)
        else:
            reducing = time("reduce_scatter", width * one, shards, stride)
            reducing += time("all_reduce", width * one / shards, copies, stride * shards)
        reduced.append((buckets * reducing, buckets))
        if configuration.zero:
            gathered.append((buckets * time("all_gather", 2.0 * one, shards, stride), buckets))
    return reduced, gathered


def _tied(
    model: ModelShape, cluster: Cluster, configuration: Configuration, fp32_gradients: bool, factors: TimeFactors
) -> float:
    """Return the seconds of adding the gradients of a tied embedding on the first and the last stage."""
    if not model.tied_embeddings or configuration.pipeline == 1:
        return 0.0
    bytes_ = (4.0 if fp32_gradients else 2.0) * model.vocabulary * model.hidden / configuration.tensor
    # The first and the last pipeline rank are p - 1 groups of t c d GPUs apart; the copies form pairs.
    apart = configuration.tensor * configuration.context * configuration.data * (configuration.pipeline - 1)
    return collective_time(cluster, "all_reduce", bytes_, 2, apart) * collective_factor(factors, cluster, 2, apart)


def estimate(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    *,
    calibration: TimeFactors | None = None,
    schedule: Schedule | None = None,
    with_error_bar: bool = True,
) -> Estimate:
    """Return the estimate of a configuration: step time by what it is spent on, and memory of every rank.

    A calibration has the correction factors of the user's machine. A schedule runs in place of the configuration's own, with
    the same ranks, chunks and microbatches.

    Raises
    ------
    PipeplanError
        If the degrees do not match the cluster or do not divide the model, the batch does not divide, the schedule cannot
        take the shape, or the calibration is for another GPU.
    """
    check_whole(cluster, configuration)
    if isinstance(calibration, Calibration):
        calibration.require(cluster.gpu)
    stages = stage_costs(model, cluster, configuration, calibration=calibration)
    ran = run(stages, configuration, schedule)
    table = ran.schedule.placement.table
    end = step_end(model, cluster, configuration, stages, table=table, calibration=calibration)
    time = step_time(configuration, stages, ran, end)
    # Recomputed FLOPs do not count: MFU is of the model, not of the hardware (arXiv 2204.02311 appendix B).
    tokens = configuration.global_batch * configuration.sequence
    per_token = token_flops(model, min(configuration.document or configuration.sequence, configuration.sequence))
    flops = tokens * (per_token.adapting if configuration.lora_rank else per_token.training)
    filled = replace(configuration, layers=stages.layout)
    layers = [[layer_costs.layer for layer_costs in stage] for stage in stages.layers]
    memory = rank_memory(layers, ran.schedule, filled, stages.transfer_bytes)
    peaks = tuple(rank.total for rank in memory)
    bar, assumed = None, _assumed(model, configuration)
    if with_error_bar:
        bar = error_bar(model, cluster, configuration, time.total)
    return Estimate(
        step_time=time.total,
        peak_memory_gib=max(peaks),
        peak_memory_by_rank_gib=peaks,
        time=time,
        memory=memory,
        tokens_per_second=tokens / time.total,
        flops=flops,
        mfu=flops / (configuration.gpus * time.total * format_peak(cluster.gpu, configuration.precision)),
        error_bar=bar,
        costs_from=_costs_from(calibration, model, filled),
        assumed=assumed,
        settings=filled.record,
    )


def check_whole(cluster: Cluster, configuration: Configuration) -> None:
    """Raise ShapeError if the degrees do not match the cluster or the batch does not divide."""
    if configuration.gpus != cluster.gpus:
        raise ShapeError(
            f"tensor {configuration.tensor} x pipeline {configuration.pipeline} x context {configuration.context} x data "
            f"{configuration.data} = {configuration.gpus} GPUs; expected the cluster's {cluster.gpus}",
            field="data",
        )
    ranks, experts = configuration.gpus // configuration.pipeline, configuration.expert * configuration.expert_tensor
    if ranks % experts:
        raise ShapeError(
            f"expert {configuration.expert} x expert tensor {configuration.expert_tensor} does not divide the {ranks} GPUs "
            "of a pipeline rank",
            field="expert",
        )
    replicas = configuration.data * configuration.microbatch_size
    if configuration.global_batch % replicas:
        raise ShapeError(
            f"global batch {configuration.global_batch} is not divisible by data {configuration.data} x microbatch size "
            f"{configuration.microbatch_size}",
            field="global_batch",
        )


_ROUNDING = 1e-9
"""Fraction of the step below which idle time is rounding error of long sums."""


def step_time(configuration: Configuration, stages: StageCosts, ran: StepRun, end: StepEnd) -> StepTime:
    """Return the step time by kind, as the mean of all ranks; idle time and transfers are the bubble."""
    # Without a barrier the step of a rank is its own span; with one, all ranks start together at 0.
    begins = ran.starts if not software(configuration.software).barrier else np.zeros_like(ran.starts)
    done = ran.ends - begins + end.reduce
    last = int(done.argmax())
    # Each op runs on one rank, so the mean of the ranks is the work of all stages over the ranks.
    share = configuration.microbatches / ran.schedule.ranks
    kinds = dict(zip(KINDS, (stages.seconds.sum(axis=(0, 1)) * share).tolist(), strict=True))
    # Recomputation runs inside I, so its kernels are taken out of the computation again below.
    recompute = float(stages.recompute.sum()) * share
    # The simulated schedule may have fewer microbatches than the step; ops grow in proportion.
    overhead = kinds["host"] + len(ran.schedule) / ran.schedule.microbatches * share * op_gap_of(configuration)
    compute = sum(kinds[kind] for kind in ("gemm", "grouped_gemm", "attention", "memory"))
    if hides_exchanges(configuration):
        # Of exchanges, pairs leave what they expose and the slower computation beside them.
        longer = compute + overhead + sum(kinds[kind] for kind in ("tensor", "context", "expert", "data"))
        kinds["expert"] = max(0.0, kinds["expert"] - (longer - float(ran.busy.mean())))
    exposed = {kind: kinds[kind] for kind in ("tensor", "context", "expert")}
    pipeline = float(done[last] - end.reduce[last])
    # Everything that is neither work, overhead nor exposed communication is idle time.
    bubble = pipeline - compute - overhead - sum(exposed.values()) - kinds["data"]
    return StepTime(
        compute=compute - recompute,
        recompute=recompute,
        bubble=bubble if bubble > _ROUNDING * pipeline else 0.0,
        overhead=overhead,
        data=float(end.reduce[last] + end.gather.max()) + kinds["data"],
        optimizer=float(end.optimizer.max()),
        **exposed,
    )


def _costs_from(
    calibration: TimeFactors | None, model: ModelShape, configuration: Configuration
) -> dict[str, CostsFrom]:
    kinds = ("gemm", "grouped_gemm", "attention", "memory", "head", "loss", "collective", "optimizer")
    if isinstance(calibration, Calibration):
        return {kind: calibration.costs_from(kind, model, configuration) for kind in kinds}
    factors = calibration or UNCALIBRATED
    return {kind: "analytic" if factors.factor(kind) == 1.0 else "calibrated" for kind in kinds}


def _assumed(model: ModelShape, configuration: Configuration) -> tuple[str, ...]:
    assumptions = [f"software: {software(configuration.software).title}", "attention: causal"]
    if model.approximates:
        like = model.source.removeprefix("config.json of ")
        assumptions.append(f"model: {model.approximates} is not modelled and is treated as {like}")
    if model.details.unread:
        assumptions.append(f"model: as if its config.json had no {model.details.unread}, which are unknown here")
    if configuration.lora_rank:
        names = sorted(software(configuration.software).adapts)
        beside = f"the {' and '.join(names)} product" if names else "every product"
        assumptions.append(f"training: adapters beside {beside} of a layer, everything else is frozen")
    if configuration.document:
        assumptions.append("documents: packed, attention within each of them")
    if model.experts is not None:
        assumptions.append("experts: balanced routing, no dropped tokens")
    return tuple(assumptions)
