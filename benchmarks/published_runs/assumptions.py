"""Rules for the settings that a run's row leaves out: layout, recomputation, offload, sharding and replicas.

A run that took place fits its GPUs, so the settings that save memory are the lightest with which it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from benchmarks.published_runs.settings import software_of
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.memory import rank_memory
from pipeplan.extensions.planning.estimates.memory_rules import memory_rules
from pipeplan.extensions.planning.estimates.running import schedule_of
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.extensions.planning.estimates.stages import layer_sums, stage_costs
from pipeplan.extensions.planning.fitting import largest_limit
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import Execution, ModelShape, RankParameters, layers_of, state_bytes
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.strategies import strategy

_FAST_HOST = 100e9
"""Bandwidth between GPU and host, bytes/s each way, from which activations are offloaded rather than recomputed."""

_MOST = 4096
"""Maximum number of replicas that are tried without a global batch."""

_FEW_MICROBATCHES = 4
"""Microbatches per rank beyond which no memory peak changes."""


def balanced_layout(model: ModelShape, cluster: Cluster, configuration: Configuration) -> tuple[int, ...]:
    """Return the layers of each stage that minimize the time of the slowest stage, including embedding, MTP, head and loss.

    The smallest possible time of the slowest stage is found by bisection; stages are then filled from the first.
    """
    costs = layer_sums(model, cluster, configuration).layers
    times = [layer.forward + layer.backward_input + layer.backward_weight for layer in costs]
    kinds = [layer.layer.kind for layer in costs]
    body = [time for time, kind in zip(times, kinds, strict=True) if kind in ("dense", "moe")]
    before = sum(time for time, kind in zip(times, kinds, strict=True) if kind == "embedding")
    behind = sum(times) - sum(body) - before
    # Bounds of the slowest stage: at least the mean, the end, or a layer; at most everything. 40 halvings reach rounding.
    low, high = max(sum(times) / configuration.stages, behind, *body), sum(times)
    best = _filled(body, before, behind, high, configuration.stages)
    for _ in range(40):
        middle = (low + high) / 2
        layout = _filled(body, before, behind, middle, configuration.stages)
        if layout is None:
            low = middle
        else:
            best, high = layout, middle
    assert best is not None
    return best


def _filled(body: list[float], before: float, behind: float, limit: float, stages: int) -> tuple[int, ...] | None:
    """Return the layers of each stage within a time limit, the first stages full; None if some layers do not fit."""
    counts = [0] * stages
    sums = [0.0, *accumulate(body)]
    done = 0
    for stage in range(stages):
        room = limit - (before if stage == 0 else 0.0) - (behind if stage == stages - 1 else 0.0)
        while done < len(body) and sums[done + 1] - sums[done - counts[stage]] <= room * (1 + 1e-12):
            done += 1
            counts[stage] += 1
    return tuple(counts) if done == len(body) else None


def lightest(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Configuration:
    """Return the configuration with the least recomputation, offload and sharding that fits; with the most if none fits."""
    chosen = configuration
    for chosen in _heavier(model, cluster, configuration):
        if _fits(model, cluster, chosen):
            break
    return chosen


def _heavier(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Iterator[Configuration]:
    """Yield configurations that save more and more memory, the cheapest savings first.

    Recomputation of whole layers is the last, unless there is no pipeline: then parameters can be fully sharded.
    """
    yield configuration
    # PyTorch's FSDP comes with checkpoints of whole layers; modules are Megatron's.
    has_modules = memory_rules(configuration.software).masters == "beside"
    for modules in _modules(model, configuration) if has_modules else ():
        yield replace(configuration, recompute=modules)
    if cluster.gpu.host_bandwidth >= _FAST_HOST:
        yield from (replace(configuration, offload=share) for share in (0.25, 0.5))
    yield replace(configuration, recompute=("full",))
    if configuration.zero < 3 and configuration.pipeline == 1:
        yield from _heavier(model, cluster, replace(configuration, zero=3))


def _modules(model: ModelShape, configuration: Configuration) -> Iterator[tuple[str, ...]]:
    chosen: tuple[str, ...] = ()
    has = (
        ("core_attn", software(configuration.software).attention == "unfused"),
        ("mla_up_proj", model.latent is not None),
        ("moe_act", model.experts is not None),
        ("layernorm", True),
        ("mlp", model.experts is not None and model.dense_layers > 0),
    )
    for module, there in has:
        if there:
            chosen = (*chosen, module)
            yield chosen


def _fits(model: ModelShape, cluster: Cluster, configuration: Configuration) -> bool:
    stages = stage_costs(model, cluster, configuration)
    few = configuration
    count = max(_FEW_MICROBATCHES * configuration.pipeline, 1)
    if configuration.microbatches > count and not strategy(configuration.schedule).looks_at_costs:
        few = replace(configuration, global_batch=count * configuration.data * configuration.microbatch_size)
    try:
        schedule = schedule_of(few)
    except PipeplanError:
        schedule = schedule_of(configuration)
    layers = [[layer.layer for layer in stage] for stage in stages.layers]
    peaks = rank_memory(layers, schedule, configuration, stages.transfer_bytes)
    return max(peak.total for peak in peaks) * GIBIBYTE <= largest_limit(cluster)


def replicas_by_state(row: Mapping[str, Any], allocated_gib: float, model: ModelShape, expert_tensor: int) -> int:
    """Return the power of two replicas whose state on the last rank comes nearest to the allocated memory.

    The state is weights, gradients and optimizer state. Megatron-LM logs the last rank; between steps only workspaces are
    allocated in addition.
    """
    parallel, batch = row["parallel"], row.get("batch", {})
    tensor, pipeline = int(parallel["tp"]), int(parallel["pp"])
    expert = int(parallel.get("ep") or 1)
    layers = layers_of(model, Execution(tensor=tensor, expert=expert, expert_tensor=expert_tensor))
    every = [layer.parameters for layer in layers if layer.kind in {"dense", "moe"} for _ in range(layer.count)]
    kinds = {"mtp", "head"} if pipeline > 1 else {"embedding", "mtp", "head"}
    ends = [layer.parameters for layer in layers if layer.kind in kinds]
    last = every[-(len(every) // pipeline) :] + ends
    held = RankParameters(
        dense=sum(parameters.dense for parameters in last), expert=sum(parameters.expert for parameters in last)
    )
    context = int(parallel.get("cp") or 1)

    def apart(replicas: int) -> float:
        shards = replicas * context
        state = state_bytes(
            held, zero=1, shards=shards, expert_shards=max(1, tensor * shards // (expert * expert_tensor))
        )
        return abs(state.total - allocated_gib * GIBIBYTE)

    # Expert groups must fit into the ranks of a stage.
    fewest = max(1, -(-expert * expert_tensor // (tensor * context)))
    most = int(batch.get("global") or _MOST * int(batch.get("micro") or 1)) // int(batch.get("micro") or 1)
    tried = [count for count in (1 << power for power in range(_MOST.bit_length())) if fewest <= count <= most]
    return min(tried, key=apart, default=fewest)


def with_degrees(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a row with the degrees that a fully sharded run leaves out, and the assumption about them.

    PyTorch's FSDP and llm-foundry split layers over neither tensor nor pipeline ranks unless they are configured to.
    """
    parallel = document.get("parallel")
    if not isinstance(parallel, dict) or document.get("kind"):
        return document, []
    missing = {degree: 1 for degree in ("tp", "pp") if degree not in parallel}
    sharded = parallel.get("fsdp") or parallel.get("zero") == 3 or software_of(document)[0].startswith("llm-foundry")
    if not missing or not (sharded or re.search(r"\bFSDP\b", str(document.get("framework") or ""))):
        return document, []
    words = " and ".join({"tp": "tensor", "pp": "pipeline"}[degree] for degree in missing)
    return (
        {**document, "parallel": {**parallel, **missing}},
        [f"{words} degree: 1, because parameters are fully sharded"],
    )
