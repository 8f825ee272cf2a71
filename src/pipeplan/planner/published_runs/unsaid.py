"""Settings that a published run does not say: chosen as an engineer would have, the lightest that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from pipeplan.errors import PipeplanError
from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.memory import rank_memory
from pipeplan.planner.estimates.per_layer import layer_costs
from pipeplan.planner.estimates.running import schedule_of
from pipeplan.planner.estimates.software import software
from pipeplan.planner.estimates.stages import stage_costs
from pipeplan.strategies import strategy
from pipeplan.workload import ModelShape

_USABLE = 1.0
"""Of a GPU's memory, by what is predicted: more is over it by more than what context and fragments leave."""

_FAST_HOST = 100e9
"""Bytes/s each way between GPU and host from which activations are moved there rather than computed again."""

_FEW_MICROBATCHES = 4
"""Times the ranks: more change no peak."""


def balanced_layout(model: ModelShape, cluster: Cluster, configuration: Configuration) -> tuple[int, ...]:
    """Layers on each stage so that the slowest stage is fastest: embedding, MTP, head and loss count on their stages.

    The least time that a stage may take is searched for by halving; stages are then filled from the first.
    """
    costs = layer_costs(model, cluster, configuration)
    times = [each.forward + each.backward_input + each.backward_weight for each in costs]
    kinds = [each.layer.kind for each in costs]
    body = [time for time, kind in zip(times, kinds, strict=True) if kind in ("dense", "moe")]
    before = sum(time for time, kind in zip(times, kinds, strict=True) if kind == "embedding")
    behind = sum(times) - sum(body) - before
    low, high = max(sum(times) / configuration.stages, behind, *body), sum(times)
    best = _filled(body, before, behind, high, configuration.stages)
    for _ in range(40):
        middle = (low + high) / 2
        found = _filled(body, before, behind, middle, configuration.stages)
        if found is None:
            low = middle
        else:
            best, high = found, middle
    assert best is not None
    return best


def _filled(body: list[float], before: float, behind: float, limit: float, stages: int) -> tuple[int, ...] | None:
    """Layers on each stage, none of which takes longer than the limit, the first ones full; None where that is too few."""
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
    """The configuration with the least recomputation and offload under which it fits; the heaviest where none fits."""
    chosen = configuration
    for chosen in _heavier(model, cluster, configuration):
        if _fits(model, cluster, chosen):
            break
    return chosen


def _heavier(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Iterator[Configuration]:
    """From nothing computed again, by what is cheapest for what it saves; whole layers only where cores are not fused.

    With fused cores selective recomputation serves where anything does, and published recipes have no other.
    """
    yield configuration
    for modules in _modules(model, configuration):
        yield replace(configuration, recompute=modules)
    if cluster.gpu.host_bandwidth >= _FAST_HOST:
        yield from (replace(configuration, offload=share) for share in (0.25, 0.5))
    if software(configuration.software).attention == "unfused":
        yield replace(configuration, recompute=("full",))


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
    peaks = rank_memory([[each.layer for each in stage] for stage in stages.layers], schedule, configuration)
    return max(peak.total for peak in peaks) <= _USABLE * cluster.gpu.memory_bytes
