"""What a model is: the numbers of its config that decide what training it costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA, DeepSeek-V2, arXiv 2405.04434 section 2.1).

    Attributes
    ----------
    query_rank
        Of the queries' low-rank projection; None: queries are projected directly.
    key_value_rank
        Of the joint compression of keys and values.
    nope_dim, rope_dim, value_dim
        Per head: of queries and keys without and with rotary positions, and of values.
    """

    query_rank: int | None
    key_value_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts.

    Attributes
    ----------
    count, top_k
        How many routed experts a layer has, and how many a token goes to.
    width
        FFN width of each routed expert.
    shared_width
        FFN width of all shared experts together; 0: none.
    leading_dense_layers
        How many layers at the start are dense.
    every
        Which of the layers behind those have experts: each ``every``-th.
    router_bias, expert_bias
        Whether routers and experts have biases.
    nodes_a_token
        To how many nodes a token's experts are limited (node-limited routing); None: to any.
    """

    count: int
    top_k: int
    width: int
    shared_width: int = 0
    leading_dense_layers: int = 0
    every: int = 1
    router_bias: bool = False
    expert_bias: bool = False
    nodes_a_token: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The shape of a decoder-only transformer.

    Attributes
    ----------
    name
        What people call it.
    layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary
        L, h, a, k, d, f and V; ``ffn`` is of the dense layers, None where every layer has experts. ``kv_heads`` and
        ``head_dim`` say nothing where ``latent`` is given.
    gated
        Whether the FFN is gated (SwiGLU: three matrices).
    tied_embeddings
        Whether head and input embedding are one matrix.
    norm
        ``rms``: a weight each; ``layer``: weight and bias; ``layer-no-bias``: LayerNorm without bias.
    norms_a_layer
        Norms of width h in a layer: 2; 4 where sandwich norms stand behind attention and FFN, too (Gemma, Grok).
    bias_qkv, bias_all
        Biases of the query, key and value projections; of every linear layer.
    qk_norm
        Whether queries and keys are normalised per head.
    learned_positions
        How many learned position embeddings there are; None: none.
    attention_sinks
        Whether each head has a learned sink (GPT-OSS).
    sliding_window, sliding_every
        Tokens that a windowed layer's queries see, and which layers are windowed: all but each ``sliding_every``-th;
        ``sliding_window`` None: none is.
    latent
        Multi-head latent attention in place of grouped queries.
    experts
        A mixture of experts in place of the dense FFN.
    mtp_layers
        Layers that predict further tokens (multi-token prediction).
    trained_sequence
        Tokens in a sequence that it was trained on; None where nobody said.
    source
        Where the numbers are from.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn: int | None = None
    gated: bool = True
    tied_embeddings: bool = False
    norm: str = "rms"
    norms_a_layer: int = 2
    bias_qkv: bool = False
    bias_all: bool = False
    qk_norm: bool = False
    learned_positions: int | None = None
    attention_sinks: bool = False
    sliding_window: int | None = None
    sliding_every: int = 1
    latent: LatentAttention | None = None
    experts: Experts | None = None
    mtp_layers: int = 0
    trained_sequence: int | None = None
    source: str = ""
