"""Linear attention with the delta rule: Gated DeltaNet (arXiv 2412.06464) and Kimi Delta Attention (arXiv 2510.26692)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeplan.extensions.planning.workload.mixers.mixer import ChunkProduct, Mixer, MixerSizes, Projection


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDelta(Mixer):
    """Gated DeltaNet: a state that forgets by a scalar per head and overwrites what its key read before (section 3).

    Kept are the projections' outputs and the recurrence's output, as the kernels of flash-linear-attention do; the backward
    recomputes the states of chunks. Chunks have 64 tokens there.

    Attributes
    ----------
    key_heads, key_dim
        Number and dimensions of query and key heads.
    value_heads, value_dim
        Number and dimensions of value heads, each with a state.
    kernel
        Width of the short convolution in tokens.
    """

    kind: ClassVar[str] = "gated-delta"
    title: ClassVar[str] = "Gated DeltaNet"

    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    kernel: int = 4

    def sizes(self, hidden: int) -> MixerSizes:
        """Return the sizes; the FLOPs are those of Megatron-LM (``gdn_layer_flops``): the convolution, and four products."""
        width = self.value_heads * self.value_dim
        channels = 2 * self.key_heads * self.key_dim + width
        return MixerSizes(
            heads=self.key_heads,
            width=width,
            projections=(
                Projection(name="query, key, value and gate", columns=channels + width),
                Projection(name="decay and learning rate", columns=2 * self.value_heads),
            ),
            products=delta_products(self.chunk, self.value_heads, self.key_dim, self.value_dim),
            flops=8.0 * width * self.key_dim + 2.0 * channels * self.kernel,
            channels=channels,
            taps=self.kernel,
            state=width * self.key_dim,
            split=2 * self.value_heads,
            replicated=self.value_dim,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiDelta(Mixer):
    """Kimi Delta Attention: the gated delta rule with a decay per channel, and low-rank gates (section 3).

    Attributes
    ----------
    delta_heads, head_dim
        Number and dimensions of heads, for keys and for values.
    kernel
        Width of the short convolution in tokens.
    full_decay, full_gate
        Whether the decay and the output gate are one full projection each, instead of two of low rank.
    """

    kind: ClassVar[str] = "kimi-delta"
    title: ClassVar[str] = "Kimi Delta Attention"

    delta_heads: int
    head_dim: int
    kernel: int = 4
    full_decay: bool = False
    full_gate: bool = False

    def sizes(self, hidden: int) -> MixerSizes:
        """Return the sizes; the FLOPs are those of the gated delta rule."""
        low, wide, heads = self.head_dim, self.delta_heads * self.head_dim, self.delta_heads

        def gate(name: str, full: bool) -> tuple[Projection, ...]:
            if full:
                return (Projection(name=name, columns=wide),)
            down = Projection(name=f"{name} down", columns=low, split=False)
            return (down, Projection(name=f"{name} up", columns=wide, inner=low))

        return MixerSizes(
            heads=heads,
            width=wide,
            projections=(
                Projection(name="query, key, value", columns=3 * wide),
                *gate("decay", self.full_decay),
                Projection(name="learning rate", columns=heads),
                *gate("gate", self.full_gate),
            ),
            products=delta_products(self.chunk, heads, low, low),
            flops=8.0 * wide * low + 2.0 * 3 * wide * self.kernel,
            channels=3 * wide,
            taps=self.kernel,
            state=wide * low,
            split=heads + wide,
            replicated=low,
        )


def delta_products(chunk: int, heads: int, key_dim: int, value_dim: int) -> tuple[ChunkProduct, ...]:
    """Return the products of the chunkwise delta rule (arXiv 2412.06464 section 3.3)."""

    def product(name: str, rows: int, columns: int, inner: int, *, again: bool = True) -> ChunkProduct:
        return ChunkProduct(name=name, rows=rows, columns=columns, inner=inner, heads=heads, again=again)

    return (
        product("key overlaps", chunk, chunk, key_dim),
        product("transformed keys", chunk, key_dim, chunk),
        product("transformed values", chunk, value_dim, chunk),
        product("values read by keys", chunk, value_dim, key_dim),
        product("chunk states", key_dim, value_dim, chunk),
        product("chunk scores", chunk, chunk, key_dim, again=False),
        product("chunk output", chunk, value_dim, chunk, again=False),
        product("state output", chunk, value_dim, key_dim, again=False),
    )
