"""Attention with grouped queries: its projections, positions and core.

The core is scores, softmax and values: one kernel, or products with passes over the scores between them.
"""

from __future__ import annotations

from pipeplan.workload.execution import Execution
from pipeplan.workload.layers.part import (
    FULL,
    HALF,
    Part,
    elementwise,
    into_tensor,
    joined,
    keeps_copies,
    linear,
    norm,
    norm_parameters,
    out_of_tensor,
    shard_tokens,
)
from pipeplan.workload.shape import ModelShape
from pipeplan.workload.work import AttentionCore, Collective, Gemm, Kept, RankParameters, Recompute


def attention_core(
    model: ModelShape,
    execution: Execution,
    *,
    heads: float,
    kv_heads: float,
    score_dim: float,
    value_dim: float,
    windowed: bool,
) -> Part:
    """Causal attention of a rank's heads; queries, keys and values are kept, and its output by the product behind it.

    Fused (FlashAttention, arXiv 2205.14135): scores never reach memory, I computes them again; the masked half is
    skipped. The output is needed in I, too: it is kept twice where the product behind it keeps an 8-bit copy.

    Unfused (arXiv 2205.05198 section 4.1): every product covers the whole matrix; the softmax's output (2 a s^2 b bytes) is
    kept, and with dropout its mask (a s^2 b) and what it leaves (2 a s^2 b). Products are batched GEMMs, so that they read
    and write the scores.
    """
    n = execution.tokens
    kept = [
        Kept(name="queries", bytes=HALF * n * heads * score_dim),
        Kept(name="keys", bytes=HALF * n * kv_heads * score_dim),
        Kept(name="values", bytes=HALF * n * kv_heads * value_dim),
    ]
    if execution.attention == "flash":
        inside = [Kept(name="log sum of scores", bytes=FULL * n * heads)]

        def core(backward: bool) -> AttentionCore:
            return AttentionCore(
                name="attention core",
                queries=n,
                keys=model.keys_seen(execution.sequence, windowed=windowed),
                heads=heads,
                kv_heads=kv_heads,
                score_dim=score_dim,
                value_dim=value_dim,
                backward=backward,
            )

        part = Part(forward=(core(False),), backward_input=(core(True),))
    else:
        part, inside = _unfused(execution, heads, score_dim, value_dim)
    modules = {
        "core_attn": Recompute(work=part.forward, drops=frozenset(tensor.name for tensor in inside)),
    }
    around = _context(execution, n * heads * (score_dim + value_dim), n * kv_heads * (score_dim + value_dim))
    exchanged = execution.context > 1 and execution.context_method == "all_to_all"
    if execution.attention == "flash" and not exchanged and keeps_copies(execution):
        inside = [*inside, Kept(name="attention core output", bytes=HALF * n * heads * value_dim)]
    if exchanged:
        inside = [*inside, Kept(name="attention output before exchange", bytes=HALF * n * heads * value_dim)]
    return joined((around, part, Part(kept=(*kept, *inside), modules=modules)))


def _unfused(execution: Execution, heads: float, score_dim: float, value_dim: float) -> tuple[Part, list[Kept]]:
    n, s = execution.tokens, execution.sequence
    batched = round(execution.microbatch_size * heads)
    queries = n / execution.microbatch_size
    scores = n * s * heads

    def product(name: str, rows: float, columns: float, inner: float) -> Gemm:
        return Gemm(name=name, rows=rows, columns=columns, inner=inner, copies=batched)

    score = Part(
        forward=(product("scores", queries, s, score_dim),),
        backward_input=(
            product("query gradient", queries, score_dim, s),
            product("key gradient", s, score_dim, queries),
        ),
    )
    # The scaled, masked softmax is one kernel: reads and writes the scores; backward reads its output and the gradient.
    softmax = elementwise("softmax", 2 * HALF * scores, 3 * HALF * scores)
    dropped = elementwise("attention dropout", (2 * HALF + 1) * scores, (2 * HALF + 1) * scores)
    value = Part(
        forward=(product("attention over values", queries, value_dim, s),),
        backward_input=(
            product("probability gradient", queries, s, value_dim),
            product("value gradient", s, value_dim, queries),
        ),
        transient_bytes=HALF * scores,
    )
    inside = [Kept(name="softmax output", bytes=HALF * scores)]
    if not execution.dropout:
        return joined((score, softmax, value)), inside
    inside.append(Kept(name="attention mask", bytes=scores))
    inside.append(Kept(name="attention dropout output", bytes=HALF * scores))
    return joined((score, softmax, dropped, value)), inside


def _context(execution: Execution, query_numbers: float, key_value_numbers: float) -> Part:
    """What the context group exchanges around the core.

    Ring attention (arXiv 2310.01889): keys and values go round in F, they and their gradients in I. All-to-all (Ulysses,
    arXiv 2309.14509): queries, keys and values go to the ranks that have their heads, and the output comes back; gradients
    take the same ways in I.

    Parameters
    ----------
    query_numbers, key_value_numbers
        Of queries and the output together, and of keys and values, on a rank.
    """
    c = execution.context
    if c == 1:
        return Part()
    if execution.context_method == "all_to_all":
        exchange = Collective(
            name="heads and sequence",
            operation="all_to_all",
            group="context",
            bytes=HALF * (query_numbers + key_value_numbers),
        )
        return Part(forward=(exchange,), backward_input=(exchange,))

    def ring(times: int) -> Collective:
        passed = times * HALF * key_value_numbers
        return Collective(
            name="keys and values", operation="ring", group="context", bytes=passed, steps=c - 1, beside="core"
        )

    return Part(forward=(ring(1),), backward_input=(ring(2),))


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
