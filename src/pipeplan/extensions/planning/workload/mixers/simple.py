"""Mixers without the delta rule: lightning attention and short convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeplan.extensions.planning.workload.mixers.mixer import Mixer, MixerSizes, Projection, Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class LightningAttention(Mixer):
    """Linear attention with a fixed decay per head, a norm and an output gate (MiniMax-01, arXiv 2501.08313 section 2.2).

    Attributes
    ----------
    linear_heads, head_dim
        Number and dimensions of heads.
    """

    kind: ClassVar[str] = "lightning"
    title: ClassVar[str] = "lightning attention"
    chunk: ClassVar[int] = 256

    linear_heads: int
    head_dim: int

    def sizes(self, hidden: int) -> MixerSizes:
        """Return the sizes; the FLOPs are the state's update and its product with the query (section 2.2).

        Kernels are those of Lightning Attention-2 (arXiv 2401.04658 section 3): chunks alone, their states in 32 bits, the
        sums of states, and the output from these.
        """
        chunk, heads, dim = self.chunk, self.linear_heads, self.head_dim
        width = heads * dim
        return MixerSizes(
            heads=heads,
            width=width,
            projections=(
                Projection(name="query, key, value", columns=3 * width),
                Projection(name="gate", columns=width),
            ),
            recurrence=Recurrence(
                flops=2.0 * width * chunk + 4.0 * width * dim,
                flops_again=2.0 * width * dim,
                forward_bytes=18.0 * width + 16.0 * width * dim / chunk,
                backward_bytes=40.0 * width + 32.0 * width * dim / chunk,
            ),
            flops=4.0 * width * dim,
            state=width * dim,
            split=width,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution(Mixer):
    """Gated short convolution (LFM2, arXiv 2511.23404 section 2): two gates around a causal convolution.

    Attributes
    ----------
    filters
        Number of channels.
    kernel
        Width of the convolution in tokens.
    bias
        Whether convolution and projections have biases.
    """

    kind: ClassVar[str] = "short-convolution"
    title: ClassVar[str] = "short convolution"

    filters: int
    kernel: int = 3
    bias: bool = False

    def sizes(self, hidden: int) -> MixerSizes:
        """Return the sizes; the FLOPs are 2 for each tap of the convolution."""
        return MixerSizes(
            heads=self.filters,
            width=self.filters,
            projections=(Projection(name="two gates and input", columns=3 * self.filters),),
            flops=2.0 * self.filters * self.kernel,
            channels=self.filters,
            taps=self.kernel,
            split=4 * self.filters if self.bias else 0,
            replicated=hidden if self.bias else 0,
        )
