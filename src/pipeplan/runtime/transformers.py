"""Small GPT models to try things with, and layers of Llama 3's shape to measure.

Dubey et al.: The Llama 3 Herd of Models, 2024, table 3.
"""

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
        """Build the first layer."""
        return Embedding(self)

    def block(self) -> nn.Module:
        """Build a layer in the middle."""
        return GPTBlock(self)

    def head(self) -> nn.Module:
        """Build the last layer."""
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


class GPTBlock(nn.Module):
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


@dataclass(frozen=True)
class Llama:
    """Sizes: sequences of ``length`` tokens, ``microbatch`` of them at once."""

    layers: int
    width: int
    heads: int
    key_value_heads: int
    hidden: int
    vocabulary: int
    length: int
    microbatch: int = 1
    rope_theta: float = 500_000.0

    def model(self, name: str) -> Model:
        """The model: embedding, layers and head apart."""
        return Model(
            name=name,
            layers=(self.embedding, *(self.layer,) * self.layers, self.head),
            batch=self.batch,
            loss=cross_entropy,
            weights=(0.05, *(1.0,) * self.layers, 2.0),
            dtype="bfloat16",
        )

    def embedding(self) -> nn.Module:
        """Build the embedding of tokens."""
        return nn.Embedding(self.vocabulary, self.width)

    def layer(self) -> nn.Module:
        """Build a transformer layer."""
        return LlamaLayer(self)

    def head(self) -> nn.Module:
        """The final norm and the projection to the vocabulary."""
        return nn.Sequential(nn.RMSNorm(self.width), nn.Linear(self.width, self.vocabulary, bias=False))

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return random tokens, and random targets."""
        shape = (2, self.microbatch, self.length)
        tokens, targets = torch.randint(self.vocabulary, shape, generator=generator)
        return tokens, targets


LLAMA_3_8B = Llama(layers=32, width=4096, heads=32, key_value_heads=8, hidden=14336, vocabulary=128_256, length=8192)


class LlamaLayer(nn.Module):
    """Attention and a gated perceptron, each behind an RMS norm and beside a residual path."""

    def __init__(self, size: Llama) -> None:
        super().__init__()
        width, head = size.width, size.width // size.heads
        self.size = size
        self.norm_attention, self.norm_mlp = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, size.key_value_heads * head, bias=False)
        self.value = nn.Linear(width, size.key_value_heads * head, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, size.hidden, bias=False)
        self.up = nn.Linear(width, size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, width, bias=False)
        turns = _turns(size, head)
        self.register_buffer("cosine", turns.cos(), persistent=False)
        self.register_buffer("sine", turns.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (microbatch, length, width) to the same."""
        x = x + self._attention(self.norm_attention(x))
        hidden = self.norm_mlp(x)
        return x + self.down(nn.functional.silu(self.gate(hidden)) * self.up(hidden))

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape

        def split(projected: Tensor) -> Tensor:
            return projected.view(batch, length, -1, width // self.size.heads).transpose(1, 2)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        mixed = nn.functional.scaled_dot_product_attention(
            self._turned(query), self._turned(key), value, is_causal=True, enable_gqa=True
        )
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def _turned(self, x: Tensor) -> Tensor:
        """Rotary positions: each pair of components turned by its position's angle."""
        first, second = x.chunk(2, dim=-1)
        cosine, sine = self.cosine, self.sine
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def _turns(size: Llama, head: int) -> Tensor:
    """The angle of each position and pair of components, shape (length, head / 2)."""
    frequency = size.rope_theta ** (-torch.arange(0, head, 2, dtype=torch.float32) / head)
    return torch.outer(torch.arange(size.length, dtype=torch.float32), frequency)
