"""Trainers' software: kernels, hidden communication and overheads of each, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from pipeplan.errors import UnknownNameError
from pipeplan.planner.configuration import Configuration
from pipeplan.workload import AttentionKernel, ContextMethod, Framework

Hidden = Literal["tensor", "context", "expert", "data", "parameters"]
"""Communication that a trainer overlaps with computation: ``data`` is the reduction of gradients, ``parameters`` the
gathering of weights after the optimizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Fused attention library: its rate relative to the best kernels of a GPU generation.

    Attributes
    ----------
    forward, backward
        Rates on the GPUs that the library was written for.
    ported
        Factor on both rates on GPUs since Hopper; 1 if the library has kernels for them.
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
"""Fused attention libraries by name. native: cuDNN's and FlashAttention's kernels for the generation. flash-2:
FlashAttention-2 reaches little more than half of FlashAttention-3 on Hopper (arXiv 2407.08608 figures 5 and 6). triton:
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
    attention
        Attention kernel: ``flash``, or ``unfused``, whose scores reach memory.
    dropout
        Whether models are trained with dropout.
    core
        Fused attention library, by name in :data:`CORES`.
    small_attention
        Whether the fused attention's operands have 8 bits if those of products have.
    fused_activation, fused_loss
        Whether the FFN's activation function, and the cross entropy, are one kernel each.
    fused_experts
        Whether the routed experts' products, biases and activation function are one kernel each way.
    bias_epilogue
        Factor on the time of the fused product that also sums the gradients of the experts' biases.
    fp32_gradients
        Whether gradients are accumulated and reduced in 32 bits.
    context_method
        Method of context parallelism (:class:`~pipeplan.workload.Execution`).
    hides
        Communication that overlaps computation.
    dispatch
        How often a token is sent to a rank with several of its experts: once per expert (``experts``), or once per rank
        (``ranks``; over the network once per node).
    reserved
        Fraction of the multiprocessors that is permanently reserved for communication.
    blocks
        Whether a message occupies both of its ranks.
    sharded_by
        Network ports used for fully sharded weights: all ports of the ``nodes``, or one port per GPU as if each of the
        ``ranks`` were its own node.
    unpacks_bytes
        Bytes read and written per gathered parameter to copy fully sharded weights to where products read them.
    graphs
        Whether kernels are replayed from a CUDA graph, so that the host launches none of them.
    launch
        Seconds of host time per kernel launch, including the framework's Python.
    expert_launch
        Seconds per expert and grouped product, if every expert's kernels are launched on their own.
    expert_casts
        Seconds of host time per expert and grouped product to cast its operands, by precision, if every expert's operands
        are cast on their own.
    op_gap
        Seconds lost between two ops of a pipeline rank.
    apart_bytes
        Additional bytes per number of the residual stream in a layer's F, if every operation of norms and rotary positions
        is its own kernel; I takes twice as much, recomputation once more.
    framework
        Library of tensor parallelism and checkpoints (:class:`~pipeplan.workload.Execution`).
    gathers_small
        Whether the tensor group gathers the inputs of 8-bit products in 8 bits.
    scaling_bytes
        Additional bytes per number of the gathered residual stream and layer to scale the operands of 8-bit products.
    tensor_share
        Fraction of the tensor group's communication that is hidden, if ``hides`` has it.
    adds_bytes
        Bytes read and written per parameter to accumulate a microbatch's gradient, if the product does not accumulate it.
    update_bytes
        Bytes that the optimizer reads and writes per parameter that a rank updates, including norm and clipping of the
        gradient.
    barrier
        Whether all ranks synchronize at the end of the step, for the norm of all gradients.
    source
        Source of these properties.
    """

    name: str
    title: str
    attention: AttentionKernel = "flash"
    core: str = "native"
    small_attention: bool = False
    dropout: bool = False
    fused_activation: bool = True
    fused_loss: bool = True
    fused_experts: bool = False
    bias_epilogue: float = 1.0
    fp32_gradients: bool = True
    context_method: ContextMethod = "ring"
    hides: frozenset[Hidden] = frozenset({"context", "data", "parameters"})
    dispatch: Literal["experts", "ranks"] = "experts"
    reserved: float = 0.0
    blocks: bool = False
    sharded_by: Literal["nodes", "ranks"] = "nodes"
    unpacks_bytes: float = 0.0
    graphs: bool = False
    launch: float = EAGER_LAUNCH
    expert_launch: float = 0.0
    expert_casts: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    op_gap: float = 0.0
    apart_bytes: float = 0.0
    framework: Framework = "megatron"
    gathers_small: bool = False
    scaling_bytes: float = 0.0
    tensor_share: float = 1.0
    adds_bytes: float = 0.0
    update_bytes: float = FUSED_UPDATE
    barrier: bool = True
    source: str = ""


_MEGATRON_2021 = Software(
    name="megatron-lm-2021",
    title="Megatron-LM before flash attention (2021 to 2023)",
    attention="unfused",
    dropout=True,
    fused_loss=False,
    hides=frozenset(),
    launch=MEGATRON_LAUNCH,
    op_gap=0.85e-3,
    source="arXiv 2104.04473 section 4, 2205.05198; the gap between ops is that of the machine megatron-a100; vTrain's rows "
    "of h 1024 without tensor parallelism take 3.3 ms for a layer's 51 kernels of F, recomputation, I and W",
)
_TORCHTITAN = Software(
    name="torchtitan",
    title="torchtitan with torch.compile and FSDP2",
    launch=5e-6,
    core="flash-2",
    unpacks_bytes=4.0,
    fused_loss=False,
    framework="pytorch",
    gathers_small=True,
    tensor_share=ASYNC_SHARE,
    source="pytorch/torchtitan docs: FSDP2 gathers ahead, copies out of its buffer, reduces in 32 bits during computation",
)
_MEGATRON_CORE = Software(
    name="megatron-core",
    title="Megatron Core with Transformer Engine",
    launch=MEGATRON_LAUNCH,
    expert_launch=EXPERT_LAUNCH,
    source="Megatron-LM docs: overlap-grad-reduce, overlap-param-gather, context parallelism by p2p ring",
)
_BRIDGE = replace(
    _MEGATRON_CORE,
    name="megatron-bridge-26.04",
    title="Megatron Bridge's performance recipes until 26.04, with TP overlap, without whole graphs",
    hides=frozenset({"tensor", "context", "data", "parameters"}),
    dispatch="ranks",
    expert_casts=MappingProxyType({"fp8": 112e-6, "mxfp8": 51e-6, "nvfp4": 51e-6}),
    fp32_gradients=False,
    source=(
        "NVIDIA-NeMo/Megatron-Bridge scripts/performance/configs: DeepEP or HybridEP, graphs of parts of a layer without "
        "the experts, or none; gradients are reduced in 16 bits"
    ),
)
_BRIDGE_WHOLE = replace(
    _BRIDGE,
    name="megatron-bridge",
    title="Megatron Bridge's performance recipes since 26.06, with overlapped expert exchanges",
    hides=_BRIDGE.hides | {"expert"},
    small_attention=True,
    graphs=True,
    fused_experts=True,
    expert_launch=0.0,
    source=(
        "NVIDIA-NeMo/Megatron-Bridge docs/performance-guide.md and scripts/performance/configs: HybridEP, moe_a2a_overlap, "
        "full-iteration graphs, use_transformer_engine_op_fuser, fp8_dot_product_attention; gradients are reduced in 16 bits"
    ),
)
_LLM_FOUNDRY = Software(
    name="llm-foundry",
    title="llm-foundry: eager PyTorch FSDP, Triton attention, 32-bit gradient reduction",
    core="triton",
    update_bytes=EAGER_UPDATE,
    fused_activation=False,
    fused_loss=False,
    source="mosaicml/llm-foundry scripts/train/benchmarking; composer's FSDP mixed_precision DEFAULT",
)

_NEMO_SOURCE = (
    "NVIDIA/dgxc-benchmarking recipes (tp_comm_overlap, overlap_grad_reduce, overlap_param_gather); "
    "NVIDIA/NeMo-Framework-Launcher examples/training (grad_sync_dtype=bf16)"
)

_TABLE = (
    _MEGATRON_2021,
    replace(
        _MEGATRON_2021,
        name="megatron-lm-2021-unfused",
        title="Megatron-LM of 2021 without fused gradient accumulation",
        adds_bytes=ADDED_APART,
        source="arXiv 2104.04473; --no-gradient-accumulation-fusion came with the fusion, in 2022",
    ),
    replace(
        _MEGATRON_2021,
        name="zero-bubble",
        title="zero-bubble fork of Megatron-LM, without the optimizer's barrier",
        barrier=False,
        source="ICLR 2024, sections 4 and 5 (post-validation)",
    ),
    replace(
        _MEGATRON_2021,
        name="megatron-deepspeed",
        title="Megatron-DeepSpeed (2021 to 2023): DeepSpeed's pipeline with blocking messages",
        blocks=True,
        adds_bytes=ADDED_APART,
        source="arXiv 2201.11990; vTrain's validation runs; deepspeed/runtime/pipe: p2p.py waits, and engine.py has tensor "
        "ranks send their parts (is_pipe_partitioned)",
    ),
    replace(
        _MEGATRON_2021,
        name="deepspeed-zero3",
        title="DeepSpeed ZeRO-3 of 2021 without model parallelism",
        hides=frozenset({"data"}),
        sharded_by="ranks",
        source=(
            "arXiv 2104.04473 section 5.2, table 2: its steps on 1,120 and 1,536 GPUs are what one port of 25 GB/s a GPU "
            "takes for gathering twice and scattering once"
        ),
    ),
    replace(
        _TORCHTITAN,
        name="torchtitan-2024",
        title="torchtitan before its loss was compiled (2024)",
    ),
    replace(
        _TORCHTITAN,
        name="torchtitan-2024-async-tp",
        title="torchtitan of 2024 with asynchronous tensor parallelism",
        hides=_TORCHTITAN.hides | {"tensor"},
    ),
    _MEGATRON_CORE,
    replace(
        _MEGATRON_CORE,
        name="megatron-core-overlapped",
        title="Megatron Core with overlapped communication and DeepEP",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        dispatch="ranks",
        source="the flags of NeMo's and Megatron Bridge's recipes that every plan can have: tp-comm-overlap, "
        "overlap-grad-reduce, overlap-param-gather, moe-flex-dispatcher-backend; gradients are reduced in 32 bits",
    ),
    replace(
        _MEGATRON_CORE,
        name="megatron-core-plain",
        title="Megatron Core without overlap flags",
        context_method="all_to_all",
        hides=frozenset({"context"}),
        source="SimuMax's simu_tools/megatron_scripts: no overlap-grad-reduce, no overlap-param-gather, no tp-comm-overlap; "
        "cp-comm-type a2a",
    ),
    replace(
        _MEGATRON_CORE,
        name="megatron-core-unfused-loss",
        title="Megatron Core without --cross-entropy-loss-fusion (its default)",
        fused_loss=False,
        source="Megatron-LM tests/functional_tests/test_cases, model_config.yaml of the release tests",
    ),
    replace(
        _MEGATRON_CORE,
        name="nemo",
        title="NeMo on Megatron Core with communication overlap",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        fp32_gradients=False,
        source=_NEMO_SOURCE,
    ),
    replace(
        _MEGATRON_CORE,
        name="nemo-2024",
        title="NeMo before 24.12, whose attention has no kernels for Hopper",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        core="flash-2",
        fp32_gradients=False,
        source=f"as nemo ({_NEMO_SOURCE}); Transformer Engine before 1.11 calls FlashAttention-2 for context parallelism",
    ),
    _BRIDGE,
    _BRIDGE_WHOLE,
    replace(
        _BRIDGE_WHOLE,
        name="megatron-bridge-16-bit-attention",
        title="Megatron Bridge's performance recipes since 26.06 with attention in 16 bits",
        small_attention=False,
    ),
    replace(
        _BRIDGE_WHOLE,
        name="megatron-bridge-26.06.01",
        title="Megatron Bridge 26.06.01, whose product with gradients of experts' biases is slow",
        bias_epilogue=10.0,
        source="NVIDIA/cudnn-frontend issue 256: grouped_gemm_dglu_wrapper_sm100 takes 10 times as long in 1.24 and 1.25",
    ),
    replace(
        _BRIDGE,
        name="megatron-bridge-26.04-overlapped",
        title="Megatron Bridge with DeepEP or HybridEP and overlapped expert exchanges",
        hides=_BRIDGE.hides | {"expert"},
    ),
    replace(
        _BRIDGE,
        name="megatron-bridge-all-to-all",
        title="Megatron Bridge with the all-to-all dispatcher",
        dispatch="experts",
    ),
    replace(
        _BRIDGE,
        name="megatron-bridge-all-to-all-overlapped",
        title="Megatron Bridge with the all-to-all dispatcher and overlapped expert exchanges",
        hides=_BRIDGE.hides | {"expert"},
        dispatch="experts",
    ),
    replace(
        _BRIDGE,
        name="megatron-bridge-25.09",
        title="Megatron Bridge 25.09 on Blackwell: experts of fixed capacity in CUDA graphs",
        dispatch="experts",
        graphs=True,
        source="scripts/performance at a2884419: apply_moe_token_drop, cuda_graphs",
    ),
    replace(
        _MEGATRON_CORE,
        name="megascale",
        title="MegaScale: Megatron-LM with communication overlap",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        source="arXiv 2402.15627 section 3",
    ),
    replace(
        _MEGATRON_CORE,
        name="primus",
        title="Primus on Megatron Core, AMD",
        adds_bytes=ADDED_APART,
        source="AMD-AGI/Primus examples/megatron/configs: gradient_accumulation_fusion is off",
    ),
    _TORCHTITAN,
    replace(
        _TORCHTITAN,
        name="torchtitan-eager",
        title="torchtitan without torch.compile",
        launch=EAGER_LAUNCH,
        fused_activation=False,
        apart_bytes=EAGER_NORMS,
        source="pytorch/torchtitan benchmarks/llama3_h100_202412; torchtitan/models/norms.py and model.py of that time",
    ),
    replace(
        _TORCHTITAN,
        name="torchtitan-async-tp",
        title="torchtitan with torch.compile and asynchronous tensor parallelism",
        hides=_TORCHTITAN.hides | {"tensor"},
        source="pytorch/torchtitan benchmarks, asyncTP 2025-06",
    ),
    replace(
        _TORCHTITAN,
        name="torchtitan-row-wise",
        title="torchtitan with row-wise scaled 8-bit products",
        gathers_small=False,
        scaling_bytes=ROW_WISE,
        source="pytorch/torchtitan benchmarks, asyncTP 2025-06",
    ),
    replace(
        _TORCHTITAN,
        name="torchtitan-row-wise-async-tp",
        title="torchtitan with row-wise scaling and asynchronous tensor parallelism",
        hides=_TORCHTITAN.hides | {"tensor"},
        gathers_small=False,
        scaling_bytes=ROW_WISE,
        source="pytorch/torchtitan benchmarks, asyncTP 2025-06",
    ),
    Software(
        name="automodel",
        title="NeMo AutoModel: PyTorch FSDP2 with Transformer Engine's kernels and DeepEP",
        dispatch="ranks",
        unpacks_bytes=_TORCHTITAN.unpacks_bytes,
        fused_loss=False,
        framework="pytorch",
        source="NVIDIA-NeMo/Automodel examples/llm_benchmark: fsdp2, attn and linear te, deepep, MaskedCrossEntropy",
    ),
    _LLM_FOUNDRY,
    replace(
        _LLM_FOUNDRY,
        name="llm-foundry-pure",
        title="llm-foundry with everything in 16 bits",
        fp32_gradients=False,
        source="composer's FSDP mixed_precision PURE",
    ),
    Software(
        name="hai-llm",
        title="DeepSeek's HAI-LLM: FP8, DualPipe, overlapped all-to-all",
        hides=frozenset({"context", "expert", "data", "parameters"}),
        dispatch="ranks",
        reserved=20 / 132,
        source="arXiv 2412.19437 section 3.2: 20 of 132 multiprocessors communicate",
    ),
)

SOFTWARE: Mapping[str, Software] = MappingProxyType({row.name: row for row in _TABLE})
"""Software of every trainer by its name."""


def software(name: str) -> Software:
    """Return the software of a trainer by its name.

    Raises
    ------
    UnknownNameError
        If the name is unknown; names the nearest one.
    """
    row = SOFTWARE.get(name.lower())
    if row is None:
        raise UnknownNameError("software", name, SOFTWARE, field="software")
    return row


def op_gap_of(configuration: Configuration) -> float:
    """Return the overhead between two ops of a configuration, in seconds."""
    own = configuration.op_gap
    return software(configuration.software).op_gap if own is None else own
