"""Rows of a file that describe runs: a model, a cluster, a configuration and measurements each.

A row has its source, model, hardware, degrees, batch and measurements. A rule fills in what it leaves out, and the answer
names that assumption. A row that is not a whole step (times of layers or stages, a model without a shape) is refused with
one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

from benchmarks.published_runs.assumptions import balanced_layout, lightest, replicas_by_state, with_degrees
from benchmarks.published_runs.bridge import with_pairs
from benchmarks.published_runs.schedules import NamedSchedule, chunks_of, layout_from, scheduled
from benchmarks.published_runs.settings import (
    cluster_of,
    precision_of,
    recompute_of,
    software_of,
)
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.memory_rules import memory_rules
from pipeplan.extensions.planning.estimates.software import EARLY
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape, from_dict, token_flops
from pipeplan.foundation.errors import InputError, PipeplanError
from pipeplan.foundation.files import GIBIBYTE

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "model": ("seq",),
    "hardware": ("gpu",),
    "parallel": ("tp", "pp"),
    "batch": (),
    "measured": (),
}
"""Parts of a row, and the keys that they must have."""

_WHOLE: Mapping[str, tuple[str, ...]] = {
    "model": ("seq",),
    "hardware": ("count", "gpus_per_node", "nvlink_domain"),
    "parallel": ("tp", "pp", "dp", "dp_replicate", "dp_shard", "cp", "vp", "ep", "etp"),
    "batch": ("micro", "local", "global", "microbatches", "document"),
}
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "hardware": ("hbm_tb_s",),
    "measured": (
        *("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu"),
        *("peak_memory_gib", "peak_memory_gb", "peak_reserved_gib", "allocated_gib"),
    ),
}
_TEXTS = ("schedule", "recompute", "precision", "layout", "framework", "software", "release", "notes")


def require_form(row: Mapping[str, Any]) -> None:
    """Raise InputError if a row lacks a required part or has a value of the wrong type; the error names the part."""
    if row.get("kind"):
        raise InputError(f"the row holds {row['kind']}: expected a whole step")
    for part, needed in _NEEDED.items():
        if not isinstance(row.get(part, {}), dict):
            raise InputError(f"invalid '{part}' of the row: expected a mapping of keys", field=part)
        missing = [key for key in needed if row.get(part, {}).get(key) is None]
        if missing:
            raise InputError(f"the row has no {part}.{missing[0]}", field=f"{part}.{missing[0]}")
    for place, value in _values(row, _WHOLE):
        if not isinstance(value, int) or value < 1:
            raise InputError(f"invalid {place} {value!r}: expected an integer >= 1", field=place)
    for place, value in _values(row, _NUMBERS):
        if not isinstance(value, int | float) or not value > 0:
            raise InputError(f"invalid {place} {value!r}: expected a number above 0", field=place)
    for key in _TEXTS:
        if not isinstance(row.get(key), str | None):
            raise InputError(f"invalid '{key}' of the row: expected text", field=key)


def _values(row: Mapping[str, Any], parts: Mapping[str, tuple[str, ...]]) -> list[tuple[str, Any]]:
    """Return the values of a row by their places; booleans become text, so that no number check accepts them."""
    values = [(f"{part}.{key}", row.get(part, {}).get(key)) for part, keys in parts.items() for key in keys]
    return [(place, str(value) if isinstance(value, bool) else value) for place, value in values if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasurement:
    """Measured step time and memory of a run; None if not measured.

    Attributes
    ----------
    step_time
        Seconds per step.
    peak_bytes
        Bytes allocated on the fullest rank, or on ``peak_rank``.
    peak_rank
        Pipeline rank of ``peak_bytes``; None: the fullest.
    peak_by_rank
        Bytes allocated on each pipeline rank; empty if not reported.
    """

    step_time: float | None = None
    peak_bytes: float | None = None
    peak_by_rank: tuple[float, ...] = ()
    peak_rank: int | None = None


_CAUSAL_COUNT = r"megatron bridge|parallel folding"
"""Sources whose FLOPs count only the causal half of attention; others count all of it (arXiv 2205.05198, appendix A). For
parallel folding this is inferred: with the full count, its runs of 131,072 tokens would be half as efficient as those of
16,384."""


def measured_of(
    row: Mapping[str, Any], model: ModelShape, cluster: Cluster, configuration: Configuration
) -> RunMeasurement:
    """Return the measurements of a row.

    The step time is as printed, or derived from tokens/s, or from TFLOP/s or MFU and the source's own count of FLOPs. It is
    None without the number of GPUs.
    """
    printed = row.get("measured", {})
    peak = printed.get("peak_memory_gib", printed.get("peak_memory_gb"))
    by_rank = printed.get("peak_by_rank_gib") or {}
    return RunMeasurement(
        step_time=_step_time(row, printed, model, cluster, configuration),
        peak_bytes=None if peak is None else float(peak) * GIBIBYTE,
        peak_by_rank=_by_rank(by_rank, configuration.pipeline),
        peak_rank=printed.get("peak_rank", configuration.pipeline - 1 if _logs_last_rank(row) else None),
    )


def _logs_last_rank(row: Mapping[str, Any]) -> bool:
    """Return True if a row's peak is from a log of Megatron-LM, which the last rank writes, as its tests compare it."""
    source = row.get("source", "")
    title = source if isinstance(source, str) else str(source.get("title", ""))
    return re.search(r"golden values", title, re.IGNORECASE) is not None


def _step_time(
    row: Mapping[str, Any],
    printed: Mapping[str, Any],
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
) -> float | None:
    if not row["hardware"].get("count"):
        return None
    if "step_time_s" in printed:
        return float(printed["step_time_s"])
    tokens = configuration.global_batch * configuration.sequence
    if "tokens_per_s_per_gpu" in printed:
        return tokens / (float(printed["tokens_per_s_per_gpu"]) * cluster.gpus)
    rate = float(printed.get("tflops_per_gpu", 0.0)) * 1e12 or float(printed.get("mfu", 0.0)) * cluster.gpu.peak["bf16"]
    if not rate:
        return None
    source = str(row.get("source", {}).get("title", ""))
    causal = re.search(_CAUSAL_COUNT, source, re.IGNORECASE) is not None
    return token_flops(model, configuration.sequence, causal=causal).training * tokens / (rate * cluster.gpus)


def _by_rank(by_gpu: Mapping[str, Any], pipeline: int) -> tuple[float, ...]:
    """Return the bytes of each pipeline rank's fullest GPU, from those of all GPUs in order; the pipeline is outermost."""
    values = [float(by_gpu[key]) * GIBIBYTE for key in sorted(by_gpu, key=int)]
    if not values or len(values) % pipeline:
        return ()
    # GPUs of one pipeline rank are consecutive.
    size = len(values) // pipeline
    return tuple(max(values[rank * size : (rank + 1) * size]) for rank in range(pipeline))


def expert_tensor_of(row: Mapping[str, Any], model: ModelShape) -> int:
    """Return the expert tensor degree: as printed, or the default of the row's trainer.

    The default is t for Megatron-LM and Megatron Core, and for any trainer without expert parallelism; other recipes use 1.
    """
    parallel, source = row["parallel"], row.get("source", "")
    if parallel.get("etp"):
        return int(parallel["etp"])
    title = source if isinstance(source, str) else str(source.get("title", ""))
    by_default = re.search(r"\bMegatron[- ](?:LM|Core)\b", str(row.get("framework") or title)) is not None
    return int(parallel["tp"]) if model.experts and (by_default or (parallel.get("ep") or 1) == 1) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """Row of a file: a run with its configuration and measurements.

    Attributes
    ----------
    id, source
        Id in the file, and title of the publication.
    model, cluster, configuration
        Model, cluster and configuration of the run; None if the row is refused.
    measured
        Measurements of the run.
    assumed
        Assumptions for what the row leaves out, one sentence each.
    refused
        Reason why the row cannot be predicted; empty if it can.
    """

    id: str
    source: str
    model: ModelShape | None = None
    cluster: Cluster | None = None
    configuration: Configuration | None = None
    measured: RunMeasurement = field(default_factory=RunMeasurement)
    assumed: tuple[str, ...] = ()
    refused: str = ""


def row_from(document: Any, index: int = 0) -> RunRow:
    """Return the run that a row of a file describes; ``refused`` contains what is wrong with it."""
    if not isinstance(document, dict):
        return RunRow(
            id=f"row {index}",
            source="",
            refused="invalid row: expected a mapping of keys such as model, hardware and parallel",
        )
    document = {key: _without_empty(value) for key, value in document.items()}
    source = document.get("source") or ""
    row = RunRow(
        id=str(document.get("id", f"row {index}")),
        source=str(source.get("title", "")) if isinstance(source, dict) else str(source),
    )
    try:
        document, assumed = with_degrees(document)
        require_form(document)
        row = _whole(document, row)
        return replace(row, assumed=(*assumed, *row.assumed))
    except PipeplanError as error:
        return replace(row, refused=str(error))


def _without_empty(value: Any) -> Any:
    return {key: entry for key, entry in value.items() if entry is not None} if isinstance(value, dict) else value


def _whole(document: Mapping[str, Any], row: RunRow) -> RunRow:
    model = from_dict(document["model"])
    parallel, hardware = document["parallel"], document["hardware"]
    tensor, pipeline, context = parallel["tp"], parallel["pp"], parallel.get("cp") or 1
    data, data_assumptions = _data(document, model, tensor * pipeline * context)
    cluster, cluster_assumptions = cluster_of(hardware, tensor * pipeline * context * data)
    unsaid = "vp" in (document.get("assumed") or ())
    chunks, chunks_assumption = chunks_of(document.get("schedule"), pipeline, model.layers, parallel.get("vp"), unsaid)
    schedule = scheduled(document.get("schedule"), pipeline, chunks)
    trainer, software_assumption = _trainer(document, schedule)
    precision, precision_assumption = precision_of(document.get("precision"))
    split, split_assumption = _split(document.get("batch", {}), data, pipeline, trainer)
    micro, whole, batch_assumptions = _batch(split, data, pipeline)
    expert, expert_assumption = _expert(parallel, model, trainer, tensor * context * data)
    configuration = Configuration(
        sequence=document["model"]["seq"],
        global_batch=whole,
        microbatch_size=micro,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        data=data,
        expert=expert,
        expert_tensor=expert_tensor_of(document, model),
        chunks=chunks,
        schedule=with_pairs(schedule.strategy, trainer, model),
        in_flight=None if schedule.in_flight is None else schedule.in_flight * pipeline,
        layers=layout_from(document.get("layout"), pipeline, chunks, model.layers),
        sequence_parallel=bool(parallel.get("sp", not trainer.startswith(EARLY))) and tensor > 1,
        zero=_zero(document, trainer),
        replicate=parallel.get("dp_replicate", 1),
        lora_rank=document.get("lora_rank") or 0,
        document=document.get("batch", {}).get("document"),
        precision=precision,
        recompute=recompute_of(document.get("recompute")) or (),
        software=trainer,
    )
    configuration, other_assumptions = _with_assumptions(document, model, cluster, configuration)
    assumptions = (
        *data_assumptions,
        *cluster_assumptions,
        chunks_assumption,
        software_assumption,
        precision_assumption,
        split_assumption,
        *batch_assumptions,
        expert_assumption,
        *other_assumptions,
    )
    return replace(
        row,
        model=model,
        cluster=cluster,
        configuration=configuration,
        measured=measured_of(document, model, cluster, configuration),
        assumed=tuple(assumption for assumption in assumptions if assumption),
    )


def _trainer(row: Mapping[str, Any], schedule: NamedSchedule) -> tuple[str, str]:
    """Return the software, which the schedule or ZeRO stage may decide, and the assumption about it."""
    trainer, assumed = software_of(row)
    if schedule.barrier is False and trainer == "megatron-lm-2021":
        return "zero-bubble", assumed
    if trainer.startswith("megatron-lm-2021") and row["parallel"].get("zero") == 3:
        return "deepspeed-zero3", assumed
    return trainer, assumed


def _with_assumptions(
    row: Mapping[str, Any], model: ModelShape, cluster: Cluster, configuration: Configuration
) -> tuple[Configuration, list[str]]:
    """Fill in layout and recomputation if the row has none; return the configuration and the assumptions."""
    assumptions = []
    uneven = model.mtp_layers or model.layers % configuration.stages
    if configuration.layers is None and configuration.stages > 1 and uneven:
        configuration = replace(configuration, layers=balanced_layout(model, cluster, configuration))
        assumptions.append("layout: balanced by layer times")
    if recompute_of(row.get("recompute")) is None:
        printed = configuration.zero
        configuration = lightest(model, cluster, configuration)
        modules, moved = "+".join(configuration.recompute) or "none", configuration.offload
        assumptions.append(
            f"recomputation: {modules}, the least that fits" + (f", with {moved:.0%} offloaded" if moved else "")
        )
        if configuration.zero != printed:
            assumptions.append(f"parameters: fully sharded, because nothing fits with ZeRO-{printed}")
    return configuration, assumptions


def _data(row: Mapping[str, Any], model: ModelShape, others: int) -> tuple[int, list[str]]:
    """Return the number of replicas, and the assumption about it.

    It is printed, or follows from the number of GPUs or the measured state, or is the smallest that holds the experts.
    """
    parallel, hardware = row["parallel"], row["hardware"]
    if parallel.get("dp"):
        return int(parallel["dp"]), []
    if parallel.get("dp_shard"):
        return int(parallel["dp_shard"]) * int(parallel.get("dp_replicate", 1)), []
    if hardware.get("count"):
        return max(1, int(hardware["count"]) // others), []
    if allocated := row.get("measured", {}).get("allocated_gib"):
        replicas = replicas_by_state(row, float(allocated), model, expert_tensor_of(row, model))
        return replicas, [f"replicas: {replicas}, whose state is closest to the memory allocated between steps"]
    experts = int(parallel.get("ep", 1)) * int(parallel.get("etp", 1))
    inside = int(parallel["tp"]) * int(parallel.get("cp", 1))
    fewest = max(1, -(-experts // inside))
    return fewest, [f"replicas: {fewest}, the fewest that hold the experts"]


def _expert(parallel: Mapping[str, Any], model: ModelShape, trainer: str, ranks: int) -> tuple[int, str]:
    """Return the expert degree, and the assumption about it; NeMo AutoModel's recipes spread experts over all ranks."""
    printed = parallel.get("ep")
    if printed or model.experts is None or not trainer.startswith("automodel"):
        return printed or 1, ""
    degree = gcd(model.experts.count, ranks)
    return degree, f"expert parallelism: {degree}, as many ranks as share the experts evenly"


def _split(batch: Mapping[str, Any], data: int, pipeline: int, trainer: str) -> tuple[Mapping[str, Any], str]:
    """Return a row's batch as microbatches and a global batch, and the assumption about the split of a replica's batch.

    ``local`` is the batch that a replica computes at once, as PyTorch's trainers set it: ``local / micro`` microbatches of
    the pipeline. Without a pipeline it is one microbatch unless ``micro`` says that gradients are accumulated. A larger
    ``global`` batch accumulates the gradients of several of them.

    torchtitan's tables print the batch of a replica, as ``micro`` if there is no ``local``. By default, torchtitan made one
    microbatch per pipeline rank; since April 2025 the size of a microbatch is 1.
    """
    if "local" in batch:
        return _of_local(batch, data, pipeline, trainer)
    local = batch["global"] // data if "global" in batch else batch.get("micro")
    if not trainer.startswith("torchtitan") or pipeline == 1 or not local or batch.get("microbatches"):
        return batch, ""
    if batch.get("micro", local) != local:
        return batch, ""
    micro = _default_micro(local, pipeline, trainer)
    return {"global": local * data, "micro": micro}, f"microbatch size: {micro}, torchtitan's default"


def _of_local(batch: Mapping[str, Any], data: int, pipeline: int, trainer: str) -> tuple[Mapping[str, Any], str]:
    local, assumed = batch["local"], ""
    whole = batch.get("global", local * data)
    if whole % (local * data):
        raise InputError(
            f"batch.global {whole} is not a multiple of {data} replicas with a batch.local of {local}",
            field="batch.global",
        )
    micro = batch.get("micro")
    if micro is None:
        micro = local if pipeline == 1 else _default_micro(local, pipeline, trainer)
        assumed = "" if pipeline == 1 else f"microbatch size: {micro}, torchtitan's default"
    if local % micro:
        raise InputError(f"batch.local {local} is not a multiple of batch.micro {micro}", field="batch.micro")
    passes = whole // (local * data)
    if pipeline > 1 and passes > 1:
        assumed = f"{assumed}; " if assumed else ""
        assumed += f"gradient accumulation: {passes} passes of the pipeline are estimated as one"
    return {"global": whole, "micro": micro}, assumed


def _default_micro(local: int, pipeline: int, trainer: str) -> int:
    """Return torchtitan's default size of a microbatch: one per pipeline rank until April 2025, 1 since then."""
    return max(1, local // pipeline) if memory_rules(trainer).keeps_outputs else 1


def _batch(batch: Mapping[str, Any], data: int, pipeline: int) -> tuple[int, int, list[str]]:
    assumptions = []
    micro = batch.get("micro")
    if micro is None:
        micro = 1
        assumptions.append("microbatch size: 1")
    count = batch.get("microbatches")
    whole = batch.get("global")
    if whole is None:
        if count is None:
            # Four per rank keep the bubble of 1F1B below a fifth: (p - 1) / (m + p - 1).
            count = 1 if pipeline == 1 else 4 * pipeline
            assumptions.append(
                "microbatches: 1, because there is one pipeline rank"
                if pipeline == 1
                else f"microbatches: {count}, four per rank"
            )
        whole = int(count) * int(micro) * data
    return int(micro), int(whole), assumptions


def _zero(row: Mapping[str, Any], trainer: str) -> Any:
    parallel = row["parallel"]
    sharded = parallel.get("fsdp") or re.search(r"\bFSDP\b", row.get("framework") or "")
    if sharded:
        # PyTorch's SHARD_GRAD_OP corresponds to ZeRO-2, FULL_SHARD to ZeRO-3.
        return 2 if "GRAD" in str(sharded).upper() else 3
    if parallel.get("zero") is not None:
        return int(parallel["zero"])
    return 0 if trainer.startswith(EARLY) else 1
