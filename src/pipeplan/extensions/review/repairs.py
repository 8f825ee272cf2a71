"""Repairs: changes of settings that may remove a fault, the smallest first; each is judged before it is proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.layouts import written_layout
from pipeplan.extensions.review.splits import (
    balanced_edges,
    balanced_layout,
    balanced_parts,
    planned_layouts,
    without_others,
)

Changes = dict[str, Any]
"""New values of settings by name; None removes a setting."""

Repair = Callable[[ReviewFacts], Iterator[Changes]]


def _always(**changes: Any) -> Repair:
    return lambda c: iter([changes])


def _without(*names: str, value: bool | None = None) -> Repair:
    """Return a repair that sets to None or False those of some settings that are on."""
    return lambda c: iter([{name: value for name in names if c.get(name, None)}])


def _divisors_below(value: int) -> list[int]:
    """Return the divisors of a number below it, the largest first."""
    return [divisor for divisor in range(value - 1, 0, -1) if value % divisor == 0]


def _world(c: ReviewFacts, gpus: int) -> Changes:
    """Return the change to a number of GPUs, by nodes if the launcher counts them; empty if its numbers contradict."""
    counted = {name for name in ("gpus", "nodes", "gpus_per_node") if c.has(name)}
    if counted <= {"gpus"}:
        return {"gpus": gpus}
    per_node = int(c.get("gpus_per_node", 0) or c.world // c.get("nodes", 1))
    if not per_node or (c.has("gpus", "nodes") and c.gpus != c.nodes * per_node):
        return {}
    total: Changes = {"gpus": gpus} if c.has("gpus") else {}
    if gpus % per_node == 0:
        return {**total, "nodes": gpus // per_node}
    return {**total, "nodes": 1, "gpus_per_node": gpus} if gpus < per_node else {}


def _gpus(c: ReviewFacts, step: int) -> Iterator[Changes]:
    """Yield the nearest multiples of a number of GPUs, the smaller one first: it needs no new machines."""
    least = c.world // step * step
    for gpus in (least, least + step, 2 * step):
        if gpus >= step and (changes := _world(c, gpus)):
            yield changes


def _expert_gpus(c: ReviewFacts) -> Iterator[Changes]:
    needed = c.get("pp", 1) * c.ep
    step = needed if needed % c.model_parallel == 0 else prod((needed, c.get("tp", 1), c.get("cp", 1)))
    yield from _gpus(c, step)


def _shrink_degrees(c: ReviewFacts) -> Iterator[Changes]:
    """Yield smaller tensor, pipeline and context degrees whose product divides the GPUs, the fewest changes first."""
    now = {name: c.get(name, 1) or 1 for name in ("cp", "tp", "pp")}
    options = [[degree, *_divisors_below(degree)] for degree in now.values()]
    choices = [dict(zip(now, degrees, strict=True)) for degrees in product(*options)]
    choices = [choice for choice in choices if c.world % prod(choice.values()) == 0 and choice != now]
    choices.sort(key=lambda choice: (-prod(choice.values()), sum(choice[name] != now[name] for name in now)))
    for choice in choices[:12]:
        yield {name: degree for name, degree in choice.items() if degree != now[name]}


def _shrink(name: str) -> Repair:
    def repair(c: ReviewFacts) -> Iterator[Changes]:
        yield from ({name: degree} for degree in _divisors_below(getattr(c, name)))

    return repair


def _drop_empty_stages(c: ReviewFacts) -> Iterator[Changes]:
    yield {"layout": written_layout([stage for stage in c.letters if stage])}


def _fit_experts(c: ReviewFacts) -> Iterator[Changes]:
    """Yield the largest expert degrees whose grid divides the GPUs with whole experts."""
    places = c.world // c.get("pp", 1)
    for degree in (c.ep, *_divisors_below(c.ep)):
        if degree > 1 and places % degree == 0:
            yield {"etp": 1, "ep": degree} if degree != c.ep else {"etp": 1}


def _tensor_to_pipeline(c: ReviewFacts) -> Iterator[Changes]:
    """Yield a smaller tensor degree with as many more pipeline ranks; without them at last."""
    for degree in _divisors_below(c.tp):
        yield {"tp": degree, "pp": c.get("pp", 1) * c.tp // degree}
    if c.has("gpus"):
        yield {"tp": 1, "pp": c.get("pp", 1) * c.world // c.model_parallel}


def _shrink_micro_batch(c: ReviewFacts) -> Iterator[Changes]:
    for size in range(c.micro_batch - 1, 0, -1):
        share = size * c.replicas if not c.has("local_batch") else 0
        if share and c.has("global_batch") and c.global_batch % share:
            continue
        if c.has("local_batch") and c.local_batch % size:
            continue
        yield {"micro_batch": size}


def _multiples(name: str, value: int, step: int) -> Iterator[Changes]:
    """Yield the nearest multiples of a step, the nearer first."""
    below, above = value // step * step, -(-value // step) * step
    nearest = sorted({below, above} - {0}, key=lambda multiple: abs(multiple - value))
    yield from ({name: multiple} for multiple in nearest)


def _round_global_batch(c: ReviewFacts) -> Iterator[Changes]:
    size = c.local_batch if c.has("local_batch") else c.micro_batch
    yield from _multiples("global_batch", c.global_batch, size * c.replicas)


def _round_microbatches(c: ReviewFacts) -> Iterator[Changes]:
    yield from _multiples("global_batch", c.global_batch, c.micro_batch * c.replicas * c.pp)


def _grow_global_batch(c: ReviewFacts) -> Iterator[Changes]:
    yield {"global_batch": c.micro_batch * c.replicas * c.pp}


def _eval_share(c: ReviewFacts) -> int:
    return int((c.get("eval_micro_batch", None) or c.micro_batch) * c.replicas)


def _round_eval_batch(c: ReviewFacts) -> Iterator[Changes]:
    yield from _multiples("eval_global_batch", c.eval_global_batch, _eval_share(c))


def _grow_eval_batch(c: ReviewFacts) -> Iterator[Changes]:
    yield {"eval_global_batch": _eval_share(c) * c.pp}


def _grow_local_batch(c: ReviewFacts) -> Iterator[Changes]:
    """Yield larger local batches with 1, 2, 4 microbatches per rank and stage that divide the global batch."""
    if "pytorch" not in c.trainer.scopes:
        return
    step = c.get("micro_batch", 1) * c.pp
    for factor in (1, 2, 4, 8):
        changes: Changes = {"local_batch": step * factor} if c.has("local_batch") else {"microbatches": c.pp * factor}
        if c.has("local_batch") and c.has("global_batch"):
            share = step * factor * (c.replicas if c.world % c.model_parallel == 0 else 1)
            if c.global_batch % share:
                changes["global_batch"] = -(-c.global_batch // share) * share
        yield changes


def _shrink_local_batch(c: ReviewFacts) -> Iterator[Changes]:
    for size in _divisors_below(c.local_batch):
        changes = {"local_batch": size}
        if c.get("micro_batch", 1) > size:
            changes["micro_batch"] = size
        yield changes


def _fit_group_size(c: ReviewFacts) -> Iterator[Changes]:
    sizes = [size for size in range(c.pp, c.count + 1) if not 0 < c.count % size < c.pp]
    yield from ({"group_size": size} for size in sizes[:3])


def _nearest_chunks(c: ReviewFacts) -> Iterator[Changes]:
    even = c.counted_layers // c.pp
    chunks = sorted((v for v in range(2, even + 1) if even % v == 0), key=lambda v: (abs(v - c.vpp), v))
    yield from ({"vpp": v} for v in chunks[:4])


def _fit_virtual_layers(c: ReviewFacts) -> Iterator[Changes]:
    even = c.counted_layers // c.pp
    sizes = sorted(_divisors_below(even), key=lambda size: abs(size - c.layers_per_virtual_stage))
    yield from ({"layers_per_virtual_stage": size} for size in sizes[:3])


def _fit_layers_per_stage(c: ReviewFacts) -> Iterator[Changes]:
    sizes = sorted(range(1, c.layers + 1), key=lambda size: abs(size - c.layers_per_stage))
    yield from ({"layers_per_stage": size} for size in sizes[1:40])


def _layout_alone(c: ReviewFacts) -> Iterator[Changes]:
    removed = without_others(c, {"layout": c.layout})
    removed.pop("layout")
    if c.get("vpp", None) and "megatron-lm" in c.trainer.scopes:
        removed["vpp"] = None
    yield removed


def _chunks_of_layout(c: ReviewFacts) -> Iterator[Changes]:
    if len(c.letters) % c.pp == 0:
        yield {"vpp": len(c.letters) // c.pp}


def _grow_positions(c: ReviewFacts) -> Iterator[Changes]:
    yield {"max_position_embeddings": c.seq_length}


def _more_recompute(c: ReviewFacts) -> Iterator[Changes]:
    """Yield more recomputation in the trainer's own settings, the cheapest first."""
    if "pytorch" in c.trainer.scopes:
        if c.trainer.name == "torchtitan":
            if c.get("ac_mode", None) not in ("selective", "full"):
                yield {"ac_mode": "selective"}
            yield {"ac_mode": "full"}
        else:
            yield {"activation_checkpointing": True}
        return
    modules = ["layernorm"]
    if c.get("experts", None):
        modules += ["moe_act"]
    if c.get("mla", False):
        modules += ["mla_up_proj"]
    usable = [module for module in modules if module != "moe_act" or c.get("grouped_gemm", True)]
    now = tuple(c.get("recompute_modules", None) or ())
    if c.get("recompute_granularity", None) != "full":
        more = tuple(dict.fromkeys((*(module for module in now if module != "core_attn"), *usable)))
        single = {"recompute_granularity": "selective", "recompute_modules": more}
        yield {**single, **_without_method(c)}
        yield {**single, "recompute_modules": (*more, "mlp"), **_without_method(c)}
    yield {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}


def _without_method(c: ReviewFacts) -> Changes:
    return {name: None for name in ("recompute_method", "recompute_num_layers") if c.get(name, None)}


def _selective(c: ReviewFacts) -> Iterator[Changes]:
    yield {"recompute_granularity": "selective", **_without_method(c)}


def _more(name: str, most: int) -> Repair:
    """Return a repair that doubles a degree while replicas are left."""

    def repair(c: ReviewFacts) -> Iterator[Changes]:
        degree = c.get(name, 1) or 1
        while 2 * degree <= most and c.replicas % (2 * degree // (c.get(name, 1) or 1)) == 0:
            degree *= 2
            changes: Changes = {name: degree}
            if name == "tp" and "megatron-core" in c.trainer.scopes:
                changes["sequence_parallel"] = True
            yield changes

    return repair


REPAIRS: Mapping[str, Repair] = MappingProxyType(
    {
        "gpus": lambda c: _gpus(c, c.model_parallel),
        "expert-gpus": _expert_gpus,
        "shrink-degrees": _shrink_degrees,
        "etp-one": _always(etp=1),
        "ep-one": _always(ep=1),
        "fit-experts": _fit_experts,
        "shrink-ep": _shrink("ep"),
        "shrink-tp": _shrink("tp"),
        "shrink-cp": _shrink("cp"),
        "tp-to-pp": _tensor_to_pipeline,
        "shard-rest": _always(dp_shard=-1),
        "sequence-parallel": _always(sequence_parallel=True),
        "shrink-micro-batch": _shrink_micro_batch,
        "round-global-batch": _round_global_batch,
        "round-microbatches": _round_microbatches,
        "grow-global-batch": _grow_global_batch,
        "round-eval-batch": _round_eval_batch,
        "grow-eval-batch": _grow_eval_batch,
        "grow-local-batch": _grow_local_batch,
        "shrink-local-batch": _shrink_local_batch,
        "no-group-size": _always(group_size=None),
        "fit-group-size": _fit_group_size,
        "grow-positions": _grow_positions,
        "drop-empty-stages": _drop_empty_stages,
        "balanced-edges": balanced_edges,
        "balanced-layout": balanced_layout,
        "balanced-parts": balanced_parts,
        "planned-layout": planned_layouts,
        "no-accounting": _without("account_embedding", "account_loss", value=False),
        "both-accounting": _always(account_embedding=True, account_loss=True),
        "nearest-chunks": _nearest_chunks,
        "no-chunks": _without("vpp", "layers_per_virtual_stage"),
        "chunks-of-layout": _chunks_of_layout,
        "fit-virtual-layers": _fit_virtual_layers,
        "no-virtual-layers": _always(layers_per_virtual_stage=None),
        "no-edges": _always(first_stage_layers=None, last_stage_layers=None),
        "layout-alone": _layout_alone,
        "fit-layers-per-stage": _fit_layers_per_stage,
        "round-stages": _always(round_stages="up"),
        "interleaved": _always(schedule="Interleaved1F1B"),
        "single-stage": _always(schedule="1F1B"),
        "overlap-messages": _always(overlap_p2p=True, batch_p2p=False),
        "no-batch-messages": _always(batch_p2p=False),
        "no-compile": _always(compile=False),
        "zero-one": _always(zero_stage=1),
        "no-exchange-overlap": _without("ep_a2a_overlap", "delay_wgrad", "early_attn_release", value=False),
        "no-shared-overlap": _always(shared_expert_overlap=False),
        "no-delay": _always(delay_wgrad=False),
        "alltoall": _always(dispatcher="alltoall"),
        "flex-dispatcher": _always(dispatcher="flex"),
        "hybridep": _always(dispatcher="flex", dispatcher_backend="hybridep"),
        "pre-softmax": _always(router_pre_softmax=True),
        "no-router-padding": _always(router_padding=False),
        "uniform-recompute": _always(recompute_method="uniform", recompute_num_layers=1),
        "selective-recompute": _selective,
        "more-recompute": _more_recompute,
        "more-context": _more("cp", 8),
        "more-tensor": _more("tp", 8),
        "no-offload": _always(cpu_offloading=False, cpu_offloading_layers=0),
        "no-fp16": _always(fp16=False),
        "bf16": _always(bf16=True),
        "distributed-optimizer": _always(distributed_optimizer=True),
        "overlap-reduce": _always(overlap_grad_reduce=True),
        "connections-one": _always(device_connections="1"),
        "fsdp-checkpoints": _always(ckpt_format="fsdp_dtensor"),
        "no-graphs": _always(cuda_graph_impl="none", cuda_graph_modules=None),
        "native-loss": _always(loss_fusion_impl="native"),
        "ring-context": _always(cp_comm_type=("p2p",)),
        "no-groups": _always(group_query_attention=False),
    }
)
"""Every repair by the name that rules give it."""
