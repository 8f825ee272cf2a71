"""What can be computed again in the backward instead of kept: modules by the names that trainers give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeplan.errors import UnknownNameError
from pipeplan.workload.work import (
    AttentionCore,
    Collective,
    Gemm,
    Group,
    Kept,
    LayerWork,
    Recompute,
    Work,
)

RECOMPUTE: dict[str, str] = {
    "core_attn": "the attention core; with a fused kernel nearly nothing is saved",
    "mlp": "the dense FFN with its norm",
    "layernorm": "the norms before attention and FFN: their outputs are dropped",
    "moe_act": "the activation of experts: its output is dropped",
    "mla_up_proj": "the up-projections of latent attention: queries, keys and values are dropped",
    "moe": "all of the MoE FFN behind its norm, its exchanges with it",
    "shared_experts": "the shared experts",
    "full": "the whole layer: its input is kept",
    "selective-op": "per op: of the matrix products every second is kept, and attention; all else is computed again",
}
"""Name to title. All but the last are Megatron's (--recompute-modules, --recompute-granularity full); the last is
torchtitan's selective activation checkpointing."""


def recomputed(layer: LayerWork, modules: Iterable[str]) -> LayerWork:
    """The layer with these modules computed again before I: their work is in I, what they drop is not kept.

    A module that the layer does not have changes nothing; one whose tensors another drops already is part of that one.
    What a dropped tensor would have kept until W is there again from I to W, and what a layer computes again is there at
    once: ``transient_bytes`` holds it.

    Raises
    ------
    UnknownNameError
        For a name that is not in :data:`RECOMPUTE`.
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
    """A tensor that F does not keep: where W needs it, it is there from I on."""
    again = tensor.bytes if tensor.until == "W" else 0.0
    return replace(tensor, bytes=0.0, gradient_bytes=tensor.gradient_bytes + again)


def offloaded(layer: LayerWork, share: float) -> LayerWork:
    """The layer with a share of its kept bytes on the host between F and I; for the backward they are back."""
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


def full(forward: tuple[Work, ...], kept: tuple[Kept, ...], entering: frozenset[str]) -> Recompute:
    """The whole layer from its input, which is among what it keeps anyway."""
    return Recompute(work=forward, drops=frozenset(tensor.name for tensor in kept) - entering)


def selective_op(
    forward: tuple[Work, ...],
    kept: tuple[Kept, ...],
    products: tuple[Gemm, ...],
    entering: frozenset[str],
    ranks: Mapping[Group, int],
) -> Recompute:
    """Torchtitan's per-op selective checkpointing: outputs of every second matrix product and of attention are kept.

    Its rule (torchtitan, ``_op_sac_save_list`` of its models): in the order of F, products are counted from 1 and those with
    an even number are computed again; outputs of attention, reduce-scatters and all-to-alls are kept; everything else is
    computed again, grouped products of experts with it. Products are those of separate linear modules.

    Parameters
    ----------
    ranks
        Of the groups over which something is scattered.
    """
    outputs = [2.0 * product.rows * product.columns for product in products[::2]]
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
