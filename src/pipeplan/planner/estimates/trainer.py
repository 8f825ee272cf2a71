"""What a trainer's software is: its kernels, the communication that it hides, and what it loses between ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pipeplan.workload import AttentionKernel

Hidden = Literal["tensor", "context", "expert", "data", "parameters"]
"""Communication that a trainer runs beside computation: ``data`` is the reduction of gradients, ``parameters`` the gathering
of weights after the optimizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A library of fused attention: its rate over that of the generation's best kernels.

    Attributes
    ----------
    forward, backward
        On the GPUs that it was written for.
    ported
        Factor on both on GPUs since Hopper; 1 where there is a kernel for these.
    """

    forward: float = 1.0
    backward: float = 1.0
    ported: float = 1.0


CORES: Mapping[str, Core] = MappingProxyType(
    {
        "native": Core(),
        "flash-2": Core(ported=0.55),
        "triton": Core(forward=0.7, backward=0.5, ported=0.55),
    }
)
"""By name. Native: cuDNN's and FlashAttention's kernels for the generation. flash-2: FlashAttention-2 reaches little more
than half of FlashAttention-3 on Hopper (arXiv 2407.08608 figures 5 and 6). triton: FlashAttention-2 is 1.3 to 1.5 times as
fast forward and twice as fast backward (arXiv 2307.08691 section 4.1)."""

FUSED_UPDATE = 46.0
"""Bytes: the gradient for the norm, 4, and scaled, 8; Adam in one kernel (gradient, weight, two moments read, the latter
three written), 28; the weight copied to 16 bits, 6."""

EAGER_LAUNCH = 12e-6
"""Seconds of an op of PyTorch with its Python, dispatch and autograd: 10 to 15 us on server CPUs; compiled code takes 5."""

MEGATRON_LAUNCH = 60e-6
"""Seconds of a kernel of a layer's work with the small ones that it stands for, in Megatron-LM's modules: vTrain's rows of
h 1024 without tensor parallelism take 3.3 ms for a layer's 51, a layer of experts in Megatron Bridge 25.09 on B200 4.7 ms
for its 69."""

ADDED_APART = 10.0
"""Bytes: a 16-bit gradient read, and one of 32 bits read and written."""

EAGER_NORMS = 84.0
"""Bytes: two norms that go to 32 bits, square, take the mean, scale, come back and are weighted, 36 instead of 4 each;
rotary positions in 32 bits on queries and keys of 1.25 h, 20 instead of 4."""

ROW_WISE = 0.5
"""By torchtitan's runs with asynchronous tensor parallelism (June 2025), where products scaled row by row are slower than
16-bit ones."""

EAGER_UPDATE = 100.0
"""Bytes: norm and scaling, 12; Adam of one kernel an operation: decay 8, first moment 8 + 12, second 8 + 12, root,
correction and epsilon 24, update 16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """One trainer.

    Attributes
    ----------
    name, title
        As a configuration's ``software`` takes it, and what it is.
    attention
        Whether scores reach memory.
    dropout
        Whether models are trained with it.
    core
        Which fused attention it calls, by name in :data:`CORES`.
    fused_activation, fused_loss
        Whether the FFN's activation, and the cross entropy, are one kernel.
    fp32_gradients
        Whether gradients are accumulated (and reduced) in 32 bits.
    context_method
        What context parallelism exchanges (:class:`~pipeplan.workload.Execution`).
    hides
        Which communication runs beside computation.
    dispatch
        How often a token crosses to a rank that holds several of its experts: once for each of the ``experts``, or once for
        the ``ranks`` (and over the network once for a node).
    reserved
        Share of the multiprocessors that communication has for itself throughout.
    blocks
        Whether a message takes its time from both ends.
    sharded_by
        How fully sharded weights cross the network: over all ports of the ``nodes``, or as if each of the ``ranks`` were a
        node of its own.
    unpacks_bytes
        Read and written, for each fully sharded parameter that is gathered, to bring it where products read it.
    graphs
        Whether kernels are replayed from a graph, so that the host launches none of them.
    launch
        Of a kernel by the host, with the framework's Python around it; seconds.
    op_gap
        Lost between two ops of a pipeline's rank; seconds.
    apart_bytes
        Read and written besides in a layer's F, for each number of the residual stream, where norms and rotary positions are
        a kernel an operation; in I twice as much, and what is computed again once more.
    small_reach
        Factor on the rate of products in 8 bits.
    adds_bytes
        Read and written, for each parameter, to add a microbatch's gradient to those before it, where the product does not.
    update_bytes
        Read and written by the optimizer for each parameter that a rank updates, with norm and clipping of its gradient.
    barrier
        Whether all ranks meet at the step's end (the norm of all gradients).
    source
        Where this is from.
    """

    name: str
    title: str
    attention: AttentionKernel = "flash"
    core: str = "native"
    dropout: bool = False
    fused_activation: bool = True
    fused_loss: bool = True
    fp32_gradients: bool = True
    context_method: Literal["ring", "all_to_all"] = "ring"
    hides: frozenset[Hidden] = frozenset({"context", "data", "parameters"})
    dispatch: Literal["experts", "ranks"] = "experts"
    reserved: float = 0.0
    blocks: bool = False
    sharded_by: Literal["nodes", "ranks"] = "nodes"
    unpacks_bytes: float = 0.0
    graphs: bool = False
    launch: float = EAGER_LAUNCH
    op_gap: float = 0.0
    apart_bytes: float = 0.0
    small_reach: float = 1.0
    adds_bytes: float = 0.0
    update_bytes: float = FUSED_UPDATE
    barrier: bool = True
    source: str = ""
