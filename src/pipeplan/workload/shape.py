"""Shape of a model: the numbers of its config that decide what training it costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from pipeplan.errors import InputError

Norm = Literal["rms", "layer", "layer-no-bias"]

NORMS: tuple[Norm, ...] = ("rms", "layer", "layer-no-bias")

_MOST = 1 << 32
"""Maximum of any number of a shape; the largest published ones are vocabularies of some 10^5 and contexts of 10^7."""

_MOST_LAYERS = 100_000
"""Maximum number of layers, because they are processed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA, DeepSeek-V2, arXiv 2405.04434 section 2.1).

    Attributes
    ----------
    query_rank
        Rank of the queries' low-rank projection; None: queries are projected directly.
    key_value_rank
        Rank of the joint compression of keys and values.
    nope_dim, rope_dim, value_dim
        Dimensions per head: queries and keys without and with rotary positions, and values.
    """

    query_rank: int | None
    key_value_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int

    def __post_init__(self) -> None:
        if self.query_rank is not None:
            _check("query_rank", self.query_rank, at_least=1)
        for field in ("key_value_rank", "value_dim"):
            _check(field, getattr(self, field), at_least=1)
        for field in ("nope_dim", "rope_dim"):
            _check(field, getattr(self, field), at_least=0)
        _check("nope_dim + rope_dim", self.score_dim, at_least=1)

    @property
    def score_dim(self) -> int:
        """Dimensions of a query and a key per head."""
        return self.nope_dim + self.rope_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Mixture of experts.

    Attributes
    ----------
    count, top_k
        Number of routed experts per layer, and of those that a token goes to.
    width
        FFN width of each routed expert.
    shared_width
        FFN width of all shared experts together; 0: none.
    shared_gate
        Whether a projection of h to 1 weights the output of the shared experts (Qwen2-MoE).
    leading_dense_layers
        Number of dense layers at the start.
    every
        Period of layers with experts after the dense ones: the second, the fourth, ... for 2.
    router_bias, expert_bias
        Whether routers (or their selection, DeepSeek-V3) and experts have biases.
    nodes_a_token
        Maximum number of nodes of a token's experts (node-limited routing); None: unlimited.
    """

    count: int
    top_k: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    leading_dense_layers: int = 0
    every: int = 1
    router_bias: bool = False
    expert_bias: bool = False
    nodes_a_token: int | None = None

    def __post_init__(self) -> None:
        for field in ("count", "top_k", "width", "every"):
            _check(field, getattr(self, field), at_least=1)
        for field in ("shared_width", "leading_dense_layers"):
            _check(field, getattr(self, field), at_least=0)
        if self.nodes_a_token is not None:
            _check("nodes_a_token", self.nodes_a_token, at_least=1)
        if self.top_k > self.count:
            raise InputError(f"invalid top_k {self.top_k}: expected at most the {self.count} experts", field="top_k")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Shape of a decoder-only transformer.

    Attributes
    ----------
    name
        Name of the model.
    layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary
        L, h, a, k, d, f and V. ``ffn`` is the width of dense layers, None if every layer has experts. The defaults of
        ``kv_heads`` and ``head_dim`` are all heads and h / a; both are None with ``latent``.
    gated
        Whether the FFN is gated (SwiGLU: three matrices).
    tied_embeddings
        Whether head and input embedding are one matrix.
    norm
        ``rms``: one weight per number; ``layer``: weight and bias; ``layer-no-bias``: LayerNorm without bias.
    norms_a_layer
        Number of norms of width h per layer: 2; 1 if attention and FFN share one; 4 with sandwich norms after both (Gemma
        2).
    bias_qkv, bias_out, bias_all
        Whether the query, key and value projections, the attention's output projection, or all linear layers have biases.
    qk_norm, qk_norm_whole
        Whether queries and keys are normalized per head with the same weights, or with weights for all heads (OLMo 2).
    learned_positions
        Number of learned position embeddings; None: none.
    norm_epsilon
        Epsilon that norms add to the variance; None: unknown.
    rope_theta
        Base of rotary positions; None: unknown, or no rotary positions.
    attention_sinks
        Whether each head has a learned sink (GPT-OSS).
    sliding_window, sliding_every
        Tokens that queries of a windowed layer see, and period of layers without a window: all but every
        ``sliding_every``-th layer are windowed, for 1 all of them. ``sliding_window`` None: no windows.
    chunked_windows
        Whether windows are disjoint chunks (a query sees only its own; Llama 4) instead of sliding.
    latent
        Multi-head latent attention instead of grouped queries.
    experts
        Mixture of experts instead of the dense FFN.
    mtp_layers
        Number of multi-token prediction layers.
    trained_sequence
        Tokens per sequence in its training; None: unknown.
    source
        Source of the numbers.

    Raises
    ------
    InputError
        If a number is below one or absurdly large, KV heads do not divide the heads, heads do not divide the hidden size
        without a head size, there are more dense layers than layers, or a dense layer has no FFN.
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
    norm: Norm = "rms"
    norms_a_layer: int = 2
    bias_qkv: bool = False
    bias_out: bool = False
    bias_all: bool = False
    qk_norm: bool = False
    qk_norm_whole: bool = False
    learned_positions: int | None = None
    attention_sinks: bool = False
    sliding_window: int | None = None
    sliding_every: int = 1
    chunked_windows: bool = False
    latent: LatentAttention | None = None
    experts: Experts | None = None
    mtp_layers: int = 0
    trained_sequence: int | None = None
    source: str = ""
    norm_epsilon: float | None = None
    rope_theta: float | None = None

    def __post_init__(self) -> None:
        for field in ("layers", "hidden", "heads", "vocabulary"):
            _check(field, getattr(self, field), at_least=1)
        for field in ("kv_heads", "head_dim", "ffn", "learned_positions", "sliding_window", "trained_sequence"):
            if getattr(self, field) is not None:
                _check(field, getattr(self, field), at_least=1)
        if self.rope_theta is not None and not 1 <= self.rope_theta < inf:
            raise InputError(f"invalid rope_theta {self.rope_theta!r}: expected a number >= 1", field="rope_theta")
        if self.norm_epsilon is not None and not 0 < self.norm_epsilon < 1:
            raise InputError(
                f"invalid norm_epsilon {self.norm_epsilon!r}: expected a number between 0 and 1", field="norm_epsilon"
            )
        for field, least in (("sliding_every", 1), ("mtp_layers", 0)):
            _check(field, getattr(self, field), at_least=least)
        if self.layers > _MOST_LAYERS:
            raise InputError(f"invalid layers {self.layers:,}: expected at most {_MOST_LAYERS:,}", field="layers")
        if self.norms_a_layer not in (1, 2, 4):
            raise InputError(f"invalid norms_a_layer {self.norms_a_layer!r}: expected 1, 2 or 4", field="norms_a_layer")
        if self.norm not in NORMS:
            raise InputError(f"invalid norm {self.norm!r}: expected one of {', '.join(NORMS)}", field="norm")
        self._check_heads()
        self._check_widths()

    def _check_heads(self) -> None:
        """Check the sizes of heads and fill in their defaults; latent attention has its own sizes."""
        if self.latent is not None:
            for field in ("bias_qkv", "bias_out", "bias_all", "qk_norm", "qk_norm_whole", "attention_sinks"):
                if getattr(self, field):
                    raise InputError(
                        f"invalid {field}: latent attention has no biases, head norms or sinks",
                        field=field,
                    )
            object.__setattr__(self, "kv_heads", None)
            object.__setattr__(self, "head_dim", None)
            return
        if self.heads % self.key_heads:
            raise InputError(
                f"invalid kv_heads {self.kv_heads}: expected a divisor of heads {self.heads}",
                field="kv_heads",
            )
        if self.head_dim is None and self.hidden % self.heads:
            raise InputError(
                f"head_dim is required, because hidden {self.hidden} is not divisible by heads {self.heads}",
                field="head_dim",
            )
        object.__setattr__(self, "kv_heads", self.key_heads)
        object.__setattr__(self, "head_dim", self.score_dim)

    def _check_widths(self) -> None:
        experts = self.experts
        if experts is not None and experts.leading_dense_layers > self.layers:
            raise InputError(
                f"invalid leading_dense_layers {experts.leading_dense_layers}: expected at most layers {self.layers}",
                field="leading_dense_layers",
            )
        if self.ffn is None and self.dense_layers:
            raise InputError(
                f"ffn is required, because {self.dense_layers} of the {self.layers} layers are dense",
                field="ffn",
            )

    @property
    def key_heads(self) -> int:
        """Number of key heads k; that of query heads if ``kv_heads`` is not set, and for latent attention in training."""
        return self.heads if self.kv_heads is None or self.latent is not None else self.kv_heads

    @property
    def score_dim(self) -> int:
        """Dimensions of a query and a key per head: d, or both parts of latent attention."""
        if self.latent is not None:
            return self.latent.score_dim
        return self.hidden // self.heads if self.head_dim is None else self.head_dim

    @property
    def value_dim(self) -> int:
        """Dimensions of a value per head."""
        return self.score_dim if self.latent is None else self.latent.value_dim

    @property
    def query_width(self) -> int:
        """Dimensions of all heads' queries, a d."""
        return self.heads * self.score_dim

    @property
    def key_width(self) -> int:
        """Dimensions of all heads' keys, k d."""
        return self.key_heads * self.score_dim

    @property
    def value_width(self) -> int:
        """Dimensions of all heads' outputs, which the output projection reads."""
        return self.heads * self.value_dim

    @property
    def ffn_matrices(self) -> int:
        """Number of matrices of an FFN, g."""
        return 3 if self.gated else 2

    @property
    def moe_layers(self) -> int:
        """Number of layers with experts, without MTP layers."""
        return 0 if self.experts is None else (self.layers - self.experts.leading_dense_layers) // self.experts.every

    @property
    def dense_layers(self) -> int:
        """Number of layers with a dense FFN."""
        return self.layers - self.moe_layers

    def has_experts(self, layer: int) -> bool:
        """Return True if a layer has experts; layers count from 0, and MTP layers follow the last."""
        if self.experts is None:
            return False
        behind = layer - self.experts.leading_dense_layers
        return layer >= self.layers or (behind >= 0 and (behind + 1) % self.experts.every == 0)

    def is_windowed(self, layer: int) -> bool:
        """Return True if queries of a layer see only ``sliding_window`` tokens."""
        if self.sliding_window is None:
            return False
        return self.sliding_every == 1 or (layer + 1) % self.sliding_every != 0

    @property
    def windowed_layers(self) -> int:
        """Number of windowed layers."""
        if self.sliding_window is None:
            return 0
        return self.layers if self.sliding_every == 1 else self.layers - self.layers // self.sliding_every

    def keys_seen(self, sequence: int, *, windowed: bool = False, causal: bool = True) -> float:
        """Return the mean number of keys that a query sees.

        Parameters
        ----------
        sequence
            Sequence length s in tokens.
        windowed
            Whether the layer has a sliding window: w - w^2 / (2 s) keys if the window w is shorter than s.
        causal
            Whether the kernel skips masked keys: s/2; otherwise all of s, with or without a window.
        """
        if not causal:
            return float(sequence)
        if not windowed or self.sliding_window is None or self.sliding_window >= sequence:
            return sequence / 2
        window = self.sliding_window
        if self.chunked_windows:
            whole, rest = divmod(sequence, window)
            return (whole * window * window + rest * rest) / (2 * sequence)
        return window - window * window / (2 * sequence)


def _check(field: str, value: object, *, at_least: int) -> None:
    """Raise InputError unless a value is an integer that is neither too small nor larger than any model has."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"invalid {field} {value!r}: expected an integer", field=field)
    if not at_least <= value <= _MOST:
        shown = f"{value:,}" if abs(value) < 10**20 else f"about 10^{value.bit_length() * 3 // 10}"
        raise InputError(f"invalid {field} {shown}: expected {at_least} to {_MOST:,}", field=field)
