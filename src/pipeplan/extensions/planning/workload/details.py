"""Details of a network that change what it computes, but neither its parameters nor its counted operations."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from pipeplan.extensions.planning.workload.components import check_size
from pipeplan.foundation.errors import InputError

POSITIONS = ("rope", "learned", "alibi", "none")
"""Kinds of positions: rotary, learned embeddings, linear biases of attention, none."""

_POSITIVE = (
    *("gate_limit", "rotary_share", "attention_softcap", "logit_softcap", "attention_scale", "embedding_scale"),
    *("residual_scale", "logit_scale", "value_scale", "qkv_clip"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryScaling:
    """Scaling of rotary positions to longer sequences, as a config.json has it under ``rope_scaling``.

    Attributes
    ----------
    kind
        ``llama3``, ``yarn``, ``linear`` or another kind of Transformers' ``rope_type``.
    factor
        Ratio of the longer to the original sequence.
    original
        Original number of tokens per sequence; None: unknown.
    low_frequency, high_frequency
        Factors of ``llama3`` that bound the scaled wavelengths.
    beta_fast, beta_slow
        Rotations of ``yarn`` that bound the scaled frequencies.
    mscale, mscale_all
        Factors of YaRN's attention temperature; None: its default, 0.1 ln(factor) + 1.
    rounded
        Whether YaRN's bounds are rounded to integers.
    """

    kind: str
    factor: float = 1.0
    original: int | None = None
    low_frequency: float = 1.0
    high_frequency: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all: float | None = None
    rounded: bool = True

    def __post_init__(self) -> None:
        for field in ("factor", "beta_fast", "beta_slow", "low_frequency", "high_frequency"):
            if not 0 < getattr(self, field) < inf:
                raise InputError(f"invalid {field} {getattr(self, field)!r}: expected a number above 0", field=field)
        if self.original is not None:
            check_size("original", self.original, at_least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Details of a network beside its sizes; the defaults are those of Llama, or of GPT-2 without a gate.

    Attributes
    ----------
    activation
        Activation of the FFN: ``silu``, ``gelu`` (exact), ``gelu-tanh``, ``quick-gelu``, ``relu``, ``relu2`` (squared) or
        another name; None: ``silu`` with a gate, otherwise ``gelu-tanh``.
    gate_limit, gate_offset
        Limit of the inputs of the gated activation, None without one, and number that is added to the gated half (GPT-OSS).
    positions
        One of :data:`POSITIONS`; None: learned ones if the model has embeddings of positions, otherwise rotary ones.
    rotary_share
        Fraction of the dimensions of a head that rotary positions turn.
    rotary_interleaved
        Whether rotary positions turn neighboring dimensions (GPT-J) instead of the two halves of a head.
    rotary_scaling
        Scaling of rotary positions; None: none.
    local_rotary
        Whether windowed layers have rotary positions with another base, share or scaling.
    no_rotary_every
        Period of layers without rotary positions, the last of each period; 0: every layer has them.
    centered_norms
        Whether the weights of norms are differences from 1 (Gemma).
    norms_after
        Whether norms follow attention and FFN instead of preceding them (OLMo 2).
    parallel_residual
        Whether attention and FFN read the same input and their outputs are added to it together (GPT-NeoX).
    unit_qk_norm
        Whether queries and keys are normalized without weights (Llama 4).
    attention_softcap, logit_softcap
        Limits that a tanh puts on the logits of attention and of the head; None: none.
    attention_scale
        Factor on the logits of attention; None: 1 / sqrt(d).
    embedding_scale, residual_scale, logit_scale
        Factors on embeddings, on the outputs of attention and FFN, and on logits.
    value_scale
        Factor on the values of attention.
    qkv_clip
        Limit to which queries, keys and values are clipped; None: none.
    attention_temperature
        Whether queries are scaled by their position (Llama 4).
    weights_on_input
        Whether a router's weights multiply the inputs of experts instead of their outputs (Llama 4).
    groups_by_best
        Whether groups of experts are chosen by their best expert (DeepSeek-V2) instead of their two best (DeepSeek-V3).
    indexer_interleaved
        Whether rotary positions of the indexer of sparse attention turn neighboring dimensions (GLM-5).
    unread
        Fields of the config.json that are unknown here, with commas between them.
    """

    activation: str | None = None
    gate_limit: float | None = None
    gate_offset: float = 0.0
    positions: str | None = None
    rotary_share: float = 1.0
    rotary_interleaved: bool = False
    rotary_scaling: RotaryScaling | None = None
    local_rotary: bool = False
    no_rotary_every: int = 0
    centered_norms: bool = False
    norms_after: bool = False
    parallel_residual: bool = False
    unit_qk_norm: bool = False
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    attention_scale: float | None = None
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    value_scale: float = 1.0
    qkv_clip: float | None = None
    attention_temperature: bool = False
    weights_on_input: bool = False
    groups_by_best: bool = False
    indexer_interleaved: bool = False
    unread: str = ""

    def __post_init__(self) -> None:
        for field in _POSITIVE:
            value = getattr(self, field)
            if value is not None and not 0 < value < inf:
                raise InputError(f"invalid {field} {value!r}: expected a number above 0", field=field)
        if self.rotary_share > 1:
            raise InputError(
                f"invalid rotary_share {self.rotary_share!r}: expected a fraction of at most 1", field="rotary_share"
            )
        if self.positions is not None and self.positions not in POSITIONS:
            raise InputError(
                f"invalid positions {self.positions!r}: expected one of {', '.join(POSITIONS)}", field="positions"
            )
        check_size("no_rotary_every", self.no_rotary_every, at_least=0)


PLAIN = Details()
"""Details of a network that has none of its own."""
