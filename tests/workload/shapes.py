"""Shapes of models for tests, drawn at random."""

from hypothesis import strategies as st

from pipeplan.workload import Experts, LatentAttention, ModelShape

SMALL = st.integers(1, 64)


@st.composite
def experts(draw: st.DrawFn, layers: int) -> Experts:
    count = draw(st.integers(1, 64))
    shared = draw(st.integers(0, 128))
    return Experts(
        count=count,
        top_k=draw(st.integers(1, count)),
        width=draw(SMALL),
        shared_width=shared,
        shared_gate=shared > 0 and draw(st.booleans()),
        leading_dense_layers=draw(st.integers(0, layers)),
        every=draw(st.integers(1, 3)),
        router_bias=draw(st.booleans()),
        expert_bias=draw(st.booleans()),
        nodes_a_token=draw(st.none() | st.integers(1, 8)),
    )


@st.composite
def latent(draw: st.DrawFn) -> LatentAttention:
    return LatentAttention(
        query_rank=draw(st.none() | SMALL),
        key_value_rank=draw(SMALL),
        nope_dim=draw(SMALL),
        rope_dim=draw(SMALL),
        value_dim=draw(SMALL),
    )


@st.composite
def shapes(draw: st.DrawFn) -> ModelShape:
    attention = draw(st.none() | latent())
    grouped = st.booleans() if attention is None else st.just(False)
    layers, kv_heads, groups = draw(st.integers(1, 24)), draw(st.integers(1, 8)), draw(st.integers(1, 4))
    return ModelShape(
        name=draw(st.text("abc-.1", min_size=1, max_size=8)),
        layers=layers,
        hidden=draw(st.integers(8, 512)),
        heads=kv_heads * groups,
        vocabulary=draw(st.integers(1, 1000)),
        kv_heads=kv_heads,
        head_dim=draw(SMALL),
        ffn=draw(st.integers(1, 1024)),
        gated=draw(st.booleans()),
        tied_embeddings=draw(st.booleans()),
        norm=draw(st.sampled_from(["rms", "layer", "layer-no-bias"])),
        norms_a_layer=draw(st.sampled_from([1, 2, 4])),
        bias_qkv=draw(grouped),
        bias_out=draw(grouped),
        bias_all=draw(grouped),
        qk_norm=draw(grouped),
        qk_norm_whole=draw(grouped),
        learned_positions=draw(st.none() | SMALL),
        attention_sinks=draw(grouped),
        sliding_window=draw(st.none() | SMALL),
        sliding_every=draw(st.integers(1, 6)),
        chunked_windows=draw(st.booleans()),
        latent=attention,
        experts=draw(st.none() | experts(layers)),
        mtp_layers=draw(st.integers(0, 2)),
        trained_sequence=draw(st.none() | SMALL),
    )
