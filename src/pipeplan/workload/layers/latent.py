"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1)."""

from __future__ import annotations

from pipeplan.workload.execution import Execution
from pipeplan.workload.layers.attention import attention_core
from pipeplan.workload.layers.part import (
    HALF,
    Part,
    elementwise,
    into_tensor,
    joined,
    keeps_copies,
    linear,
    norm,
    out_of_tensor,
    shard_tokens,
)
from pipeplan.workload.shape import LatentAttention, ModelShape
from pipeplan.workload.work import Recompute


def latent_attention(model: ModelShape, latent: LatentAttention, execution: Execution, *, windowed: bool) -> Part:
    """Down-projections on every rank alike, up-projections and heads split over t.

    Queries and keys have d_n + d_r numbers a head, values d_v; training runs as many key heads as query heads. What the
    up-projections make can be computed again from their inputs (``mla_up_proj``).
    """
    n, t = execution.tokens, execution.tensor
    shard = shard_tokens(execution)
    heads = model.heads / t
    score, value = latent.nope_dim + latent.rope_dim, latent.value_dim
    core = attention_core(
        model, execution, heads=heads, kv_heads=heads, score_dim=score, value_dim=value, windowed=windowed
    )
    down, up = _down(model, latent, execution, shard), _up(model, latent, execution, heads)
    return joined(
        (
            down,
            up,
            core,
            Part(modules={"mla_up_proj": Recompute(work=up.forward, drops=frozenset({"queries", "keys", "values"}))}),
            linear(
                "attention output",
                execution,
                rows=n,
                inner=heads * value,
                columns=model.hidden,
                keeps="attention output",
                bias=model.bias_all,
            ),
            out_of_tensor("attention", execution, model.hidden),
        )
    )


def _down(model: ModelShape, latent: LatentAttention, execution: Execution, shard: float) -> Part:
    """To the ranks of the compression, with their norms; not split over t."""
    key_values = linear(
        "key and value compression",
        execution,
        rows=shard,
        inner=model.hidden,
        columns=latent.key_value_rank + latent.rope_dim,
        keeps="attention input",
        fused_cast=True,
    )
    norms = norm(
        "key and value compression norm",
        model,
        execution,
        width=latent.key_value_rank,
        rows=shard,
        keeps="key and value compression",
        feeds=True,
    )
    if latent.query_rank is None:
        return joined((key_values, norms))
    queries = linear(
        "query compression",
        execution,
        rows=shard,
        inner=model.hidden,
        columns=latent.query_rank,
        keeps="query compression's input" if keeps_copies(execution) else "",
        fused_cast=True,
    )
    query_norm = norm(
        "query compression norm",
        model,
        execution,
        width=latent.query_rank,
        rows=shard,
        keeps="query compression",
        feeds=True,
    )
    return joined((queries, key_values, query_norm, norms))


def _up(model: ModelShape, latent: LatentAttention, execution: Execution, heads: float) -> Part:
    n = execution.tokens
    shard = shard_tokens(execution)
    score = latent.nope_dim + latent.rope_dim
    rank = model.hidden if latent.query_rank is None else latent.query_rank
    queries = linear(
        "query expansion" if latent.query_rank is not None else "query",
        execution,
        rows=n,
        inner=rank,
        columns=heads * score,
        keeps="normed query compression" if latent.query_rank is not None else "",
        kept_rows=shard,
        fused_cast=True,
    )
    key_values = linear(
        "key and value expansion",
        execution,
        rows=n,
        inner=latent.key_value_rank,
        columns=heads * (latent.nope_dim + latent.value_dim),
        keeps="normed key and value compression",
        kept_rows=shard,
        fused_cast=True,
    )
    # Rotary positions of both, and keys put together from their two parts and values copied out: read and written once.
    numbers = n * heads * (2 * score + latent.value_dim)
    return joined(
        (
            into_tensor("query expansion", execution, rank),
            queries,
            into_tensor("key and value expansion", execution, latent.key_value_rank + latent.rope_dim),
            key_values,
            elementwise("rotary positions", 2 * HALF * numbers, 2 * HALF * numbers, kernels=3),
        )
    )
