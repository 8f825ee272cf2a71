"""Attention with grouped queries: its projections, positions and core."""

from __future__ import annotations

from pipeplan.workload.execution import Execution
from pipeplan.workload.layers.core import attention_core
from pipeplan.workload.layers.norms import norm, norm_parameters
from pipeplan.workload.layers.part import (
    HALF,
    Part,
    elementwise,
    into_tensor,
    joined,
    linear,
    out_of_tensor,
    shard_tokens,
)
from pipeplan.workload.shape import ModelShape
from pipeplan.workload.work import Kept, RankParameters


def attention(model: ModelShape, execution: Execution, *, windowed: bool) -> Part:
    """Queries, keys and values in one product, rotary positions, the core, and the output projection.

    Heads are split over t; where there are fewer key-value heads than t, each rank has one. FORMULAS of the kept bytes:
    arXiv 2205.05198 section 4.1, with 2q + 4kd in place of 6h for grouped queries.
    """
    n, t = execution.tokens, execution.tensor
    dim = model.score_dim
    heads = model.heads / t
    kv_heads = max(model.key_heads / t, 1)
    q, kv = heads * dim, kv_heads * dim
    return joined(
        (
            into_tensor("attention", execution, model.hidden),
            linear(
                "query, key and value",
                execution,
                rows=n,
                inner=model.hidden,
                columns=q + 2 * kv,
                keeps="attention input",
                kept_rows=shard_tokens(execution),
                fused_cast=True,
                bias=model.bias_qkv or model.bias_all,
                modules=(q, kv, kv),
            ),
            _head_norms(model, execution, q, kv, dim),
            # Each number is read and written once; sine and cosine stay in cache.
            elementwise("rotary positions", 2 * HALF * n * (q + kv), 2 * HALF * n * (q + kv), kernels=2)
            if model.learned_positions is None
            else Part(),
            attention_core(
                model,
                execution,
                heads=heads,
                kv_heads=kv_heads,
                score_dim=dim,
                value_dim=dim,
                windowed=windowed,
            ),
            Part(parameters=RankParameters(dense=round(heads) if model.attention_sinks else 0)),
            linear(
                "attention output",
                execution,
                rows=n,
                inner=q,
                columns=model.hidden,
                keeps="attention output",
                bias=model.bias_all or model.bias_out,
            ),
            out_of_tensor("attention", execution, model.hidden),
        )
    )


def _head_norms(model: ModelShape, execution: Execution, q: float, kv: float, dim: int) -> Part:
    if not (model.qk_norm or model.qk_norm_whole):
        return Part()
    n = execution.tokens
    both = norm("query and key norms", model, execution, width=q + kv, rows=n)
    return Part(
        forward=both.forward,
        backward_input=both.backward_input,
        kept=(Kept(name="query and key norms' input", bytes=HALF * n * (q + kv)),),
        parameters=RankParameters(
            dense=norm_parameters(model, (q + kv) * execution.tensor if model.qk_norm_whole else 2 * dim)
        ),
    )
