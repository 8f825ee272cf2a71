"""What was measured of a published run, in seconds and bytes: where only a rate is printed, by the source's own count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeplan.files import GIBIBYTE
from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.workload import ModelShape, token_flops


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run's step and memory; None where nothing was measured.

    Attributes
    ----------
    step_time
        Seconds.
    peak_bytes
        Allocated on the fullest rank, or on ``peak_rank``.
    peak_rank
        The pipeline rank that ``peak_bytes`` is of; None: the fullest. Megatron-LM's log is of the last.
    reserved_bytes
        Taken from the GPU by the allocator, which keeps more than is allocated.
    peak_by_rank
        Of each pipeline rank, where they are told apart; bytes.
    """

    step_time: float | None = None
    peak_bytes: float | None = None
    reserved_bytes: float | None = None
    peak_by_rank: tuple[float, ...] = ()
    peak_rank: int | None = None


_CAUSAL_COUNT = r"megatron bridge|parallel folding"
"""Sources whose FLOPs count the causal half of attention; others count all of it (arXiv 2205.05198, appendix A). Of parallel
folding it is inferred: counted whole, its runs of 131,072 tokens would be half as efficient as those of 16,384."""


def measured_of(row: Mapping[str, Any], model: ModelShape, cluster: Cluster, configuration: Configuration) -> Measured:
    """What a row measured.

    The step time as it is printed; else by tokens/s; else by TFLOP/s or MFU and the source's own count of FLOPs. Without the
    number of GPUs there is none.
    """
    printed = row.get("measured", {})
    peak = printed.get("peak_memory_gib", printed.get("peak_memory_gb"))
    by_rank = printed.get("peak_by_rank_gib") or {}
    return Measured(
        step_time=_step_time(row, printed, model, cluster, configuration),
        peak_bytes=None if peak is None else float(peak) * GIBIBYTE,
        reserved_bytes=float(printed["peak_reserved_gib"]) * GIBIBYTE if "peak_reserved_gib" in printed else None,
        peak_by_rank=_by_rank(by_rank, configuration.pipeline),
        peak_rank=configuration.pipeline - 1 if "reporting rank" in str(row.get("notes")) else None,
    )


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
    """The fullest GPU of each pipeline rank, given all GPUs in their order: pipeline ranks are outermost."""
    values = [float(by_gpu[key]) * GIBIBYTE for key in sorted(by_gpu, key=int)]
    if not values or len(values) % pipeline:
        return ()
    each = len(values) // pipeline
    return tuple(max(values[rank * each : (rank + 1) * each]) for rank in range(pipeline))
