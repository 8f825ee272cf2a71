"""Attention layers: grouped queries with projections, positions and core; multi-head latent attention.

The core is scores, softmax and values: one fused kernel, or products with memory passes over the scores between them. Latent
attention: DeepSeek-V2, arXiv 2405.04434 section 2.1.
"""

from __future__ import annotations

from pipeplan.extensions.planning.workload.components import LatentAttention, SparseAttention
from pipeplan.extensions.planning.workload.layers.norms import norm
from pipeplan.extensions.planning.workload.parameters import gate_width, norm_size
from pipeplan.extensions.planning.workload.part import (
    FULL,
    HALF,
    Part,
    elementwise,
    into_tensor,
    joined,
    keeps_copies,
    kept_tokens,
    linear,
    out_of_tensor,
    scattered,
    shard_tokens,
)
from pipeplan.extensions.planning.workload.shape import ModelShape
from pipeplan.extensions.planning.workload.work import (
    AttentionCore,
    Collective,
    Execution,
    Gemm,
    Kept,
    MemoryPass,
    RankParameters,
    Recompute,
)


def attention_core(
    model: ModelShape,
    execution: Execution,
    *,
    heads: float,
    kv_heads: float,
    score_dim: float,
    value_dim: float,
    windowed: bool,
    sparse: SparseAttention | None = None,
) -> Part:
    """Return causal attention of a rank's heads; it keeps queries, keys and values, the next product keeps its output.

    Fused (FlashAttention, arXiv 2205.14135): scores never reach memory, I recomputes them, and the masked half is skipped. I
    also needs the output, which is kept twice if the next product keeps an 8-bit copy.

    Unfused (arXiv 2205.05198 section 4.1): every product covers the whole matrix. Kept are the softmax's output (2 a s^2 b
    bytes) and with dropout its mask (a s^2 b) and its output (2 a s^2 b). Products are batched GEMMs, which read and write
    the scores.

    With an indexer (``sparse``), a query sees only the selected keys. All heads of latent attention share them: queries are
    multiplied with the keys' expansion instead, and the core runs over the compressed keys, which are the values, too (arXiv
    2512.02556 section 2.1; ``absorbed_mla.py`` of Megatron Core). Each query gathers its keys.
    """
    n = execution.tokens
    selected = 0.0
    core_kv_heads, core_score, core_value = kv_heads, score_dim, value_dim
    if sparse is not None and model.latent is not None:
        core_kv_heads, core_value = 1.0, float(model.latent.key_value_rank)
        core_score = core_value + model.latent.rope_dim
        selected = n * sparse.keys_seen(execution.attended) * core_score
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
                keys=model.keys_seen(execution.attended, windowed=windowed)
                if sparse is None
                else sparse.keys_seen(execution.attended),
                heads=heads,
                kv_heads=core_kv_heads,
                score_dim=core_score,
                value_dim=core_value,
                backward=backward,
                gathered=HALF * selected,
            )

        part = Part(forward=(core(False),), backward_input=(core(True), *scattered(selected)))
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
    # The scaled, masked softmax is one kernel: it reads and writes the scores; backward reads its output and the gradient.
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
    """Return the collectives of the context group around the core.

    Ring attention (arXiv 2310.01889): keys and values circulate in F, also their gradients in I. All-to-all (Ulysses, arXiv
    2309.14509): queries, keys and values go to the ranks with their heads, and the output returns; gradients take the same
    paths in I. PyTorch's context parallelism (``gather``) copies keys and values for all heads, gathers them before the
    first step, and circulates their gradients in 32 bits.

    Parameters
    ----------
    query_numbers, key_value_numbers
        Numbers of queries and output together, and of keys and values, on a rank.
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
    if execution.context_method == "gather":
        gather = Collective(
            name="keys and values", operation="all_gather", group="context", bytes=c * HALF * query_numbers
        )
        forward, backward = _merging(c, query_numbers, query_numbers, (38, 18))
        return Part(forward=(gather, forward), backward_input=(gather, _ring(c, FULL * query_numbers), backward))
    forward, backward = _merging(c, query_numbers, key_value_numbers, (10, 10))
    ring = HALF * key_value_numbers
    return Part(forward=(_ring(c, ring), forward), backward_input=(_ring(c, 2 * ring), backward))


def _ring(ranks: int, size: float) -> Collective:
    return Collective(
        name="keys and values", operation="ring", group="context", bytes=size, steps=ranks - 1, beside="core"
    )


def _merging(
    ranks: int, query_numbers: float, key_value_numbers: float, bytes_each: tuple[int, int]
) -> tuple[MemoryPass, MemoryPass]:
    """Return the passes of F and I that add each step's output, and its gradients, to those of earlier steps.

    A step's output is scaled by its sum of scores and added in 32 bits: one kernel in Transformer Engine
    (``context_parallel.py``), a conversion, a sigmoid and three operations in PyTorch
    (``torch.distributed.tensor.experimental._attention``). A causal ring balances its ranks with a chunk from either end of
    the sequence each: half of a step's queries or keys is masked and skipped, so that three quarters are added on average.
    """
    steps = ranks - 1
    output, gradient = bytes_each
    added = 0.75 * steps
    return (
        MemoryPass(name="outputs of steps", bytes=added * output * query_numbers / 2, kernels=steps),
        MemoryPass(
            name="gradients of steps",
            bytes=added * gradient * (query_numbers / 2 + key_value_numbers),
            kernels=steps,
        ),
    )


def attention(model: ModelShape, execution: Execution, *, windowed: bool) -> Part:
    """Return queries, keys and values in one product, rotary positions, the core, and the output projection.

    Heads are split over t; with fewer key-value heads than t, each rank has one. Kept bytes: arXiv 2205.05198 section 4.1,
    with 2q + 4kd instead of 6h for grouped queries.
    """
    n, t = execution.tokens, execution.tensor
    dim, value = model.score_dim, model.value_dim
    heads = model.heads / t
    kv_heads = max(model.key_heads / t, 1)
    q, kv, values = heads * dim, kv_heads * dim, kv_heads * value
    gate = gate_width(model) / t
    return joined(
        (
            into_tensor("attention", execution, model.hidden),
            linear(
                "query, key and value",
                execution,
                rows=n,
                inner=model.hidden,
                columns=q + kv + values,
                keeps="attention input",
                kept_rows=kept_tokens(execution),
                fused_cast=True,
                bias=model.bias_qkv or model.bias_all,
                modules=(q, kv, values),
            ),
            _gate_product(model, execution, gate),
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
                value_dim=value,
                windowed=windowed,
            ),
            _sinks(n, heads) if model.attention_sinks else Part(),
            _output_gate(n, gate, heads * value),
            linear(
                "attention output",
                execution,
                rows=n,
                inner=heads * value,
                columns=model.hidden,
                keeps="attention output",
                bias=model.bias_all or model.bias_out,
            ),
            out_of_tensor("attention", execution, model.hidden),
        )
    )


def _sinks(n: float, heads: float) -> Part:
    """Return the learned sinks: the core's kernel adds them to the softmax's sum; I sums their gradient over the tokens."""
    gradient = MemoryPass(name="attention sinks' gradient", bytes=2 * FULL * n * heads)
    return Part(backward_input=(gradient,), parameters=RankParameters(dense=round(heads)))


def _gate_product(model: ModelShape, execution: Execution, gate: float) -> Part:
    if not gate:
        return Part()
    return linear(
        "attention gate",
        execution,
        rows=execution.tokens,
        inner=model.hidden,
        columns=gate,
        fused_cast=True,
        bias=model.output_gate == "query" and (model.bias_qkv or model.bias_all),
    )


def _output_gate(n: float, gate: float, output: float) -> Part:
    """Return the sigmoid of a gate times the attention's output: one kernel that keeps both (Qwen3-Next)."""
    if not gate:
        return Part()
    moved = HALF * n * (gate + 2 * output)
    kept = (
        Kept(name="attention gate", bytes=HALF * n * gate),
        Kept(name="attention output before gate", bytes=HALF * n * output),
    )
    return joined((elementwise("attention gate", moved, moved + HALF * n * (gate + output)), Part(kept=kept)))


def _head_norms(model: ModelShape, execution: Execution, q: float, kv: float, dim: int) -> Part:
    if not (model.qk_norm or model.qk_norm_whole):
        return Part()
    n = execution.tokens
    both = norm("query and key norms", model, execution, width=q + kv, rows=n)
    if not execution.fused_norms:
        # Eager norms convert, square, average, scale and weight in kernels of their own: 36 bytes per number instead of 4.
        both = joined((both, elementwise("query and key norms", 32.0 * n * (q + kv), 64.0 * n * (q + kv), kernels=5)))
    return Part(
        forward=both.forward,
        backward_input=both.backward_input,
        kept=(Kept(name="query and key norms' input", bytes=HALF * n * (q + kv)),),
        parameters=RankParameters(
            dense=norm_size(model, (q + kv) * execution.tensor if model.qk_norm_whole else 2 * dim)
        ),
    )


def latent_attention(
    model: ModelShape, latent: LatentAttention, execution: Execution, *, windowed: bool, indexes: bool = True
) -> Part:
    """Return latent attention: down-projections replicated on every rank, up-projections and heads split over t.

    Queries and keys have d_n + d_r numbers per head, values d_v; training uses as many key heads as query heads. The outputs
    of the up-projections can be recomputed from their inputs (``mla_up_proj``). A layer of a model with an indexer has one
    (``indexes``), or reads the keys that an earlier layer's selected.
    """
    n, t = execution.tokens, execution.tensor
    shard = shard_tokens(execution)
    heads = model.heads / t
    score, value = latent.nope_dim + latent.rope_dim, latent.value_dim
    core = attention_core(
        model,
        execution,
        heads=heads,
        kv_heads=heads,
        score_dim=score,
        value_dim=value,
        windowed=windowed,
        sparse=model.sparse,
    )
    gate = gate_width(model) / t
    down, up = _down(model, latent, execution, shard), _up(model, latent, execution, heads)
    return joined(
        (
            down,
            up,
            _indexer(model, latent, model.sparse, execution) if model.sparse is not None and indexes else Part(),
            _gate_product(model, execution, gate),
            core,
            _output_gate(n, gate, heads * value),
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


def _indexer(model: ModelShape, latent: LatentAttention, sparse: SparseAttention, execution: Execution) -> Part:
    """Return the indexer: its projections, the scores of all keys, and the selection of the keys with the highest ones.

    Every rank of the tensor group computes all of it. F scores every earlier key; in the sparse stage of training, I
    differentiates the scores of the selected keys only (arXiv 2512.02556 section 2.1.1). Its loss compares them with the
    attention's probabilities, which are read once.
    """
    n, s, heads, dim = execution.tokens, execution.attended, sparse.index_heads, sparse.index_dim
    rank = latent.query_rank or model.hidden
    seen, chosen = model.keys_seen(s), sparse.keys_seen(s)

    def scores(keys: float, *, backward: bool = False) -> AttentionCore:
        return AttentionCore(
            name="indexer",
            queries=n,
            keys=keys,
            heads=heads,
            kv_heads=1,
            score_dim=dim,
            value_dim=0,
            backward=backward,
        )

    selection = MemoryPass(name="key selection", bytes=2 * FULL * n * seen + FULL * n * chosen, kernels=2)
    loss = MemoryPass(name="indexer loss", bytes=3 * FULL * n * chosen, kernels=3)
    return joined(
        (
            linear("indexer query", execution, rows=n, inner=rank, columns=heads * dim),
            linear("indexer key", execution, rows=n, inner=model.hidden, columns=dim),
            linear("indexer weights", execution, rows=n, inner=model.hidden, columns=heads, precision="bf16"),
            elementwise("indexer norm and positions", 4 * HALF * n * dim, 6 * HALF * n * dim, kernels=2),
            Part(
                forward=(scores(seen), selection),
                backward_input=(loss, scores(chosen, backward=True)),
                kept=(
                    Kept(name="indexer queries and keys", bytes=HALF * n * (heads * dim + dim + heads)),
                    Kept(name="selected keys", bytes=FULL * n * chosen),
                ),
                parameters=RankParameters(dense=2 * dim),
            ),
        )
    )


def _down(model: ModelShape, latent: LatentAttention, execution: Execution, shard: float) -> Part:
    """Return the projections to the compressed ranks with their norms; they are not split over t."""
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
    # Rotary positions of both, concatenation of the keys' two parts, and a copy of the values: read and written once.
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
