"""Properties of a trainer's software (kernels, hidden communication, overheads), and the traits that change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from pipeplan.extensions.planning.fitting import RESERVED
from pipeplan.extensions.planning.workload import AttentionKernel, ContextMethod, Framework

Hidden = Literal["tensor", "context", "expert", "data", "parameters"]
"""Communication that a trainer overlaps with computation: ``data`` is the reduction of gradients, ``parameters`` the
gathering of weights after the optimizer, ``expert`` the exchanges of a forward and a backward that run as a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Fused attention library: its rates relative to the best kernels of the GPUs that it was written for.

    ``ported`` is a factor on both on Hopper and CDNA; 1 if the library has kernels for them.
    """

    forward: float = 1.0
    backward: float = 1.0
    ported: float = 1.0


CORES: Mapping[str, Core] = MappingProxyType(
    {"native": Core(), "flash-2": Core(ported=0.55), "triton": Core(forward=0.7, backward=0.5, ported=0.55)}
)
"""Fused attention libraries by name. native: cuDNN's and FlashAttention's kernels for the generation. flash-2:
FlashAttention-2 reaches little more than half of FlashAttention-3 on Hopper (arXiv 2407.08608 figures 5 and 6); torchtitan
runs cuDNN's on Blackwell (pull request 1196). triton:
FlashAttention-2 is 1.3 to 1.5 times as fast forward and twice as fast backward (arXiv 2307.08691 section 4.1)."""

FUSED_UPDATE = 46.0
"""Bytes per parameter of a fused optimizer step: 4 for the gradient's norm, 8 for its scaling, 28 for Adam in one kernel
(read gradient, weight, two moments; write the last three), 6 for the 16-bit copy of the weight."""

EAGER_LAUNCH = 12e-6
"""Seconds per eager PyTorch op with its Python, dispatch and autograd: 10 to 15 us on server CPUs; compiled code takes 5."""

MEGATRON_LAUNCH = 60e-6
"""Seconds per modelled kernel in Megatron-LM's modules, including the small kernels that it represents. Sources: vTrain's
rows of h 1024 without tensor parallelism take 3.3 ms for 51 kernels of a layer; an expert layer in Megatron Bridge 25.09 on
B200 takes 4.7 ms for 69."""

EXPERT_LAUNCH = 22e-6
"""Seconds per expert and grouped product in Transformer Engine without fused experts: after the host has read the number of
tokens of each expert, it launches each expert's casts and product, which have their own ramp and tail. Fitted on the
mixtures of Megatron Bridge, SimuMax and NeMo; 16 to 22 us if one of the models or sources is left out."""

ADDED_APART = 10.0
"""Bytes per parameter of a separate gradient accumulation: read a 16-bit gradient, read and write a 32-bit one."""

ADDED_IN_FP16 = 6.0
"""Bytes per parameter of autograd's accumulation in 16 bits: read two gradients, write their sum."""

ADDED_WIDENED = 18.0
"""Bytes per parameter of DeepSpeed's bf16 optimizer: read a 16-bit gradient, write it in 32 bits, add that to the sum
(``update_hp_grads`` in deepspeed/runtime/bf16_optimizer.py)."""

EAGER_NORMS = 84.0
"""Bytes per number of eager norms and rotary positions. Two norms convert to 32 bits, square, average, scale, convert back
and weight: 36 each instead of 4. Rotary positions in 32 bits on queries and keys of 1.25 h: 20 instead of 4."""

ROW_WISE = 150.0
"""Bytes per number of the gathered residual stream that row-wise scaling adds to a layer's F, I and W together: operands are
scaled and transposed after they are gathered, on every rank. In torchtitan's runs with tensor parallelism (June 2025), steps
take 150 (8B) and 170 (70B) bytes at the memory's rate longer than with one scale per tensor."""

ASYNC_SHARE = 0.3
"""Fraction of the tensor group's communication that PyTorch's asynchronous tensor parallelism hides: 0.18 to 0.26 in
torchtitan's three pairs of runs of 8B, 0.16 to 0.5 in four of 70B. Sums of gradients before a reduce-scatter and gathers
for weight gradients are not fused with products."""

QUERY_KEY_VALUE = frozenset({"query, key and value"})
"""The product that adapters go beside in the performance recipes of NeMo and Megatron Bridge (``linear_qkv``)."""

OVERWRITTEN_LOGITS = 8
"""Bytes per logit of a cross entropy that overwrites a 32-bit copy of the logits with their gradient, beside the 16-bit
logits and their 16-bit gradient (unslothai/unsloth kernels/cross_entropy_loss.py, with Hugging Face's upcast)."""

CHUNKED_LOSS = 14 / 8
"""Bytes per logit of a cross entropy in 32 bits that computes an eighth of the logits at a time (torchtitan's
``ChunkedLossWrapper``, torchtune's ``CEWithChunkedOutputLoss``)."""

EAGER_UPDATE = 100.0
"""Bytes per parameter of an eager optimizer step: 12 for norm and scaling; for Adam with one kernel per operation, 8 for
decay, 20 for each moment, 24 for root, correction and epsilon, 16 for the update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """Software of one trainer.

    Attributes
    ----------
    name, title
        Name for a configuration's ``software``, and a description.
    attention, core
        Attention kernel: ``flash``, by a library in :data:`CORES`, or ``unfused``, whose scores reach memory.
    fused_activation, fused_loss
        Whether the FFN's activation function, and the cross entropy, are one kernel each.
    fp32_gradients
        Whether gradients are accumulated and reduced in 32 bits.
    context_method, framework
        Method of context parallelism, and library of tensor parallelism and checkpoints
        (:class:`~pipeplan.extensions.planning.workload.Execution`).
    hides
        Communication that overlaps computation.
    dispatch
        How often a token is sent to a rank with several of its experts: once per expert (``experts``), or once per rank
        (``ranks``; over the network once per node), whose experts are random, or beside each other (``neighbours``).
    reserved
        Fraction of the multiprocessors that is permanently reserved for communication.
    blocks
        Whether a message occupies both of its ranks.
    scatters
        Whether a sharded optimizer (ZeRO-1) reduces gradients by a reduce-scatter; otherwise by an all-reduce.
    by_layer
        Whether collectives of weights and gradients are those of layers, not of buckets of parameters.
    sharded_by
        Network ports used for fully sharded weights: all ports of the ``nodes``, or one port per GPU as if each of the
        ``ranks`` were its own node.
    whole
        What a rank holds whole from one microbatch to the next if it is fully sharded without a pipeline: its summed
        ``gradients``, those and the weights in models with expert parallelism (``experts``), or nothing.
    adapts
        Names of the products of a layer that have adapters beside them if adapters are trained; empty: all of them.
    adapter_bytes
        Bytes per number of adapters: PEFT keeps them in 32 bits beside 16-bit weights (``autocast_adapter_dtype``).
    unpacks_bytes
        Bytes read and written per gathered parameter to copy fully sharded weights to where products read them.
    graphs
        Whether kernels are replayed from a CUDA graph, so that the host launches none of them.
    launch, expert_launch
        Seconds of host time per kernel launch, including the framework's Python, and seconds per expert and grouped
        product, if every expert's kernels are launched on their own.
    op_gap
        Seconds lost between two ops of a pipeline rank.
    delayed_weights
        Whether exchanges of a pair's backward do not wait for its weight gradients.
    apart_bytes
        Additional bytes per number of the residual stream in a layer's F, if every operation of norms and rotary positions
        is its own kernel; I takes twice as much, recomputation once more.
    gathers_small
        Whether the tensor group gathers the inputs of 8-bit products in 8 bits.
    scaling_bytes
        Additional bytes per number of the gathered residual stream and layer to scale the operands of 8-bit products.
    tensor_share
        Fraction of the tensor group's communication that is hidden, if ``hides`` has it.
    adds_bytes
        Bytes read and written per parameter to accumulate a microbatch's gradient, if the product does not accumulate it.
    adds_fp16_bytes
        The same in fp16; None: as many.
    update_bytes
        Bytes that the optimizer reads and writes per parameter that a rank updates, including norm and clipping of the
        gradient.
    barrier
        Whether all ranks synchronize at the end of the step, for the norm of all gradients.
    """

    name: str
    title: str
    attention: AttentionKernel = "flash"
    core: str = "native"
    dropout: bool = False
    fused_activation: bool = True
    fused_loss: bool = True
    fp32_gradients: bool = True
    context_method: ContextMethod = "ring"
    hides: frozenset[Hidden] = frozenset({"context", "data", "parameters"})
    dispatch: Literal["experts", "ranks", "neighbours"] = "experts"
    reserved: float = 0.0
    blocks: bool = False
    scatters: bool = True
    by_layer: bool = False
    sharded_by: Literal["nodes", "ranks"] = "nodes"
    whole: Literal["", "gradients", "experts"] = ""
    adapts: frozenset[str] = frozenset()
    adapter_bytes: float = 2.0
    unpacks_bytes: float = 0.0
    graphs: bool = False
    launch: float = EAGER_LAUNCH
    expert_launch: float = 0.0
    op_gap: float = 0.0
    delayed_weights: bool = False
    apart_bytes: float = 0.0
    framework: Framework = "megatron"
    gathers_small: bool = False
    scaling_bytes: float = 0.0
    tensor_share: float = 1.0
    adds_bytes: float = 0.0
    adds_fp16_bytes: float | None = None
    update_bytes: float = FUSED_UPDATE
    barrier: bool = True
    source: str = ""


# Traits are properties that the settings of a run change in a row of the table of trainers: a name such as
# ``megatron-core+16-bit-gradients+exposed-tensor`` is a row with traits behind it.

SEPARATOR = "+"
"""Separates a row's name and its traits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """Change of a trainer's software: values of its fields and of the memory rules.

    ``hides`` and ``exposes`` are communication that overlaps computation with this trait, and that does not.
    """

    software: Mapping[str, Any] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    hides: frozenset[Hidden] = frozenset()
    exposes: frozenset[Hidden] = frozenset()


TRAITS: Mapping[str, Trait] = MappingProxyType(
    {
        "16-bit-gradients": Trait(software={"fp32_gradients": False}, memory={"gradient_bytes": 2}),
        "32-bit-gradients": Trait(software={"fp32_gradients": True}, memory={"gradient_bytes": 4}),
        "8-bit-parameters": Trait(memory={"small_weights": "instead"}),
        "16-bit-parameters": Trait(memory={"small_weights": "beside"}),
        "32-bit-moments": Trait(memory={"moment_bytes": 4}),
        "16-bit-moments": Trait(memory={"moment_bytes": 2}),
        "8-bit-moments": Trait(memory={"moment_bytes": 1}),
        "16-bit-states": Trait(memory={"masters": "none", "gradient_bytes": 2}),
        "32-bit-states": Trait(memory={"masters": "only", "gradient_bytes": 4}),
        "allocated-peaks": Trait(memory={"reserved": 0.0}),
        "reserved-peaks": Trait(memory={"reserved": RESERVED}),
        "fused-loss": Trait(software={"fused_loss": True}, memory={"loss_bytes": None, "split_loss_bytes": None}),
        "overwritten-logits": Trait(memory={"loss_bytes": OVERWRITTEN_LOGITS, "split_loss_bytes": None}),
        "chunked-loss": Trait(memory={"loss_bytes": CHUNKED_LOSS, "split_loss_bytes": None}),
        "flash-attention": Trait(software={"attention": "flash"}),
        "unfused-attention": Trait(software={"attention": "unfused"}),
        "cuda-graphs": Trait(software={"graphs": True}),
        "no-cuda-graphs": Trait(software={"graphs": False}),
        "fused-experts": Trait(software={"expert_launch": 0.0}),
        "unfused-experts": Trait(software={"expert_launch": EXPERT_LAUNCH}),
        "unfused-loss": Trait(software={"fused_loss": False}),
        "fused-norms": Trait(software={"apart_bytes": 0.0}),
        "eager-norms": Trait(software={"apart_bytes": EAGER_NORMS}),
        "dropout": Trait(software={"dropout": True}),
        "no-dropout": Trait(software={"dropout": False}),
        "tokens-by-rank": Trait(software={"dispatch": "ranks"}),
        "tokens-by-expert": Trait(software={"dispatch": "experts"}),
        "tokens-to-neighbours": Trait(software={"dispatch": "neighbours"}),
        "ring-attention": Trait(software={"context_method": "ring"}),
        "all-to-all-attention": Trait(software={"context_method": "all_to_all"}),
        "adapters-on-queries-keys-values": Trait(software={"adapts": QUERY_KEY_VALUE}),
        "adapters-on-attention-products": Trait(software={"adapts": QUERY_KEY_VALUE | {"attention output"}}),
        "adapters-on-all-products": Trait(software={"adapts": frozenset()}),
        "32-bit-adapters": Trait(software={"adapter_bytes": 4.0}),
        "16-bit-adapters": Trait(software={"adapter_bytes": 2.0}),
        "gradients-summed-whole": Trait(software={"whole": "gradients"}),
        "gradients-summed-sharded": Trait(software={"whole": ""}),
        "gradients-added-in-products": Trait(software={"adds_bytes": 0.0, "adds_fp16_bytes": None}),
        "delayed-weights": Trait(software={"delayed_weights": True}),
        "weights-at-once": Trait(software={"delayed_weights": False}),
        "gradients-added-apart": Trait(software={"adds_bytes": ADDED_APART, "adds_fp16_bytes": None}),
        **{f"hidden-{kind}": Trait(hides=frozenset({kind})) for kind in get_args(Hidden)},
        **{f"exposed-{kind}": Trait(exposes=frozenset({kind})) for kind in get_args(Hidden)},
    }
)
"""Traits by name. Each has an opposite, so that a run's settings can confirm or change any row."""
