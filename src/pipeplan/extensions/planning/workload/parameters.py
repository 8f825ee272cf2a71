"""Parameters and FLOPs of a model: per part of a layer, per layer, in total, and per token."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pipeplan.extensions.planning.workload.components import Experts, LatentAttention, ParameterPart
from pipeplan.extensions.planning.workload.pattern import ATTENTION, DENSE, EXPERTS, HASHED, SHARED, WINDOWED, LayerForm
from pipeplan.extensions.planning.workload.shape import ModelShape
from pipeplan.extensions.planning.workload.short_forms import model
from pipeplan.foundation.errors import InputError

ROUTER = "router"
"""Name of the part that routes a token to experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Parameter counts of a model.

    Attributes
    ----------
    embedding, positions, head
        V h; learned positions; V h again, or 0 if the head is tied to the embedding.
    final_norm
        Norm before the head.
    attention
        Attention of one layer: projections, biases, norms of queries and keys, sinks.
    dense_layer, moe_layer, moe_layer_active
        One layer with attention of either kind, None if the model has no such FFN; ``moe_layer_active`` counts only the
        experts that a token uses.
    mtp_layer
        One MTP layer: a layer, the projection of 2h to h, three norms (arXiv 2412.19437 section 2.2); it shares embedding
        and head with the model. None if there is none.
    dense_layers, moe_layers, mtp_layers
        Number of layers of each kind.
    all_layers, all_layers_active
        All layers together, without MTP layers: all experts, and those that a token uses.
    """

    embedding: int
    positions: int
    head: int
    final_norm: int
    attention: int
    dense_layer: int | None
    moe_layer: int | None
    moe_layer_active: int | None
    mtp_layer: int | None
    dense_layers: int
    moe_layers: int
    mtp_layers: int
    all_layers: int
    all_layers_active: int

    @property
    def ends(self) -> int:
        """Parameters outside the layers."""
        return self.embedding + self.positions + self.final_norm + self.head

    @property
    def total(self) -> int:
        """Parameters of the model without MTP layers."""
        return self.ends + self.all_layers

    @property
    def active(self) -> int:
        """Parameters that a token uses: top-k and shared experts, embedding and head; without MTP layers."""
        return self.ends + self.all_layers_active

    @property
    def total_with_mtp(self) -> int:
        """Parameters including the MTP layers, which share embedding and head with the model."""
        return self.total + self.mtp_layers * (self.mtp_layer or 0)


def parameter_counts(shape: ModelShape) -> ParameterCounts:
    """Return the exact parameter counts of a model."""
    dense = layer_parts(shape, experts=False) if shape.ffn is not None else None
    moe = layer_parts(shape, experts=True) if shape.experts is not None else None
    forms = [(form_parts(shape, form), count) for form, count in Counter(shape.forms).items()]
    embedding = shape.vocabulary * shape.hidden
    extra = 2 * shape.hidden * shape.hidden + 3 * norm_size(shape, shape.hidden)
    return ParameterCounts(
        embedding=embedding,
        positions=(shape.learned_positions or 0) * shape.hidden,
        head=0 if shape.tied_embeddings else embedding,
        final_norm=norm_size(shape, shape.hidden) + streams_head(shape),
        attention=_count(attention_parts(shape)),
        dense_layer=None if dense is None or not shape.dense_layers else _count(dense),
        moe_layer=None if moe is None else _count(moe),
        moe_layer_active=None if moe is None else sum(part.active for part in moe),
        mtp_layer=_count(form_parts(shape, shape.mtp_form)) + extra if shape.mtp_layers else None,
        dense_layers=shape.dense_layers,
        moe_layers=shape.moe_layers,
        mtp_layers=shape.mtp_layers,
        all_layers=sum(_count(parts) * count for parts, count in forms),
        all_layers_active=sum(sum(part.active for part in parts) * count for parts, count in forms),
    )


def _count(parts: tuple[ParameterPart, ...]) -> int:
    return sum(part.count for part in parts)


def layer_parts(shape: ModelShape, *, experts: bool) -> tuple[ParameterPart, ...]:
    """Return the parameters of one layer with attention, part by part.

    Parameters
    ----------
    experts
        Whether the layer has experts.

    Raises
    ------
    InputError
        If the model has no such layer.
    """
    return form_parts(shape, LayerForm(ATTENTION, EXPERTS if experts else DENSE))


def form_parts(shape: ModelShape, form: LayerForm) -> tuple[ParameterPart, ...]:
    """Return the parameters of one layer of a form, part by part.

    Raises
    ------
    InputError
        If the model has no such FFN.
    """
    branches = shape.norms_a_layer if form.blocks == 2 else max(1, shape.norms_a_layer // 2)
    norms = ParameterPart("norms", branches * norm_size(shape, shape.hidden), "replicated", matrix=False)
    return (*_mixer_parts(shape, form), *_form_ffn_parts(shape, form), norms, *_stream_parts(shape, form))


def _mixer_parts(shape: ModelShape, form: LayerForm) -> tuple[ParameterPart, ...]:
    if not form.mixer:
        return ()
    mixer = shape.mixer(form.mixer)
    if mixer is not None:
        return mixer.parameters(shape.hidden)
    parts = attention_parts(shape.heads_of(form))
    return tuple(part for part in parts if not part.name.startswith("indexer")) if form.mixer == SHARED else parts


def _form_ffn_parts(shape: ModelShape, form: LayerForm) -> tuple[ParameterPart, ...]:
    if not form.ffn:
        return ()
    if form.ffn == DENSE:
        if shape.ffn is None:
            raise InputError(f"{shape.name} has no dense layers: ffn is not set", field="ffn")
        return _ffn_parts(shape, shape.ffn, "FFN", bias=shape.bias_all)
    if shape.experts is None:
        raise InputError(f"{shape.name} has no layers with experts", field="experts")
    parts = _expert_parts(shape, shape.experts)
    return tuple(part for part in parts if part.name != "router bias") if form.ffn == HASHED else parts


def _stream_parts(shape: ModelShape, form: LayerForm) -> tuple[ParameterPart, ...]:
    """Return the parameters that mix residual streams around each branch (mHC, arXiv 2512.24880)."""
    streams = shape.residual_streams
    if streams == 1:
        return ()
    mixed = streams * (streams + 2)
    return (
        ParameterPart("stream mixing", form.blocks * mixed * streams * shape.hidden, "replicated"),
        ParameterPart("stream mixing biases and scales", form.blocks * (mixed + 3), "replicated", matrix=False),
    )


def streams_head(shape: ModelShape) -> int:
    """Return the number of parameters that merge the residual streams before the final norm."""
    streams = shape.residual_streams
    return 0 if streams == 1 else streams * streams * shape.hidden + streams + 1


def attention_parts(shape: ModelShape) -> tuple[ParameterPart, ...]:
    """Return the parameters of one layer's attention: projections, biases, norms of queries and keys, sinks."""
    if shape.latent is not None:
        return (*_latent_parts(shape, shape.latent), *_indexer_parts(shape, shape.latent))
    into = shape.query_width + shape.key_width + shape.key_heads * shape.value_dim
    out = shape.value_width
    biases = into + (gate_width(shape) if shape.output_gate == "query" else 0)
    head_norms = norm_size(shape, shape.query_width + shape.key_width if shape.qk_norm_whole else 2 * shape.score_dim)
    parts = (
        ParameterPart("query, key, value", shape.hidden * into),
        ParameterPart("query, key, value biases", biases if shape.bias_qkv or shape.bias_all else 0, matrix=False),
        ParameterPart("attention gate", shape.hidden * gate_width(shape)),
        ParameterPart("attention output", out * shape.hidden),
        ParameterPart(
            "attention output bias", shape.hidden if shape.bias_all or shape.bias_out else 0, "replicated", matrix=False
        ),
        ParameterPart(
            "query and key norms", head_norms if shape.qk_norm or shape.qk_norm_whole else 0, "replicated", matrix=False
        ),
        ParameterPart("attention sinks", shape.heads if shape.attention_sinks else 0, matrix=False),
    )
    return tuple(part for part in parts if part.count)


def _latent_parts(shape: ModelShape, latent: LatentAttention) -> tuple[ParameterPart, ...]:
    """Return the parameters of multi-head latent attention with normed compressions (arXiv 2405.04434 section 2.1)."""
    hidden, queries = shape.hidden, shape.query_width
    up = latent.key_value_rank * shape.heads * (latent.nope_dim + latent.value_dim)
    query = [ParameterPart("query", hidden * queries)]
    if latent.query_rank is not None:
        down = ParameterPart("query down", hidden * latent.query_rank, "replicated")
        query = [down, ParameterPart("query up", latent.query_rank * queries)]
    norms = (latent.query_rank or 0) + latent.key_value_rank
    return (
        *query,
        ParameterPart("key and value down", hidden * (latent.key_value_rank + latent.rope_dim), "replicated"),
        ParameterPart("key and value up", up),
        *((ParameterPart("attention gate", hidden * gate_width(shape)),) if shape.output_gate else ()),
        ParameterPart("attention output", shape.value_width * hidden),
        ParameterPart("compression norms", norm_size(shape, norms), "replicated", matrix=False),
    )


def gate_width(shape: ModelShape) -> int:
    """Return the number of values that gate the output of one layer's attention, over all heads."""
    return {"": 0, "head": shape.heads}.get(shape.output_gate, shape.value_width)


def _indexer_parts(shape: ModelShape, latent: LatentAttention) -> tuple[ParameterPart, ...]:
    """Return the parameters of the indexer, which every rank of the tensor group holds (arXiv 2512.02556 section 2.1)."""
    sparse = shape.sparse
    if sparse is None:
        return ()
    return (
        ParameterPart("indexer query", (latent.query_rank or 0) * sparse.index_heads * sparse.index_dim, "replicated"),
        ParameterPart("indexer key", shape.hidden * sparse.index_dim, "replicated"),
        ParameterPart("indexer weights", shape.hidden * sparse.index_heads, "replicated"),
        ParameterPart("indexer norm", 2 * sparse.index_dim, "replicated", matrix=False),
    )


def _ffn_parts(shape: ModelShape, width: int, name: str, *, bias: bool) -> tuple[ParameterPart, ...]:
    parts = [ParameterPart(name, shape.ffn_matrices * shape.hidden * width)]
    if bias:
        parts += [ParameterPart(f"{name} biases", (shape.ffn_matrices - 1) * width, matrix=False)]
        parts += [ParameterPart(f"{name} output bias", shape.hidden, "replicated", matrix=False)]
    return tuple(parts)


def _expert_parts(shape: ModelShape, experts: Experts) -> tuple[ParameterPart, ...]:
    hidden, count = shape.hidden, experts.count
    read = experts.latent_width or hidden
    expert = shape.ffn_matrices * read * experts.width
    parts = [ParameterPart("routed experts", count * expert, "expert", experts.top_k * expert)]
    if experts.expert_bias:
        biases = (shape.ffn_matrices - 1) * experts.width + read
        parts += [
            ParameterPart("routed experts' biases", count * biases, "expert", experts.top_k * biases, matrix=False)
        ]
    if experts.latent_width:
        parts += [ParameterPart("latent projections", 2 * hidden * experts.latent_width, "replicated")]
    parts += [ParameterPart(ROUTER, count * hidden, "replicated")]
    if experts.router_bias:
        parts += [ParameterPart("router bias", count, "replicated", matrix=False)]
    if experts.shared_width:
        parts += _ffn_parts(shape, experts.shared_width, "shared experts", bias=shape.bias_all)
    if experts.shared_gate:
        parts += [ParameterPart("shared experts' gate", hidden, "replicated")]
    return tuple(parts)


def norm_size(shape: ModelShape, width: float) -> int:
    """Return the number of parameters of a norm: a weight per number, and the bias of LayerNorm."""
    return round(width * (2 if shape.norm == "layer" else 1))


def padded_vocabulary(vocabulary: int, tensor: int = 1, *, multiple: int = 128) -> int:
    """Return the rows of embedding and head in Megatron-LM: a multiple of 128 on each rank of the tensor group.

    Source: Megatron-LM, ``--make-vocab-size-divisible-by``.
    """
    step = multiple * tensor
    return -(-vocabulary // step) * step


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFlops:
    """Forward FLOPs of one token through the whole model, 2 per multiply-add; the tensor group and all experts together.

    Attributes
    ----------
    attention
        Projections of queries, keys, values and outputs, of an indexer, and of mixers in the place of attention.
    core
        Scores and values, scores of an indexer, and recurrences.
    ffn
        Dense FFNs, top-k and shared experts, and the mixing of residual streams.
    head
        Head of the model and of each MTP layer.
    mtp
        MTP layers without their heads.
    router
        Routers of all layers. No sum includes them, because Megatron-LM does not count them; 0.2 to 0.5 % of published
        models.
    """

    attention: float
    core: float
    ffn: float
    head: float
    mtp: float = 0.0
    router: float = 0.0

    @property
    def forward(self) -> float:
        """Sum of all parts except the router."""
        return self.attention + self.core + self.ffn + self.head + self.mtp

    @property
    def training(self) -> float:
        """FLOPs of forward and backward: three forwards. Recomputation is not counted."""
        return 3.0 * self.forward

    @property
    def adapting(self) -> float:
        """FLOPs of forward and backward if only adapters are trained: products have no weight gradients."""
        return 2.0 * self.forward + self.core


def token_flops(shape: ModelShape, sequence: int, *, causal: bool = True, mtp: bool = True) -> TokenFlops:
    """Return the FLOPs of one token.

    An M x N matrix costs 2 M N per token; scores and values of a layer cost 2 x keys x heads x (score + value dimension). An
    embedding is a gather and costs nothing; norms, activation functions and the loss are not counted.

    Parameters
    ----------
    sequence
        Sequence length s in tokens.
    causal
        Whether keys hidden by the causal mask or a sliding window are left out: s/2 keys per query without a window (kappa =
        1/2), as Megatron-Bridge counts. False counts s keys in every layer (kappa = 1), as arXiv 2104.04473 equation 3,
        arXiv 2205.05198 appendix A and most papers do.
    mtp
        Whether MTP layers are trained.

    Notes
    -----
    A GPT model takes 72 L h^2 (1 + s / (6 h) + V / (12 h L)) with ``causal`` False (arXiv 2205.05198 equation 7,
    divided by the tokens). Latent attention: arXiv 2405.04434 section 2.1. MTP: arXiv 2412.19437 section 2.2.
    """
    attention = core = ffn = 0.0
    for form, count in Counter(shape.forms).items():
        attention += count * _products(_mixer_parts(shape, form))
        core += count * mixing_flops(shape, form, sequence, causal=causal)
        ffn += count * _products((*_form_ffn_parts(shape, form), *_stream_parts(shape, form)))
    head = 2.0 * shape.hidden * shape.vocabulary
    depth = shape.mtp_layers * shape.mtp_passes if mtp else 0
    further = 0.0
    if depth:
        layer = _products(form_parts(shape, shape.mtp_form))
        layer += mixing_flops(shape, shape.mtp_form, sequence, causal=causal)
        further = depth * (layer + 4.0 * shape.hidden * shape.hidden)
    return TokenFlops(
        attention=attention,
        core=core,
        ffn=ffn,
        head=head * (1 + depth),
        mtp=further,
        router=2.0 * shape.hidden * shape.experts.count * (shape.moe_layers + depth) if shape.experts else 0.0,
    )


def mixing_flops(shape: ModelShape, form: LayerForm, sequence: int, *, causal: bool = True) -> float:
    """Return the FLOPs of one token's mixing with others in the forward of a layer: scores and values, or a recurrence.

    An indexer scores every key that the mask allows, with the weighted sum of its heads (arXiv 2512.02556 equation 1).
    """
    if not form.mixer:
        return 0.0
    mixer = shape.mixer(form.mixer)
    if mixer is not None:
        return mixer.token_flops(shape.hidden, sequence, causal=causal)
    shape, sparse = shape.heads_of(form), shape.sparse
    if sparse is None:
        return core_flops(shape, shape.keys_seen(sequence, windowed=form.mixer == WINDOWED, causal=causal))
    indexed = 2.0 * shape.keys_seen(sequence, causal=causal) * sparse.index_heads * (sparse.index_dim + 1)
    return core_flops(shape, sparse.keys_seen(sequence)) + (indexed if form.mixer != SHARED else 0.0)


def core_flops(shape: ModelShape, keys: float) -> float:
    """Return the FLOPs of one token's scores with ``keys`` keys and their weighted values, in the forward of one layer."""
    return 2.0 * keys * shape.heads * (shape.score_dim + shape.value_dim)


def _products(parts: tuple[ParameterPart, ...]) -> float:
    """Return the FLOPs of a token's products with the matrices of these parts, without the router."""
    return sum(2.0 * part.active for part in parts if part.matrix and part.name != ROUTER)


def attention_share_of(name: str, tokens: float) -> float:
    """Return the share of a layer's forward FLOPs that grows with the square of the length, at a length in tokens.

    Windowed attention and recurrences are linear in the length and do not count.
    """
    shape, length = model(name), max(round(tokens), 1)
    here, beyond = token_flops(shape, length, mtp=False), token_flops(shape, 2 * length, mtp=False)
    return (beyond.core - here.core) / (here.attention + here.core + here.ffn)
