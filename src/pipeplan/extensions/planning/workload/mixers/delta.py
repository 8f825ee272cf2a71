"""Linear attention with the delta rule: Gated DeltaNet (arXiv 2412.06464) and Kimi Delta Attention (arXiv 2510.26692)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeplan.extensions.planning.workload.mixers.mixer import Mixer, MixerSizes, Projection, Recurrence


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
            recurrence=delta_rule(self.chunk, self.value_heads, self.key_dim, self.value_dim),
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
            recurrence=delta_rule(self.chunk, heads, low, low, decays=wide),
            flops=8.0 * wide * low + 2.0 * 3 * wide * self.kernel,
            channels=3 * wide,
            taps=self.kernel,
            state=wide * low,
            split=heads + wide,
            replicated=low,
        )


def delta_rule(chunk: int, heads: int, key_dim: int, value_dim: int, decays: int = 0) -> Recurrence:
    """Return the kernels of flash-linear-attention's chunkwise delta rule (arXiv 2412.06464 section 3.3).

    F: normalized queries and keys, copied for every value head; overlaps of keys and their triangular inverse; transformed
    keys and values; states of chunks with the values that keys read; output. I repeats the transformed tensors and the
    states, and takes the gradients in reverse order. With 32-bit ``decays`` of single channels, every kernel reads them, and
    I reads its operands again for each of four blocks of a chunk (``kda/chunk_intra.py``).
    """
    keys, values = heads * key_dim, heads * value_dim
    inverse, states = heads * chunk, keys * value_dim / chunk
    with_state = 2.0 * keys * value_dim
    return Recurrence(
        flops=2.0 * chunk * (3 * keys + 2 * values) + 3 * with_state,
        flops_again=2.0 * chunk * (keys + values) + 2 * with_state,
        forward_bytes=22 * keys + 16 * values + 4 * states + 4 * inverse + 20 * decays,
        backward_bytes=50 * keys + 34 * values + 8 * states + 4 * inverse + 100 * decays,
    )
