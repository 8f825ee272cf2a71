"""Modules that can be recomputed in the backward instead of kept, by the names that trainers give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeplan.extensions.planning.workload.work import (
    AttentionCore,
    Collective,
    Framework,
    Gemm,
    Group,
    GroupedGemm,
    Kept,
    LayerWork,
    Recompute,
    Work,
)
from pipeplan.foundation.errors import UnknownNameError

RECOMPUTE: dict[str, str] = {
    "core_attn": "attention core; with a fused kernel this saves almost nothing",
    "mlp": "dense FFN with its norm",
    "layernorm": "norms before attention and FFN: drops their outputs",
    "moe_act": "activation function of experts: drops its output",
    "mla_up_proj": "up-projections of latent attention: drops queries, keys and values",
    "moe": "MoE FFN after its norm, including its exchanges",
    "shared_experts": "shared experts",
    "full": "whole layer: keeps only its input",
    "selective-op": "per op: keeps every second matrix product and attention, recomputes everything else",
}
"""Description of each module by name. All but the last are Megatron's (--recompute-modules, --recompute-granularity full);
the last is torchtitan's selective activation checkpointing."""


def recomputed(layer: LayerWork, modules: Iterable[str]) -> LayerWork:
    """Return the layer with these modules recomputed before I.

    Their forward work is added to I, and the tensors they drop are not kept. A module that the layer does not
    have changes nothing, and neither does one whose tensors another module already drops. A dropped tensor that W needs is
    held again from I to W. Everything that a layer recomputes is held at the same time: ``transient_bytes`` includes it.

    Raises
    ------
    UnknownNameError
        If a name is not in :data:`RECOMPUTE`.
    """
    chosen = []
    for name in modules:
        if name not in RECOMPUTE:
            raise UnknownNameError("module to recompute", name, RECOMPUTE, field="recompute")
        if name in layer.recomputable:
            chosen.append(layer.recomputable[name])
    if not chosen:
        return layer
    dropped: set[str] = set()
    again: list[Work] = []
    added: dict[str, Kept] = {}
    for module in sorted(chosen, key=lambda module: -len(module.drops)):
        if module.drops <= dropped:
            continue
        dropped |= module.drops
        again.extend(module.work)
        added |= {tensor.name: tensor for tensor in module.adds}
    kept = [tensor if tensor.name not in dropped else _back_for_weight(tensor) for tensor in layer.kept]
    saved = sum(tensor.bytes for tensor in layer.kept if tensor.name in dropped)
    return replace(
        layer,
        backward_input=(*again, *layer.backward_input),
        kept=(*added.values(), *(tensor for tensor in kept if tensor.bytes or tensor.gradient_bytes)),
        transient_bytes=layer.transient_bytes + saved,
        recomputable={},
    )


def _back_for_weight(tensor: Kept) -> Kept:
    """Return a tensor that F does not keep; if W needs it, it is held from I on."""
    again = tensor.bytes if tensor.until == "W" else 0.0
    return replace(tensor, bytes=0.0, gradient_bytes=tensor.gradient_bytes + again)


def offloaded(layer: LayerWork, share: float) -> LayerWork:
    """Return the layer with a fraction of its kept bytes on the host between F and I; they return for the backward."""
    if not share:
        return layer
    kept = tuple(
        replace(
            tensor,
            bytes=tensor.bytes * (1 - share),
            gradient_bytes=tensor.gradient_bytes + (tensor.bytes * share if tensor.until == "W" else 0.0),
        )
        for tensor in layer.kept
    )
    return replace(layer, kept=kept, transient_bytes=layer.transient_bytes + share * layer.kept_bytes)


def full(
    forward: tuple[Work, ...], kept: tuple[Kept, ...], entering: frozenset[str], framework: Framework
) -> Recompute:
    """Return the recomputation of the whole layer from its input, which is kept in any case.

    PyTorch's non-reentrant checkpoint stops once it has all kept tensors, before the last product (``early_stop`` of
    ``torch.utils.checkpoint``); compiled code leaves out the same work.
    """
    stops = framework == "pytorch" and bool(_products(forward))
    again = forward[: forward.index(_products(forward)[-1])] if stops else forward
    return Recompute(work=again, drops=frozenset(tensor.name for tensor in kept) - entering)


def _products(works: Iterable[Work]) -> list[Gemm | GroupedGemm]:
    return [work for work in works if isinstance(work, Gemm | GroupedGemm)]


def selective_op(
    forward: tuple[Work, ...],
    kept: tuple[Kept, ...],
    products: tuple[Gemm, ...],
    entering: frozenset[str],
    ranks: Mapping[Group, int],
    *,
    compiled: bool,
) -> Recompute:
    """Return torchtitan's selective checkpointing per op, which keeps every second matrix product and attention.

    Source: torchtitan, ``_op_sac_save_list`` of its models. Products of separate linear modules are counted from 1 in the
    order of F; those with an even number are recomputed. Outputs of attention, reduce-scatters and all-to-alls are kept.
    Everything else is recomputed, including grouped products of experts.

    Parameters
    ----------
    ranks
        Sizes of the groups of reduce-scatters.
    compiled
        Whether compiled code drops the output of a product that ends the layer: nothing in the backward reads it.
    """
    ends = compiled and _products(forward)[-1:] == list(products[-1:])
    outputs = [2.0 * product.rows * product.columns for product in (products[:-1:2] if ends else products[::2])]
    again: list[Work] = list(products[1::2])
    for work in forward:
        if isinstance(work, AttentionCore):
            outputs.append(work.queries * work.heads * (2 * work.value_dim + 4))
        elif isinstance(work, Collective) and work.operation == "reduce_scatter":
            outputs.append(work.bytes / ranks[work.group])
        elif isinstance(work, Collective) and work.operation == "all_to_all":
            outputs.append(work.bytes)
        elif not isinstance(work, Gemm):
            again.append(work)
    return Recompute(
        work=tuple(again),
        drops=frozenset(tensor.name for tensor in kept) - entering,
        adds=tuple(Kept(name=f"output {index} of those saved", bytes=size) for index, size in enumerate(outputs)),
    )
