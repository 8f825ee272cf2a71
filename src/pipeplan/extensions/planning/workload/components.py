"""Components of a model: latent and sparse attention, heads of windowed layers, experts, and parameters that split alike."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from pipeplan.foundation.errors import InputError

Precision = Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4"]
"""Number format of the matrix products; activations between them, norms and attention stay in 16 bits."""

Split = Literal["tensor", "replicated", "expert"]
"""Ranks that split a part: the tensor group, none (every rank holds it), or the expert and expert-tensor groups."""

RouterScore = Literal["softmax", "sigmoid"]

_MOST = 1 << 32
"""Maximum of any number of a shape; the largest published ones are vocabularies of some 10^5 and contexts of 10^7."""


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
            check_size("query_rank", self.query_rank, at_least=1)
        for field in ("key_value_rank", "value_dim"):
            check_size(field, getattr(self, field), at_least=1)
        for field in ("nope_dim", "rope_dim"):
            check_size(field, getattr(self, field), at_least=0)
        check_size("nope_dim + rope_dim", self.score_dim, at_least=1)

    @property
    def score_dim(self) -> int:
        """Dimensions of a query and a key per head."""
        return self.nope_dim + self.rope_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseAttention:
    """Sparse attention with an indexer (DSA, DeepSeek-V3.2, arXiv 2512.02556 section 2.1).

    Attributes
    ----------
    index_heads, index_dim
        Number and dimensions of the indexer's heads, which share one key.
    keys
        Number of keys that the indexer selects for each query.
    """

    index_heads: int
    index_dim: int
    keys: int

    def __post_init__(self) -> None:
        for field in ("index_heads", "index_dim", "keys"):
            check_size(field, getattr(self, field), at_least=1)

    def keys_seen(self, sequence: int) -> float:
        """Return the mean number of keys that a query of a causal sequence sees."""
        return within(self.keys, sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerOfModel:
    """Mixer in the place of attention, as a model has it.

    Attributes
    ----------
    letter
        Its letter in the model's pattern.
    kind
        Name in :data:`pipeplan.extensions.planning.workload.mixers.MIXERS`.
    sizes
        Its sizes and switches by name.
    """

    letter: str
    kind: str
    sizes: tuple[tuple[str, int | bool], ...]


@dataclass(frozen=True, slots=True)
class ParameterPart:
    """Parameters of a layer that are split in the same way.

    Attributes
    ----------
    name
        Name such as ``query, key, value``.
    count
        Number of parameters over all ranks.
    split
        Ranks that split them. In Megatron-LM the tensor group splits matrices and the biases of column-parallel ones; norms,
        router, latent attention's down-projections and biases of row-parallel matrices are replicated.
    active
        Number of parameters that a token uses: fewer than ``count`` for routed experts.
    matrix
        Whether a token is multiplied with them: false for biases, norms and sinks.
    """

    name: str
    count: int
    split: Split = "tensor"
    active: int = -1
    matrix: bool = True

    def __post_init__(self) -> None:
        if self.active < 0:
            object.__setattr__(self, "active", self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedHeads:
    """Heads of windowed layers, if they differ from those of the other layers.

    Attributes
    ----------
    heads, kv_heads, head_dim, value_head_dim, attention_sinks
        As in :class:`ModelShape`; None: as the other layers.
    """

    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    value_head_dim: int | None = None
    attention_sinks: bool | None = None


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
    nodes_a_token, groups
        Maximum number of nodes of a token's experts (node-limited routing), None: unlimited; and number of groups of experts
        among which the router chooses so many, None: unknown.
    router_score, normalized_weights, weight_scale
        Function of the router's logits; whether the weights of a token's experts sum to 1; and a factor on these weights.
    latent_width
        Width to which tokens are projected before they are sent to the routed experts (LatentMoE, Nemotron 3); None: experts
        read the whole hidden state.
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
    latent_width: int | None = None
    groups: int | None = None
    router_score: RouterScore = "softmax"
    normalized_weights: bool = True
    weight_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.latent_width is not None:
            check_size("latent_width", self.latent_width, at_least=1)
        for field in ("count", "top_k", "width", "every"):
            check_size(field, getattr(self, field), at_least=1)
        for field in ("shared_width", "leading_dense_layers"):
            check_size(field, getattr(self, field), at_least=0)
        for field in ("nodes_a_token", "groups"):
            if getattr(self, field) is not None:
                check_size(field, getattr(self, field), at_least=1)
        if self.groups is not None and self.count % self.groups:
            raise InputError(
                f"invalid groups {self.groups}: expected a divisor of {self.count} experts", field="groups"
            )
        if self.router_score not in get_args(RouterScore):
            raise InputError(
                f"invalid router_score {self.router_score!r}: expected {' or '.join(get_args(RouterScore))}",
                field="router_score",
            )
        if not 0 < self.weight_scale < inf:
            raise InputError(
                f"invalid weight_scale {self.weight_scale!r}: expected a number above 0", field="weight_scale"
            )
        if self.top_k > self.count:
            raise InputError(f"invalid top_k {self.top_k}: expected at most the {self.count} experts", field="top_k")


def within(most: int, sequence: int) -> float:
    """Return the mean number of keys of a query that sees at most ``most`` of those before it: w - w^2 / (2 s)."""
    return sequence / 2 if most >= sequence else most - most * most / (2 * sequence)


def check_size(field: str, value: object, *, at_least: int) -> None:
    """Raise InputError unless a value is an integer that is neither too small nor larger than any model has."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"invalid {field} {value!r}: expected an integer", field=field)
    if not at_least <= value <= _MOST:
        shown = f"{value:,}" if abs(value) < 10**20 else f"about 10^{value.bit_length() * 3 // 10}"
        raise InputError(f"invalid {field} {shown}: expected {at_least} to {_MOST:,}", field=field)
