"""A small GPT, to try things with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeplan.runtime.model import Model, cross_entropy


@dataclass(frozen=True)
class GPT:
    """Sizes of a small GPT: sequences of ``length`` tokens, ``microbatch`` of them at once."""

    blocks: int
    width: int
    heads: int
    length: int
    vocabulary: int
    microbatch: int

    def model(self, name: str) -> Model:
        """The model: embedding, blocks and head, each a layer."""
        block = 12 * self.width**2 + 2 * self.length * self.width
        return Model(
            name=name,
            layers=(self.embedding, *(self.block,) * self.blocks, self.head),
            batch=self.batch,
            loss=cross_entropy,
            weights=(0.02 * block, *(float(block),) * self.blocks, float(self.width * self.vocabulary)),
        )

    def embedding(self) -> nn.Module:
        """The first layer."""
        return Embedding(self)

    def block(self) -> nn.Module:
        """A layer in the middle."""
        return Block(self)

    def head(self) -> nn.Module:
        """The last layer."""
        return nn.Sequential(nn.LayerNorm(self.width), nn.Linear(self.width, self.vocabulary, bias=False))

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sequences that count up in steps from 1 to 3, and the token that follows each: something to learn."""
        shape = (self.microbatch, 1)
        start = torch.randint(self.vocabulary, shape, generator=generator)
        step = torch.randint(1, 4, shape, generator=generator)
        tokens = (start + step * torch.arange(self.length + 1)) % self.vocabulary
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


class Embedding(nn.Module):
    """Tokens and positions as vectors."""

    def __init__(self, size: GPT) -> None:
        super().__init__()
        self.token = nn.Embedding(size.vocabulary, size.width)
        self.position = nn.Embedding(size.length, size.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape (microbatch, length) to (microbatch, length, width)."""
        return self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))


class Block(nn.Module):
    """Causal attention and a perceptron, each behind a layer norm and beside a residual path."""

    def __init__(self, size: GPT) -> None:
        super().__init__()
        width = size.width
        self.heads = size.heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Shape (microbatch, length, width) to the same."""
        x = x + self._attention(self.norm_attention(x))
        return x + self.mlp(self.norm_mlp(x))

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))
