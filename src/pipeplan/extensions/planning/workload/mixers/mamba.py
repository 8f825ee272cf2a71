"""Mamba-2: state-space layers (Dao and Gu, arXiv 2405.21060)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeplan.extensions.planning.workload.mixers.mixer import Mixer, MixerSizes, Projection, Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2(Mixer):
    """State-space layer with a scalar decay per head, computed chunk by chunk (section 6, state-space duality).

    Kept are the output of the input projection and that of the scan, as ``mamba_split_conv1d_scan_combined`` of the authors'
    package does; the backward recomputes the convolution and the chunks' states. Chunks have 128 tokens, as in Megatron-LM's
    ``MambaMixer``.

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
    chunk: ClassVar[int] = 128

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
        heads, state, dim = self.state_heads, self.state_dim, self.head_dim
        width = heads * dim
        channels = width + 2 * self.groups * state
        columns = width + channels + heads
        norm = width if self.gated_norm else 0
        return MixerSizes(
            heads=heads,
            width=width,
            projections=(Projection(name="gate, input, B, C and step", columns=columns),),
            recurrence=self._recurrence(),
            flops=7.0 * width * state,
            channels=channels,
            taps=self.kernel,
            state=width * state,
            split=3 * heads + norm + self.conv_bias * channels + self.bias * columns,
            replicated=self.bias * hidden,
        )

    def _recurrence(self) -> Recurrence:
        """Return the kernels of ``ssd_combined.py`` with what each reads and writes; states and scores have 32 bits.

        F: states of chunks (x, B), their passing, scores of chunks (C, B), and the scan (scores, x, C, states; output). The
        scan skips the masked half. I repeats all but the scan; then gradients of the states (C, output gradient), their
        passing, of x, B and C from them, of the scores and of B and C from these, and of the decay.
        """
        inner = self.state_heads * self.head_dim
        group, scores = self.groups * self.state_dim, self.groups * self.chunk
        states = inner * self.state_dim / self.chunk
        by_state = 2.0 * inner * self.state_dim
        of_scores = 2.0 * self.chunk * group
        return Recurrence(
            flops=2 * by_state + inner * self.chunk + of_scores,
            flops_again=by_state + of_scores + inner * self.chunk,
            forward_bytes=6 * inner + 8 * group + 12 * states + 8 * scores,
            backward_bytes=22 * inner + 54 * group + 34 * states + 32 * scores,
        )
