"""Mamba-2: state-space layers (Dao and Gu, arXiv 2405.21060)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeplan.extensions.planning.workload.mixers.mixer import ChunkProduct, Mixer, MixerSizes, Projection


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2(Mixer):
    """State-space layer with a scalar decay per head, computed chunk by chunk (section 6, state-space duality).

    Kept are the output of the input projection and that of the scan, as ``mamba_split_conv1d_scan_combined`` of the authors'
    package does; the backward recomputes the convolution and the chunks' states.

    Attributes
    ----------
    state_heads, head_dim
        Number and dimensions of heads; together they are the inner width.
    groups
        Groups of heads that share the projections B and C.
    state_dim
        Dimensions N of the state per channel.
    kernel
        Width of the short convolution in tokens.
    conv_bias, bias
        Whether the convolution and the two projections have biases.
    gated_norm
        Whether a norm with the inner width follows the scan.
    """

    kind: ClassVar[str] = "mamba-2"
    title: ClassVar[str] = "Mamba-2"
    chunk: ClassVar[int] = 256

    state_heads: int
    head_dim: int
    groups: int
    state_dim: int
    kernel: int = 4
    conv_bias: bool = True
    bias: bool = False
    gated_norm: bool = True

    def sizes(self, hidden: int) -> MixerSizes:
        """Return the sizes; the FLOPs are those of Megatron-LM (``mamba_layer_flops``), 7 for each number of the state."""
        chunk, heads, state, dim = self.chunk, self.state_heads, self.state_dim, self.head_dim
        width = heads * dim
        channels = width + 2 * self.groups * state
        columns = width + channels + heads
        norm = width if self.gated_norm else 0
        return MixerSizes(
            heads=heads,
            width=width,
            projections=(Projection(name="gate, input, B, C and step", columns=columns),),
            products=(
                ChunkProduct(name="chunk scores", rows=chunk, columns=chunk, inner=state, heads=self.groups),
                ChunkProduct(name="chunk states", rows=dim, columns=state, inner=chunk, heads=heads),
                ChunkProduct(name="chunk output", rows=chunk, columns=dim, inner=chunk, heads=heads, again=False),
                ChunkProduct(name="state output", rows=chunk, columns=dim, inner=state, heads=heads, again=False),
            ),
            flops=7.0 * width * state,
            channels=channels,
            taps=self.kernel,
            state=width * state,
            split=3 * heads + norm + self.conv_bias * channels + self.bias * columns,
            replicated=self.bias * hidden,
        )
