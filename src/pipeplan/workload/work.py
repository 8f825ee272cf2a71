"""Work"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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


Group = Literal["tensor", "context", "expert", "expert_tensor"]
"""Which ranks take part in a layer's collective."""

Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """A matrix product of (rows, inner) with (inner, columns); ``copies`` equal ones in one kernel.

    Attributes
    ----------
    accumulates
        Whether the result is added to one in 32 bits (weight gradients).
    """

    name: str
    rows: float
    columns: float
    inner: float
    precision: Precision = "bf16"
    copies: int = 1
    accumulates: bool = False

    @property
    def flops(self) -> float:
        """FLOPs, 2 a multiply-add."""
        return 2.0 * self.rows * self.columns * self.inner * self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedGemm:
    """Products of ``groups`` experts with their share of ``rows`` tokens each, in one kernel.

    Of a weight gradient, ``rows`` is the inner dimension: ``weight_gradient`` says so.
    """

    name: str
    groups: float
    rows: float
    columns: float
    inner: float
    precision: Precision = "bf16"
    accumulates: bool = False
    weight_gradient: bool = False

    @property
    def flops(self) -> float:
        """FLOPs of all groups, 2 a multiply-add."""
        return 2.0 * self.rows * self.columns * self.inner


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCore:
    """Scores, softmax and values of all heads of a rank.

    Attributes
    ----------
    queries
        Tokens that ask, of all the sequences of the microbatch together.
    keys
        How many keys a query sees in the mean: s/2 of a causal kernel that skips the masked half, s of one that does not.
    score_dim, value_dim
        Per head.
    fused
        Whether one kernel does it all; else the scores' memory passes stand beside it.
    """

    name: str
    queries: float
    keys: float
    heads: float
    kv_heads: float
    score_dim: float
    value_dim: float
    fused: bool = True
    backward: bool = False

    @property
    def flops(self) -> float:
        """Forward: 2 products; backward: 4, and one more where scores are computed again (fused)."""
        score, value = self.score_dim, self.value_dim
        dims = score + value if not self.backward else (2 + self.fused) * score + 2 * value
        return 2.0 * self.queries * self.keys * self.heads * dims


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPass:
    """Elementwise work, bound by memory: bytes read and written together, in ``kernels`` kernels."""

    name: str
    bytes: float
    kernels: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """A collective over a group of ranks.

    Attributes
    ----------
    bytes
        Of the whole buffer on a rank: what an all-reduce reduces, what an all-gather ends with, what a reduce-scatter
        begins with, what a rank hands to an all-to-all (its own share with it), what a ring passes on in a step.
    steps
        Of a ring.
    nodes_a_token
        Of an all-to-all with node-limited routing: how many nodes each token goes to, and ``copies`` how many experts.
    beside
        The work that it can run beside where the software overlaps them: ``gemm`` (the product next to it), ``core`` (ring
        attention) or ``batch`` (the other microbatch of an overlapped pair). Empty: nothing.
    """

    name: str
    operation: Operation
    group: Group
    bytes: float
    steps: int = 1
    nodes_a_token: int | None = None
    copies: int = 1
    beside: Literal["", "gemm", "core", "batch"] = ""


Work = Gemm | GroupedGemm | AttentionCore | MemoryPass | Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A tensor that a forward keeps for its backward.

    Attributes
    ----------
    name
        Such as ``attention input``.
    bytes
        On this rank.
    until
        Which half of the backward frees it: I, or W where the weight gradient needs it.
    gradient_bytes
        Of the output gradient that I leaves for W in its place or beside it (a split backward).
    """

    name: str
    bytes: float
    until: Literal["I", "W"] = "I"
    gradient_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """The work and the savings of computing a module again in the backward.

    Attributes
    ----------
    work
        Run once more, before I.
    drops
        Names of the kept tensors that are not kept.
    adds
        What is kept in their place.
    """

    work: tuple[Work, ...]
    drops: frozenset[str]
    adds: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankParameters:
    """Parameters of a layer on one rank.

    Attributes
    ----------
    dense
        Whose gradients all replicas of the data and context groups reduce: split over t, or the same on its ranks.
    expert
        Of routed experts, split over e and etp; replicated over the expert data group.
    """

    dense: int = 0
    expert: int = 0


LayerKind = Literal["embedding", "dense", "moe", "mtp", "head", "loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """One layer on one rank: what F, I and W do, what is kept, and its parameters.

    Attributes
    ----------
    kind, name
        What it is.
    count
        How many such layers follow one another.
    forward, backward_input, backward_weight
        What each does for one microbatch.
    kept
        What F keeps.
    transient_bytes
        What its backward holds at most beside all that is kept (gradients of activations, what it computes again).
    parameters
        On this rank.
    embedding_parameters
        Of the input embedding, which it reads too (a tied head, MTP): a copy where its rank does not hold the embedding.
    recomputable
        By module, what computing it again takes and saves.
    """

    kind: LayerKind
    name: str
    forward: tuple[Work, ...]
    backward_input: tuple[Work, ...]
    backward_weight: tuple[Work, ...]
    kept: tuple[Kept, ...] = ()
    transient_bytes: float = 0.0
    parameters: RankParameters = RankParameters()
    recomputable: Mapping[str, Recompute] = field(default_factory=dict, compare=False)
    count: int = 1
    embedding_parameters: int = 0

    @property
    def kept_bytes(self) -> float:
        """Bytes held from F on."""
        return sum(tensor.bytes for tensor in self.kept)

    @property
    def bytes_until_weight(self) -> float:
        """Held between I and W of a split backward: what only W frees, and the output gradients that it needs."""
        return sum((tensor.bytes if tensor.until == "W" else 0.0) + tensor.gradient_bytes for tensor in self.kept)


Masters = Literal["beside", "only"]
"""Parameters in 32 bits, which the optimizer updates: ``beside`` those in 16 that products read (Megatron), or ``only``
these, of which products get a 16-bit copy when they run (PyTorch's FSDP2 with mixed precision)."""

MOMENTS = 8
"""Bytes that Adam keeps of a parameter: two moments in 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Bytes of parameters and their state on a rank.

    Attributes
    ----------
    weights, gradients, optimizer
        Parameters that products read (or that are gathered for them), accumulated gradients, and 32-bit parameters with
        both moments.
    """

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """The sum of weights, gradients and optimizer state."""
        return self.weights + self.gradients + self.optimizer


def state_bytes(
    parameters: RankParameters,
    *,
    zero: int,
    shards: int,
    expert_shards: int,
    gradient_bytes: float = 4,
    weight_bytes: float = 2,
    masters: Masters = "beside",
) -> State:
    """Bytes of a rank's parameters and their state under Adam.

    Parameters
    ----------
    zero
        What is sharded: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too (ZeRO, arXiv 1910.02054).
    shards, expert_shards
        Over how many ranks: d c of dense parameters, the expert data degree of routed experts.
    gradient_bytes
        Of an accumulated gradient: 4, or 2 where it stays in 16 bits.
    weight_bytes
        Of a parameter that products read; more than 2 where 8-bit copies stand beside it.
    masters
        Where the 32-bit parameters are.
    """
    weight, optimizer = (4.0, float(MOMENTS)) if masters == "only" else (weight_bytes, 4.0 + MOMENTS)

    def held(bytes_a_parameter: float, *, from_stage: int) -> float:
        over = (shards, expert_shards) if zero >= from_stage else (1, 1)
        return bytes_a_parameter * (parameters.dense / over[0] + parameters.expert / over[1])

    return State(
        weights=held(weight, from_stage=3),
        gradients=held(gradient_bytes, from_stage=2),
        optimizer=held(optimizer, from_stage=1),
    )
