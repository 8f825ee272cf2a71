"""A small language model whose head is heavy: twice a block's work, and the logits hold more than a block's activations.

    pipeplan profile interleaved-1f1b -p 2 --model examples.heavy_head:model --layout 3,2,2,3 -o heavy-head.yaml

``benchmarks/search_pays.py`` searches a schedule for it, and docs/explanation/search.md shows what came of it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeplan.runtime import Model

BLOCKS, WIDTH, HEADS, LENGTH, VOCABULARY, MICROBATCH = 8, 256, 4, 256, 6144, 2


class Embedding(nn.Module):
    """Tokens and positions as vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape (microbatch, length) to (microbatch, length, width)."""
        return self.token(tokens) + self.position.weight


class Block(nn.TransformerEncoderLayer):
    """Causal attention and a perceptron."""

    def __init__(self) -> None:
        super().__init__(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (microbatch, length, width) to the same."""
        return super().forward(x, src_mask=self.mask, is_causal=True)


def head() -> nn.Module:
    """The norm and the output layer."""
    return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False))


def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random tokens, and the ones that follow them."""
    tokens = torch.randint(VOCABULARY, (MICROBATCH, LENGTH + 1), generator=generator)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean cross entropy of all tokens."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def model() -> Model:
    """The embedding, eight blocks and the head, each a layer."""
    return Model(name="heavy-head", layers=(Embedding, *(Block,) * BLOCKS, head), batch=batch, loss=loss)
