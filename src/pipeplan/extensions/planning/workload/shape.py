"""Shape of a model: the numbers of its config that decide what training it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Literal, get_args

from pipeplan.extensions.planning.workload.components import (
    Experts,
    LatentAttention,
    MixerOfModel,
    Precision,
    SparseAttention,
    WindowedHeads,
    check_size,
    within,
)
from pipeplan.extensions.planning.workload.details import PLAIN, Details
from pipeplan.extensions.planning.workload.mixers import Mixer, mixer_from
from pipeplan.extensions.planning.workload.pattern import (
    ATTENTION,
    DENSE,
    EXPERTS,
    HASHED,
    SHARED,
    WINDOWED,
    LayerForm,
    read_pattern,
)
from pipeplan.foundation.errors import InputError

Norm = Literal["rms", "layer", "layer-no-bias"]

OutputGate = Literal["", "query", "element", "head"]

_MOST_LAYERS = 100_000
"""Maximum number of layers, because they are processed one by one."""


def check_layers(layers: int) -> None:
    """Raise InputError for a number of layers that is too large to process them one by one."""
    check_size("layers", layers, at_least=1)
    if layers > _MOST_LAYERS:
        raise InputError(f"invalid layers {layers:,}: expected at most {_MOST_LAYERS:,}", field="layers")


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
    value_head_dim
        Dimensions of a value per head, if not ``head_dim``.
    output_gate
        Gate of the attention's output: ``query`` for one of each of its numbers from the query projection, with its biases
        (Qwen3-Next), ``element`` for one from a projection of its own, ``head`` for one of each head; empty: none.
    windowed_heads
        Heads of windowed layers; None: as the other layers.
    sparse
        Indexer that selects the keys of latent attention; None: queries see all keys.
    mixers
        Mixers in the place of attention (state-space layers, linear attention, convolutions), each with its letter.
    pattern
        Form of each layer (``read_pattern``); None: every layer has attention, and ``experts``
        and ``sliding_every`` tell the layers apart.
    residual_streams
        Number of residual streams that hyper-connections mix; 1: an ordinary residual stream.
    details
        What the network computes beside its sizes.
    approximates
        Architecture whose layers are not modelled, as which this shape is used; empty: none.
    mtp_layers
        Number of multi-token prediction layers.
    mtp_passes
        Number of times that each of them is applied, with the head and a loss each time.
    trained_sequence
        Tokens per sequence in its training; None: unknown.
    precision
        Number format of the products in its training.
    source
        Source of the numbers.

    Raises
    ------
    InputError
        If a number is below one or absurdly large, KV heads do not divide the heads, heads do not divide the hidden size
        without a head size, there are more dense layers than layers, a dense layer has no FFN, or the pattern has other
        layers than the model.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn: int | None = None
    vocabulary: int
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
    norm_epsilon: float | None = None
    rope_theta: float | None = None
    attention_sinks: bool = False
    sliding_window: int | None = None
    sliding_every: int = 1
    chunked_windows: bool = False
    value_head_dim: int | None = None
    output_gate: OutputGate = ""
    pattern: str | None = None
    residual_streams: int = 1
    mtp_layers: int = 0
    mtp_passes: int = 1
    trained_sequence: int | None = None
    approximates: str = ""
    precision: Precision = "bf16"
    source: str = ""
    latent: LatentAttention | None = None
    experts: Experts | None = None
    windowed_heads: WindowedHeads | None = None
    sparse: SparseAttention | None = None
    mixers: tuple[MixerOfModel, ...] = ()
    details: Details = PLAIN

    def __post_init__(self) -> None:
        for field in ("layers", "hidden", "heads", "vocabulary"):
            check_size(field, getattr(self, field), at_least=1)
        for field in (
            *("kv_heads", "head_dim", "value_head_dim", "ffn"),
            *("learned_positions", "sliding_window", "trained_sequence"),
        ):
            if getattr(self, field) is not None:
                check_size(field, getattr(self, field), at_least=1)
        if self.rope_theta is not None and not 1 <= self.rope_theta < inf:
            raise InputError(f"invalid rope_theta {self.rope_theta!r}: expected a number >= 1", field="rope_theta")
        if self.norm_epsilon is not None and not 0 < self.norm_epsilon < 1:
            raise InputError(
                f"invalid norm_epsilon {self.norm_epsilon!r}: expected a number between 0 and 1", field="norm_epsilon"
            )
        for field, least in (("sliding_every", 1), ("mtp_layers", 0), ("mtp_passes", 1), ("residual_streams", 1)):
            check_size(field, getattr(self, field), at_least=least)
        check_layers(self.layers)
        if self.norms_a_layer not in (1, 2, 4):
            raise InputError(f"invalid norms_a_layer {self.norms_a_layer!r}: expected 1, 2 or 4", field="norms_a_layer")
        for field, choices in (("precision", Precision), ("norm", Norm), ("output_gate", OutputGate)):
            if getattr(self, field) not in get_args(choices):
                expected = ", ".join(choice or "nothing" for choice in get_args(choices))
                raise InputError(f"invalid {field} {getattr(self, field)!r}: expected one of {expected}", field=field)
        self._check_heads()
        self._check_pattern()
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

    def _check_pattern(self) -> None:
        """Check that the pattern has a form for each layer, and that the model has what each form names."""
        if self.sparse is not None and (self.latent is None or self.latent.query_rank is None):
            raise InputError(
                "invalid sparse: an indexer needs latent attention with compressed queries", field="sparse"
            )
        if self.pattern is None:
            if self.mixers:
                raise InputError("mixers need a pattern, which says which layers have them", field="pattern")
            return
        forms = read_pattern(self.pattern)
        if len(forms) != self.layers:
            raise InputError(f"invalid pattern: expected {self.layers} layers, not {len(forms)}", field="pattern")
        letters = {ATTENTION: True, WINDOWED: self.sliding_window is not None, SHARED: self.sparse is not None}
        for letter in [mixer.letter for mixer in self.mixers]:
            if letter in (*letters, DENSE, EXPERTS, HASHED) or not (len(letter) == 1 and "A" <= letter <= "Z"):
                raise InputError(
                    f"invalid letter {letter!r} of a mixer: expected a free one, such as M", field="mixers"
                )
        letters |= {mixer.letter: True for mixer in self.mixers}
        for letter in letters:
            self.mixer(letter)
        stray = next((form for form in forms if form.mixer and not letters.get(form.mixer)), None)
        if stray is not None:
            raise InputError(
                f"invalid pattern: the model has no mixer {stray.mixer}; expected one of {', '.join(letters)}",
                field="pattern",
            )
        if self.experts is None and any(form.has_experts for form in forms):
            raise InputError("invalid pattern: it has layers with experts, and the model has none", field="pattern")

    def _check_widths(self) -> None:
        experts = self.experts
        if experts is not None and experts.leading_dense_layers > self.layers:
            raise InputError(
                f"invalid leading_dense_layers {experts.leading_dense_layers}: expected at most layers {self.layers}",
                field="leading_dense_layers",
            )
        dense = sum(form.ffn == DENSE for form in self.forms)
        if self.ffn is None and dense:
            raise InputError(
                f"ffn is required, because {dense} of the {self.layers} layers are dense",
                field="ffn",
            )

    @property
    def activation(self) -> str:
        """Activation of the FFN, one of :class:`Details` or another name."""
        return self.details.activation or ("silu" if self.gated else "gelu-tanh")

    @property
    def positions(self) -> str:
        """Kind of positions: ``rope``, ``learned``, ``alibi`` or ``none``."""
        return self.details.positions or ("rope" if self.learned_positions is None else "learned")

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
        if self.latent is not None:
            return self.latent.value_dim
        return self.score_dim if self.value_head_dim is None else self.value_head_dim

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
    def forms(self) -> tuple[LayerForm, ...]:
        """Form of each layer, without MTP layers."""
        return _forms(self.layers, self.pattern, self.experts, self.sliding_every if self.sliding_window else None)

    @property
    def mtp_form(self) -> LayerForm:
        """Form of MTP layers: attention without a window if the model has it, and experts if the model has any."""
        mixers = [form.mixer for form in self.forms if form.mixer]
        own = mixers[-1] if self.mixers and mixers and ATTENTION not in mixers else ATTENTION
        return LayerForm(own, DENSE if self.experts is None else EXPERTS)

    def mixer(self, letter: str) -> Mixer | None:
        """Return the model's own mixer of a letter; None for attention and for a layer without a mixer."""
        return next((_mixer(mixer) for mixer in self.mixers if mixer.letter == letter), None)

    def heads_of(self, form: LayerForm) -> ModelShape:
        """Return the model with the heads that a layer of a form has."""
        if form.mixer != WINDOWED or self.windowed_heads is None:
            return self
        return _with_heads(self, self.windowed_heads)

    @property
    def moe_layers(self) -> int:
        """Number of layers with experts, without MTP layers."""
        return sum(form.has_experts for form in self.forms)

    @property
    def dense_layers(self) -> int:
        """Number of layers without experts: with a dense FFN, or in some hybrid models without any FFN."""
        return self.layers - self.moe_layers

    def has_experts(self, layer: int) -> bool:
        """Return True if a layer has experts; layers count from 0, and MTP layers follow the last."""
        return (self.forms[layer] if layer < self.layers else self.mtp_form).has_experts

    def is_windowed(self, layer: int) -> bool:
        """Return True if queries of a layer see only ``sliding_window`` tokens."""
        return layer < self.layers and self.forms[layer].mixer == WINDOWED

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
        return within(window, sequence)


@lru_cache(maxsize=512)
def _forms(
    layers: int, pattern: str | None, experts: Experts | None, sliding_every: int | None
) -> tuple[LayerForm, ...]:
    """Return the form of each layer; ``sliding_every`` is None without windows."""
    if pattern is not None:
        return read_pattern(pattern)

    def form(layer: int) -> LayerForm:
        windowed = sliding_every is not None and (sliding_every == 1 or (layer + 1) % sliding_every != 0)
        behind = -1 if experts is None else layer - experts.leading_dense_layers
        moe = experts is not None and behind >= 0 and (behind + 1) % experts.every == 0
        return LayerForm(WINDOWED if windowed else ATTENTION, EXPERTS if moe else DENSE)

    return tuple(form(layer) for layer in range(layers))


@lru_cache(maxsize=64)
def _mixer(mixer: MixerOfModel) -> Mixer:
    return mixer_from({"kind": mixer.kind, **dict(mixer.sizes)})


@lru_cache(maxsize=64)
def _with_heads(shape: ModelShape, heads: WindowedHeads) -> ModelShape:
    names = ("heads", "kv_heads", "head_dim", "value_head_dim", "attention_sinks")
    own = {name: getattr(heads, name) for name in names if getattr(heads, name) is not None}
    return replace(shape, windowed_heads=None, **own)
