"""Share of a model's FLOPs that grows with the square of the length."""

from __future__ import annotations

from pipeplan.extensions.planning.workload.parameters import token_flops
from pipeplan.extensions.planning.workload.short_forms import model as model_named


def attention_share_of(model: str, tokens: float) -> float:
    """Return the share of a layer's forward FLOPs that grows with the square of the length, at a length in tokens.

    Windowed attention and recurrences are linear in the length and do not count.
    """
    shape, length = model_named(model), max(round(tokens), 1)
    here, beyond = token_flops(shape, length, mtp=False), token_flops(shape, 2 * length, mtp=False)
    return (beyond.core - here.core) / (here.attention + here.core + here.ffn)
