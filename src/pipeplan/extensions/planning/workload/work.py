"""Work of a layer on a rank: matrix products, attention cores, memory passes and collectives, and the tensors it keeps.

Nothing here has a duration; that is the hardware package's task. Sizes are those of one microbatch on one rank, after all
degrees have split them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeplan.extensions.planning.workload.components import Precision
from pipeplan.model import LayerKind

ContextMethod = Literal["ring", "all_to_all", "gather"]
"""Methods of context parallelism: keys and values passed around a ring, heads exchanged for sequence parts, or keys and
values of all heads gathered at once (PyTorch)."""

AttentionKernel = Literal["flash", "unfused"]

Framework = Literal["megatron", "pytorch"]
"""Library of tensor parallelism and of checkpoints: Megatron's, or PyTorch's (DTensor, non-reentrant checkpoints)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Settings that, together with the model's shape, decide the cost of one microbatch on one rank.

    Attributes
    ----------
    microbatch_size, sequence
        Sequences per microbatch (b), and tokens per sequence (s).
    tensor, context, expert, expert_tensor
        Parallel degrees t, c, e and etp.
    sequence_parallel
        Whether what tensor parallelism replicates is split over the sequence (arXiv 2205.05198 section 4.2.2).
    precision
        Number format of the matrix products.
    attention
        ``flash``: scores never reach memory; ``unfused``: they are written, softmaxed and read.
    dropout
        Whether dropout is used, whose masks are then kept.
    fused_loss
        Whether the cross entropy computes its gradient in place (no second fp32 copy of the logits).
    loss_bytes
        Peak bytes per logit over all copies in the loss: 16-bit and 32-bit forms, and gradients. None: 2 for a fused loss;
        otherwise 6, because 32-bit probabilities become their gradient in place (Megatron Core).
    fused_activation
        Whether the FFN's activation function is one kernel that keeps only its inputs.
    fused_norms
        Whether norms are one kernel each; otherwise, root-mean-square norms keep their input and their output in 32 bits.
    small_inputs
        Whether products in 8 or 4 bits keep their inputs in that format (Transformer Engine) instead of 16 bits (torchao).
    small_activations
        Whether an FFN's activation function also keeps its inputs in the products' 8- or 4-bit format.
    fp32_gradients
        Whether weight gradients are accumulated in 32 bits (Megatron's main gradients).
    recompute
        Modules recomputed in the backward: names of ``RECOMPUTE``; ``full`` is the whole layer.
    offload
        Fraction of the layer's kept bytes that is moved to the host between F and I, 0 to 1.
    context_method
        ``ring``: keys and values circulate (arXiv 2310.01889); ``all_to_all``: heads are exchanged for sequence around the
        core (Ulysses, arXiv 2309.14509); ``gather``: keys and values are gathered before the core (PyTorch).
    framework
        ``megatron``: products keep the shard of a gathered input and W gathers it again; the recomputation of a layer runs
        its whole forward. ``pytorch``: products keep the gathered input; recomputation stops before the last product, whose
        output the backward does not need.
    gather_bytes
        Bytes per number of the inputs that a layer's tensor group gathers in F: 2, or 1 if it gathers 8-bit inputs.
    dispatch_bytes
        Bytes per number sent to experts: 2, or 1 for 8-bit dispatch.
    imbalance
        Maximum tokens of an expert rank divided by the mean; 1 for balanced routing.
    adapter_rank
        Rank of the low-rank adapters beside products of a layer (LoRA, arXiv 2106.09685); everything else is frozen. 0: all
        parameters are trained.
    adapter_bytes
        Bytes per number of the adapters and their passes.
    adapted
        Names of the products with adapters; empty: all of a layer.
    document
        Tokens of each of the documents that are packed into a sequence, which do not attend to each other; None: one
        document per sequence.
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
    fused_norms: bool = True
    small_inputs: bool = True
    small_activations: bool = False
    fp32_gradients: bool = True
    recompute: frozenset[str] = frozenset()
    offload: float = 0.0
    context_method: ContextMethod = "ring"
    framework: Framework = "megatron"
    gather_bytes: float = 2.0
    dispatch_bytes: float = 2.0
    imbalance: float = 1.0
    adapter_rank: int = 0
    adapter_bytes: float = 2.0
    adapted: frozenset[str] = frozenset()
    document: int | None = None

    def adapts(self, product: str) -> bool:
        """Return True if adapters go beside a product, if any are trained."""
        return not self.adapted or product in self.adapted

    @property
    def attended(self) -> int:
        """Number of tokens that attend to each other: a document's, or the sequence's."""
        return min(self.document or self.sequence, self.sequence)

    @property
    def tokens(self) -> float:
        """Number of tokens n of a microbatch on a rank of the context group."""
        return self.microbatch_size * self.sequence / self.context


Group = Literal["tensor", "context", "expert", "expert_tensor"]
"""Ranks that take part in a layer's collective."""

Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """Matrix product of (rows, inner) with (inner, columns); ``copies`` equal ones in one kernel.

    Attributes
    ----------
    accumulates
        Whether the result is added to a 32-bit one (weight gradients).
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
        """FLOPs, 2 per multiply-add."""
        return 2.0 * self.rows * self.columns * self.inner * self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedGemm:
    """Products of ``groups`` experts, which share ``rows`` tokens evenly, in one kernel.

    For a weight gradient (``weight_gradient``), ``rows`` is the inner dimension.
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
        """FLOPs of all groups, 2 per multiply-add."""
        return 2.0 * self.rows * self.columns * self.inner


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCore:
    """Scores, softmax and values of all heads of a rank.

    Attributes
    ----------
    queries
        Number of query tokens over all sequences of the microbatch.
    keys
        Mean number of keys per query: s/2 for a causal kernel that skips the masked half, otherwise s.
    score_dim, value_dim
        Dimensions per head.
    fused
        Whether one kernel does everything; otherwise the memory passes over the scores are separate work.
    gathered
        Bytes of the keys and values that a sparse core reads for each query on its own.
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
    gathered: float = 0.0

    @property
    def flops(self) -> float:
        """FLOPs: 2 products forward; 4 backward, and one more if a fused kernel recomputes the scores."""
        score, value = self.score_dim, self.value_dim
        dims = score + value if not self.backward else (2 + self.fused) * score + 2 * value
        return 2.0 * self.queries * self.keys * self.heads * dims


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPass:
    """Work bound by memory: bytes read and written in total, in ``kernels`` kernels.

    Kernels of recurrences also multiply small matrices, with ``flops`` FLOPs.
    """

    name: str
    bytes: float
    kernels: int = 1
    flops: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """A collective over a group of ranks.

    Attributes
    ----------
    bytes
        Bytes of the whole buffer on a rank: input of an all-reduce or reduce-scatter, output of an all-gather, input of an
        all-to-all including the rank's own share, and what a ring passes on per step.
    steps
        Number of steps of a ring.
    nodes_a_token
        For an all-to-all with node-limited routing: maximum number of nodes per token.
    copies, experts
        For an all-to-all: number of experts per token, and per rank.
    beside
        Work that hides it if the software overlaps them: ``gemm`` (the adjacent product), ``core`` (ring attention) or
        ``batch`` (the other microbatch of an overlapped pair). Empty: none.
    """

    name: str
    operation: Operation
    group: Group
    bytes: float
    steps: int = 1
    nodes_a_token: int | None = None
    copies: int = 1
    experts: float = 1.0
    beside: Literal["", "gemm", "core", "batch"] = ""


Work = Gemm | GroupedGemm | AttentionCore | MemoryPass | Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Tensor that a forward keeps for its backward.

    Attributes
    ----------
    name
        Name such as ``attention input``.
    bytes
        Bytes on this rank.
    until
        Half of the backward that frees it: I, or W if the weight gradient needs it.
    gradient_bytes
        Bytes of the output gradient that I leaves for W (split backward).
    """

    name: str
    bytes: float
    until: Literal["I", "W"] = "I"
    gradient_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """Recomputation of a module in the backward: its work and its savings.

    Attributes
    ----------
    work
        Work that is run once more, before I.
    drops
        Names of the tensors that are no longer kept.
    adds
        Tensors that are kept instead.
    """

    work: tuple[Work, ...]
    drops: frozenset[str]
    adds: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankParameters:
    """Number of parameters of a layer on one rank.

    Attributes
    ----------
    dense
        Parameters whose gradients all replicas of the data and context groups reduce; split over t, or replicated on its
        ranks.
    expert
        Parameters of routed experts, split over e and etp and replicated over the expert data group.
    """

    dense: int = 0
    expert: int = 0

    def __add__(self, other: RankParameters) -> RankParameters:
        return RankParameters(dense=self.dense + other.dense, expert=self.expert + other.expert)

    def __mul__(self, count: int) -> RankParameters:
        return RankParameters(dense=self.dense * count, expert=self.expert * count)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """Layer on one rank: work of F, I and W, kept tensors, and parameters.

    Attributes
    ----------
    kind, name
        Kind and name of the layer. The kind is ``moe`` with experts and ``dense`` without, whatever mixes the tokens.
    count
        Number of equal layers in a row.
    forward, backward_input, backward_weight
        Work of each for one microbatch.
    kept
        Tensors that F keeps.
    transient_bytes
        Peak of the backward beyond all kept tensors: gradients of activations, recomputed tensors.
    parameters
        Trained parameters on this rank.
    frozen
        Parameters on this rank that have neither gradients nor optimizer state.
    embedding_parameters
        Parameters of the input embedding if the layer reads it (a tied head, MTP): a copy, if its rank does not hold the
        embedding.
    recomputable
        Work and savings of recomputing each module.
    """

    kind: LayerKind
    name: str
    forward: tuple[Work, ...]
    backward_input: tuple[Work, ...]
    backward_weight: tuple[Work, ...]
    kept: tuple[Kept, ...] = ()
    transient_bytes: float = 0.0
    parameters: RankParameters = RankParameters()
    frozen: RankParameters = RankParameters()
    recomputable: Mapping[str, Recompute] = field(default_factory=dict, compare=False)
    count: int = 1
    embedding_parameters: int = 0

    @property
    def weights(self) -> RankParameters:
        """Trained and frozen parameters together."""
        return self.parameters + self.frozen

    @property
    def kept_bytes(self) -> float:
        """Bytes held from F on."""
        return sum(tensor.bytes for tensor in self.kept)

    @property
    def bytes_until_weight(self) -> float:
        """Bytes held between I and W of a split backward: what only W frees, and the output gradients that it needs."""
        return sum((tensor.bytes if tensor.until == "W" else 0.0) + tensor.gradient_bytes for tensor in self.kept)


Masters = Literal["beside", "only", "none"]
"""Place of the optimizer's 32-bit parameters: ``beside`` the 16-bit ones used in matrix products (Megatron), ``only``
in 32 bits, with temporary 16-bit copies (PyTorch's FSDP2 with mixed precision), or nowhere (``none``): parameters, their
gradients and both moments have 16 bits."""

MOMENTS = 8
"""Bytes per parameter of Adam's two 32-bit moments."""

_STATE_BYTES: Mapping[Masters, tuple[float, float]] = {
    "beside": (2.0, 4.0 + MOMENTS),
    "only": (4.0, float(MOMENTS)),
    "none": (2.0, MOMENTS / 2),
}
"""Bytes per parameter that products read or gather, and of the optimizer's state, by the place of 32-bit parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Bytes of parameters, gradients and optimizer state on a rank.

    Attributes
    ----------
    weights, gradients, optimizer
        Parameters that products read (or that are gathered for them), accumulated gradients, and 32-bit parameters with both
        moments.
    """

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Sum of weights, gradients and optimizer state."""
        return self.weights + self.gradients + self.optimizer


def state_bytes(
    parameters: RankParameters,
    *,
    zero: int,
    shards: int,
    expert_shards: int,
    gradient_bytes: float = 4,
    moment_bytes: float = 4,
    masters: Masters = "beside",
) -> State:
    """Return the bytes of a rank's parameters and their state under Adam.

    Parameters
    ----------
    zero
        ZeRO stage: 0 shards nothing, 1 the optimizer state, 2 also gradients, 3 also parameters (arXiv 1910.02054).
    shards, expert_shards
        Number of ranks that share them: d c for dense parameters, the expert data degree for routed experts.
    gradient_bytes
        Bytes per accumulated gradient: 4, or 2 in 16 bits.
    moment_bytes
        Bytes of each of Adam's moments beside 32-bit parameters.
    masters
        Placement of the 32-bit parameters.
    """
    weight, optimizer = _STATE_BYTES[masters]
    if masters == "beside":
        optimizer += 2 * moment_bytes - MOMENTS

    def held(bytes_a_parameter: float, *, from_stage: int) -> float:
        over = (shards, expert_shards) if zero >= from_stage else (1, 1)
        return bytes_a_parameter * (parameters.dense / over[0] + parameters.expert / over[1])

    return State(
        weights=held(weight, from_stage=3),
        gradients=held(gradient_bytes, from_stage=2),
        optimizer=held(optimizer, from_stage=1),
    )
