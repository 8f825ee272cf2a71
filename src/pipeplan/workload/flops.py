"""FLOPs that a model's training needs for a token: what MFU and TFLOP/s are counted with."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.workload.parameters import ROUTER, ParameterPart, attention_parts, layer_parts
from pipeplan.workload.shape import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFlops:
    """FLOPs of one token's forward through the whole model, 2 a multiply-add; the tensor group and all experts together.

    Attributes
    ----------
    attention
        Projections of queries, keys, values and outputs.
    core
        Scores and values.
    ffn
        Dense FFNs, the top-k and shared experts.
    head
        The model's, and that of each MTP layer.
    mtp
        What MTP layers add beside their heads.
    router
        Of all layers. It is in none of the sums, as Megatron-LM does not count it; 0.2 to 0.5 % of published models.
    """

    attention: float
    core: float
    ffn: float
    head: float
    mtp: float = 0.0
    router: float = 0.0

    @property
    def forward(self) -> float:
        """The sum of all parts but the router."""
        return self.attention + self.core + self.ffn + self.head + self.mtp

    @property
    def training(self) -> float:
        """Forward and backward: three forwards. What is computed again is no work of the model's."""
        return 3.0 * self.forward


def token_flops(shape: ModelShape, sequence: int, *, causal: bool = True, mtp: bool = True) -> TokenFlops:
    """Return the FLOPs of one token.

    A matrix of M x N costs 2 M N a token, scores and values of a layer 2 x keys x heads x (score and value dimension). An
    embedding is a gather and costs nothing; norms, activations and the loss are not counted.

    Parameters
    ----------
    sequence
        s, tokens.
    causal
        Whether keys that the causal mask or a sliding window hides are left out: s/2 keys a query without a window
        (kappa = 1/2), as Megatron-Bridge counts. False counts s keys in every layer (kappa = 1), as arXiv 2104.04473
        equation 3, arXiv 2205.05198 appendix A and most papers do.
    mtp
        Whether MTP layers are trained.

    Notes
    -----
    A model of GPT's kind takes 72 L h^2 (1 + s / (6 h) + V / (12 h L)) with ``causal`` False (arXiv 2205.05198 equation 7,
    divided by the tokens). Latent attention: arXiv 2405.04434 section 2.1. MTP: arXiv 2412.19437 section 2.2.
    """
    windowed = shape.windowed_layers
    whole = core_flops(shape, shape.keys_seen(sequence, causal=causal))
    core = windowed * core_flops(shape, shape.keys_seen(sequence, windowed=True, causal=causal))
    core += (shape.layers - windowed) * whole
    attention = _products(attention_parts(shape))
    ffn = sum(
        layers * (_products(layer_parts(shape, experts=experts)) - attention)
        for experts, layers in ((False, shape.dense_layers), (True, shape.moe_layers))
        if layers
    )
    head = 2.0 * shape.hidden * shape.vocabulary
    depth = shape.mtp_layers if mtp else 0
    further = 0.0
    if depth:
        layer = _products(layer_parts(shape, experts=shape.experts is not None)) + whole
        further = depth * (layer + 4.0 * shape.hidden * shape.hidden)
    return TokenFlops(
        attention=shape.layers * attention,
        core=core,
        ffn=ffn,
        head=head * (1 + depth),
        mtp=further,
        router=2.0 * shape.hidden * shape.experts.count * (shape.moe_layers + depth) if shape.experts else 0.0,
    )


def core_flops(shape: ModelShape, keys: float) -> float:
    """One token's scores with ``keys`` keys, and the mean of their values, in the forward of one layer."""
    return 2.0 * keys * shape.heads * (shape.score_dim + shape.value_dim)


def _products(parts: tuple[ParameterPart, ...]) -> float:
    """A token's products with the matrices among some parts, the router's apart."""
    return sum(2.0 * part.active for part in parts if part.matrix and part.name != ROUTER)
