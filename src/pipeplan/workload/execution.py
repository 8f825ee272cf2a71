"""How one rank runs its layers: the degrees that split them, the numbers' format, and what is run again or fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Precision = Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4"]
"""Of the matrix products; activations between them, norms and attention stay in 16 bits."""

AttentionKernel = Literal["flash", "unfused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The settings that decide, beside the model's shape, what one microbatch costs on one rank.

    Attributes
    ----------
    microbatch_size, sequence
        Sequences in a microbatch (b), and tokens in a sequence (s).
    tensor, context, expert, expert_tensor
        The degrees t, c, e and etp.
    sequence_parallel
        Whether what tensor parallelism replicates is split over the sequence (arXiv 2205.05198 section 4.2.2).
    precision
        Of the matrix products.
    attention
        ``flash``: scores never reach memory; ``unfused``: they are written, softmaxed and read.
    dropout
        Whether there is any: masks are then kept.
    fused_loss
        Whether the cross entropy makes its gradient in place (no second fp32 copy of the logits).
    loss_bytes
        Of all copies of one logit where the loss holds most: its 16-bit form, 32-bit ones, gradients. None: 2 of a fused
        loss; 6 of another, whose 32-bit probabilities become their gradient in place (Megatron Core).
    fused_activation
        Whether the FFN's activation is one kernel that keeps its inputs only.
    small_inputs
        Whether products in 8 or 4 bits keep their inputs in that format (Transformer Engine), not in 16 bits (torchao).
    small_activations
        Whether an FFN's activation keeps its inputs in the products' format, too, where that has 8 or 4 bits.
    fp32_gradients
        Whether weight gradients are accumulated in 32 bits (Megatron's main gradients).
    recompute
        Which modules are computed again in the backward: names of :data:`pipeplan.workload.RECOMPUTE`; ``full`` is the
        whole layer.
    offload
        Which share of the layer's kept bytes is moved to the host between F and I, 0 to 1.
    context_method
        ``ring``: keys and values go round (arXiv 2310.01889); ``all_to_all``: heads are exchanged for sequence around the
        core (Ulysses, arXiv 2309.14509).
    dispatch_bytes
        Of a number that is sent to experts: 2, or 1 where it is sent in 8 bits.
    imbalance
        Most tokens of an expert rank over their mean; 1 where routing is balanced.
    """

    microbatch_size: int = 1
    sequence: int = 4096
    tensor: int = 1
    context: int = 1
    expert: int = 1
    expert_tensor: int = 1
    sequence_parallel: bool = False
    precision: Precision = "bf16"
    attention: AttentionKernel = "flash"
    dropout: bool = False
    fused_loss: bool = True
    loss_bytes: float | None = None
    fused_activation: bool = True
    small_inputs: bool = True
    small_activations: bool = False
    fp32_gradients: bool = True
    recompute: frozenset[str] = frozenset()
    offload: float = 0.0
    context_method: Literal["ring", "all_to_all"] = "ring"
    dispatch_bytes: float = 2.0
    imbalance: float = 1.0

    @property
    def tokens(self) -> float:
        """n: of a microbatch on a rank of the context group."""
        return self.microbatch_size * self.sequence / self.context
