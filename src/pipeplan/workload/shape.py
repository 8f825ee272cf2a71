"""What a model is: the numbers of its config that decide what training it costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from pipeplan.errors import InputError

Norm = Literal["rms", "layer", "layer-no-bias"]

NORMS: tuple[Norm, ...] = ("rms", "layer", "layer-no-bias")

_MOST = 1 << 32
"""Of any number of a shape; the largest published ones are vocabularies of some 10^5 and contexts of 10^7."""

_MOST_LAYERS = 100_000
"""They are gone through one by one."""


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
        """Numbers of a query and a key, per head."""
        return self.nope_dim + self.rope_dim


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
    shared_gate
        Whether a projection of h to 1 weighs what the shared experts say (Qwen2-MoE).
    leading_dense_layers
        How many layers at the start are dense.
    every
        Which of the layers behind those have experts: each ``every``-th (the second, the fourth, ... for 2).
    router_bias, expert_bias
        Whether routers (or their selection, DeepSeek-V3) and experts have biases.
    nodes_a_token
        To how many nodes a token's experts are limited (node-limited routing); None: to any.
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
            raise InputError(
                f"a token goes to at most all experts; top_k is {self.top_k} of {self.count} experts", field="top_k"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The shape of a decoder-only transformer.

    Attributes
    ----------
    name
        What people call it.
    layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary
        L, h, a, k, d, f and V; ``ffn`` is of the dense layers, None where every layer has experts. ``kv_heads`` and
        ``head_dim`` are all heads and h / a where they are not given, and None where ``latent`` says what heads are.
    gated
        Whether the FFN is gated (SwiGLU: three matrices).
    tied_embeddings
        Whether head and input embedding are one matrix.
    norm
        ``rms``: a weight each; ``layer``: weight and bias; ``layer-no-bias``: LayerNorm without bias.
    norms_a_layer
        Norms of width h in a layer: 2; 1 where attention and FFN share one; 4 where sandwich norms stand behind both, too
        (Gemma 2).
    bias_qkv, bias_out, bias_all
        Biases of the query, key and value projections; of the attention's output projection; of every linear layer.
    qk_norm, qk_norm_whole
        Whether queries and keys are normalised, per head with the same weights; with weights for all heads (OLMo 2).
    learned_positions
        How many learned position embeddings there are; None: none.
    norm_epsilon
        What norms add to the variance; None where it is unknown.
    rope_theta
        Base of rotary positions; None where there are none, or it is unknown.
    attention_sinks
        Whether each head has a learned sink (GPT-OSS).
    sliding_window, sliding_every
        Tokens that a windowed layer's queries see, and which layers are windowed: all but each ``sliding_every``-th, all of
        them for 1; ``sliding_window`` None: none is.
    chunked_windows
        Whether windows stand side by side (a query sees its own only; Llama 4) in place of sliding.
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

    Raises
    ------
    InputError
        For numbers that no model has: below one or absurdly large, heads that KV heads do not divide, a hidden size that
        heads do not divide where nothing says the head's size, more dense layers than layers, no FFN of a dense layer.
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
            raise InputError(f"rope_theta is a number from 1 on; it is {self.rope_theta!r}", field="rope_theta")
        if self.norm_epsilon is not None and not 0 < self.norm_epsilon < 1:
            raise InputError(
                f"norm_epsilon is a number between 0 and 1; it is {self.norm_epsilon!r}", field="norm_epsilon"
            )
        for field, least in (("sliding_every", 1), ("mtp_layers", 0)):
            _check(field, getattr(self, field), at_least=least)
        if self.layers > _MOST_LAYERS:
            raise InputError(f"a model has at most {_MOST_LAYERS:,} layers; layers is {self.layers:,}", field="layers")
        if self.norms_a_layer not in (1, 2, 4):
            raise InputError(
                f"a layer has 1, 2 or 4 norms; norms_a_layer is {self.norms_a_layer!r}", field="norms_a_layer"
            )
        if self.norm not in NORMS:
            raise InputError(f"norm is one of {', '.join(NORMS)}; it is {self.norm!r}", field="norm")
        self._check_heads()
        self._check_widths()

    def _check_heads(self) -> None:
        """What grouped queries need, filled in where it follows; latent attention says its own sizes."""
        if self.latent is not None:
            for field in ("bias_qkv", "bias_out", "bias_all", "qk_norm", "qk_norm_whole", "attention_sinks"):
                if getattr(self, field):
                    raise InputError(
                        f"latent attention has neither biases nor norms of heads nor sinks; {field} is true",
                        field=field,
                    )
            object.__setattr__(self, "kv_heads", None)
            object.__setattr__(self, "head_dim", None)
            return
        if self.heads % self.key_heads:
            raise InputError(
                f"each key-value head serves as many query heads; kv_heads is {self.kv_heads}, heads is {self.heads}",
                field="kv_heads",
            )
        if self.head_dim is None and self.hidden % self.heads:
            raise InputError(
                f"hidden is shared out evenly over the heads where no head_dim is given; hidden is {self.hidden}, heads is "
                f"{self.heads}",
                field="head_dim",
            )
        object.__setattr__(self, "kv_heads", self.key_heads)
        object.__setattr__(self, "head_dim", self.score_dim)

    def _check_widths(self) -> None:
        """Which layers there are, and that each has its FFN."""
        experts = self.experts
        if experts is not None and experts.leading_dense_layers > self.layers:
            raise InputError(
                f"there are at most as many dense layers as layers; leading_dense_layers is "
                f"{experts.leading_dense_layers}, layers is {self.layers}",
                field="leading_dense_layers",
            )
        if self.ffn is None and self.dense_layers:
            raise InputError(
                f"a dense layer has an FFN; {self.dense_layers} of the {self.layers} layers are dense, and ffn is not given",
                field="ffn",
            )

    @property
    def key_heads(self) -> int:
        """k; as many as query heads where ``kv_heads`` is not given, and of latent attention in training."""
        return self.heads if self.kv_heads is None or self.latent is not None else self.kv_heads

    @property
    def score_dim(self) -> int:
        """Numbers of a query and a key, per head: d, or both parts of latent attention."""
        if self.latent is not None:
            return self.latent.score_dim
        return self.hidden // self.heads if self.head_dim is None else self.head_dim

    @property
    def value_dim(self) -> int:
        """Numbers of a value, per head."""
        return self.score_dim if self.latent is None else self.latent.value_dim

    @property
    def query_width(self) -> int:
        """Numbers of all heads' queries: a d."""
        return self.heads * self.score_dim

    @property
    def key_width(self) -> int:
        """Numbers of all heads' keys: k d."""
        return self.key_heads * self.score_dim

    @property
    def value_width(self) -> int:
        """Numbers of all heads' outputs, which the output projection reads."""
        return self.heads * self.value_dim

    @property
    def ffn_matrices(self) -> int:
        """The number of matrices of an FFN: g."""
        return 3 if self.gated else 2

    @property
    def moe_layers(self) -> int:
        """How many layers have experts; MTP layers are not among them."""
        return 0 if self.experts is None else (self.layers - self.experts.leading_dense_layers) // self.experts.every

    @property
    def dense_layers(self) -> int:
        """The number of layers with a dense FFN."""
        return self.layers - self.moe_layers

    def has_experts(self, layer: int) -> bool:
        """Whether a layer (0 is the first; MTP layers stand behind the last) has experts in place of a dense FFN."""
        if self.experts is None:
            return False
        behind = layer - self.experts.leading_dense_layers
        return layer >= self.layers or (behind >= 0 and (behind + 1) % self.experts.every == 0)

    def is_windowed(self, layer: int) -> bool:
        """Whether a layer's queries see ``sliding_window`` tokens only."""
        if self.sliding_window is None:
            return False
        return self.sliding_every == 1 or (layer + 1) % self.sliding_every != 0

    @property
    def windowed_layers(self) -> int:
        """The number of windowed layers."""
        if self.sliding_window is None:
            return 0
        return self.layers if self.sliding_every == 1 else self.layers - self.layers // self.sliding_every

    def keys_seen(self, sequence: int, *, windowed: bool = False, causal: bool = True) -> float:
        """Return the mean number of keys that a query sees.

        Parameters
        ----------
        sequence
            s, tokens.
        windowed
            In a layer with a sliding window: w - w^2 / (2 s) of them where the window w is shorter than s.
        causal
            Half of s, of a kernel that skips what is masked; else all of s, window or not.
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
    """Refuse what is no whole number, too small, or larger than any model has."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{field} is a whole number; it is {value!r}", field=field)
    if not at_least <= value <= _MOST:
        shown = f"{value:,}" if abs(value) < 10**20 else f"about 10^{value.bit_length() * 3 // 10}"
        raise InputError(f"{field} lies between {at_least} and {_MOST:,}; it is {shown}", field=field)
