"""Shapes of models for tests, drawn at random."""

from dataclasses import replace

from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import Experts, LatentAttention, ModelShape
from pipeplan.extensions.planning.workload.components import SparseAttention, WindowedHeads
from pipeplan.extensions.planning.workload.mixers import Mixer, described
from pipeplan.extensions.planning.workload.mixers.compressed import CompressedAttention
from pipeplan.extensions.planning.workload.mixers.delta import GatedDelta, KimiDelta
from pipeplan.extensions.planning.workload.mixers.mamba import Mamba2
from pipeplan.extensions.planning.workload.mixers.simple import LightningAttention, ShortConvolution
from pipeplan.extensions.planning.workload.pattern import joined_forms

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
        latent_width=draw(st.none() | SMALL),
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
def compressed(draw: st.DrawFn) -> CompressedAttention:
    groups = draw(st.integers(1, 4))
    return CompressedAttention(
        query_heads=draw(SMALL) * groups,
        head_dim=draw(SMALL),
        query_rank=draw(SMALL),
        groups=groups,
        group_rank=draw(SMALL),
        window=draw(SMALL),
        **draw(st.sampled_from([{}, {"rate": 4}, {"rate": 4, "index_heads": 4, "index_dim": 8, "keys": 16}])),
    )


MIXERS_DRAWN: st.SearchStrategy[Mixer] = st.one_of(
    st.builds(
        Mamba2,
        state_heads=SMALL,
        head_dim=SMALL,
        groups=st.integers(1, 4),
        state_dim=SMALL,
        conv_bias=st.booleans(),
        bias=st.booleans(),
        gated_norm=st.booleans(),
    ),
    st.builds(GatedDelta, key_heads=SMALL, key_dim=SMALL, value_heads=SMALL, value_dim=SMALL),
    st.builds(KimiDelta, delta_heads=SMALL, head_dim=SMALL, full_decay=st.booleans(), full_gate=st.booleans()),
    st.builds(LightningAttention, linear_heads=SMALL, head_dim=SMALL),
    st.builds(ShortConvolution, filters=SMALL, kernel=st.integers(1, 4), bias=st.booleans()),
    compressed(),
)


@st.composite
def hybrids(draw: st.DrawFn) -> ModelShape:
    """Shapes whose layers differ: windows with heads of their own, mixers, layers without a mixer or without an FFN."""
    plain = draw(shapes())
    own = draw(st.lists(MIXERS_DRAWN, max_size=2))
    letters = ["A", *"MN"[: len(own)]]
    sparse = None
    if plain.latent is not None and plain.latent.query_rank is not None and draw(st.booleans()):
        sparse = SparseAttention(index_heads=draw(SMALL), index_dim=draw(SMALL), keys=draw(SMALL))
        letters.append("S")
    if plain.sliding_window is not None:
        letters.append("W")
    ffns = ["D", *(["E", "H"] if plain.experts is not None else [])]
    forms = st.sampled_from([(mixer, ffn) for mixer in ["", *letters] for ffn in ["", *ffns] if mixer or ffn])
    chosen = draw(st.lists(forms, min_size=plain.layers, max_size=plain.layers))
    return replace(
        plain,
        pattern=joined_forms([mixer for mixer, _ in chosen], [ffn for _, ffn in chosen]),
        mixers=tuple(described(letter, mixer) for letter, mixer in zip("MN", own, strict=False)),
        sparse=sparse,
        windowed_heads=WindowedHeads(heads=plain.heads * 2, kv_heads=plain.kv_heads) if plain.latent is None else None,
        value_head_dim=draw(st.none() | SMALL) if plain.latent is None else None,
        output_gate=draw(st.sampled_from(["", "query", "element", "head"])),
        residual_streams=draw(st.sampled_from([1, 1, 4])),
        experts=None if plain.experts is None else replace(plain.experts, leading_dense_layers=0, every=1),
        sliding_every=1,
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
