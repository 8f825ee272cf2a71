"""Trainers' software: kernels, hidden communication and overheads of each, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.properties import (
    ADDED_APART,
    ADDED_IN_FP16,
    ADDED_WIDENED,
    ASYNC_SHARE,
    EAGER_LAUNCH,
    EAGER_NORMS,
    EAGER_UPDATE,
    EXPERT_LAUNCH,
    MEGATRON_LAUNCH,
    QUERY_KEY_VALUE,
    ROW_WISE,
    SEPARATOR,
    TRAITS,
    Hidden,
    Software,
)
from pipeplan.extensions.planning.hardware import Gpu
from pipeplan.foundation.errors import UnknownNameError

_OF_CORE: frozenset[Hidden] = frozenset({"context", "expert", "data", "parameters"})
_OVERLAPPED: frozenset[Hidden] = frozenset({*_OF_CORE, "tensor"})

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
    context_method="gather",
    unpacks_bytes=4.0,
    fused_loss=False,
    framework="pytorch",
    by_layer=True,
    gathers_small=True,
    tensor_share=ASYNC_SHARE,
    source="pytorch/torchtitan docs: FSDP2 gathers ahead, copies out of its buffer, reduces in 32 bits during computation",
)
_KEMPNERFORGE = replace(
    _TORCHTITAN,
    name="kempnerforge",
    title="KempnerForge: torch.compile and FSDP2 with 16-bit parameters",
    whole="gradients",
    source="KempnerInstitute/KempnerForge training/grad.py: set_requires_gradient_sync(False) until the last microbatch",
)
_MEGATRON_CORE = Software(
    name="megatron-core",
    title="Megatron Core with Transformer Engine",
    hides=_OF_CORE,
    delayed_weights=True,
    launch=MEGATRON_LAUNCH,
    expert_launch=EXPERT_LAUNCH,
    source="Megatron-LM docs: overlap-grad-reduce, overlap-param-gather, context parallelism by p2p ring",
)
_BRIDGE = replace(
    _MEGATRON_CORE,
    name="megatron-bridge-26.04",
    title="Megatron Bridge's performance recipes until 26.04, with TP overlap, without whole graphs",
    hides=_OVERLAPPED,
    dispatch="ranks",
    fp32_gradients=False,
    adapts=QUERY_KEY_VALUE,
    source=(
        "NVIDIA-NeMo/Megatron-Bridge scripts/performance/configs: DeepEP or HybridEP, graphs of parts of a layer without "
        "the experts, or none; gradients are reduced in 16 bits"
    ),
)
_LLM_FOUNDRY = Software(
    name="llm-foundry",
    title="llm-foundry: eager PyTorch FSDP, Triton attention, 32-bit gradient reduction",
    core="triton",
    by_layer=True,
    update_bytes=EAGER_UPDATE,
    fused_activation=False,
    fused_loss=False,
    source="mosaicml/llm-foundry scripts/train/benchmarking; composer's FSDP mixed_precision DEFAULT",
)

_NEMO = replace(
    _MEGATRON_CORE,
    name="nemo",
    title="NeMo on Megatron Core with communication overlap",
    hides=_OVERLAPPED,
    fp32_gradients=False,
    adapts=QUERY_KEY_VALUE,
    source="NVIDIA/dgxc-benchmarking recipes (tp_comm_overlap, overlap_grad_reduce, overlap_param_gather); "
    "NVIDIA/NeMo-Framework-Launcher examples/training (grad_sync_dtype=bf16); NVIDIA/NeMo collections/llm/recipes: "
    "finetune_performance_optimizations adapts linear_qkv",
)

_TABLE = (
    _MEGATRON_2021,
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
        scatters=False,
        adds_bytes=ADDED_WIDENED,
        adds_fp16_bytes=ADDED_IN_FP16,
        source="arXiv 2201.11990; vTrain's validation runs; deepspeed/runtime/pipe: p2p.py waits, and engine.py has tensor "
        "ranks send their parts (is_pipe_partitioned) and sums gradients by buffered_allreduce_fallback; "
        "gradients of microbatches are summed in 32 bits in bf16, in 16 bits in fp16",
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
    replace(_TORCHTITAN, name="torchtitan-2024", title="torchtitan before its loss was compiled (2024)"),
    _MEGATRON_CORE,
    replace(
        _MEGATRON_CORE,
        name="megatron-core-overlapped",
        title="Megatron Core with overlapped communication and DeepEP",
        hides=_OVERLAPPED,
        dispatch="ranks",
        source="the flags of NeMo's and Megatron Bridge's recipes that every plan can have: tp-comm-overlap, "
        "overlap-grad-reduce, overlap-param-gather, moe-flex-dispatcher-backend; gradients are reduced in 32 bits",
    ),
    replace(
        _MEGATRON_CORE,
        name="megatron-core-plain",
        title="Megatron Core without overlap flags",
        op_gap=_MEGATRON_2021.op_gap,
        context_method="all_to_all",
        hides=frozenset({"context", "expert"}),
        source="SimuMax's simu_tools/megatron_scripts: no overlap-grad-reduce, no overlap-param-gather, no tp-comm-overlap; "
        "cp-comm-type a2a; p2p_communication.py synchronizes the device after messages that do not overlap",
    ),
    _NEMO,
    replace(
        _NEMO,
        name="nemo-2024",
        title="NeMo before 24.09, whose attention has no kernels for Hopper",
        core="flash-2",
        source=f"as nemo ({_NEMO.source}); Transformer Engine before 1.11 calls FlashAttention-2 for context parallelism",
    ),
    _BRIDGE,
    replace(
        _BRIDGE,
        name="megatron-bridge",
        title="Megatron Bridge's performance recipes since 26.06",
        graphs=True,
        expert_launch=0.0,
        source=(
            "NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/perf_recipes, its recipes in MXFP8: HybridEP, full-iteration "
            "graphs, use_transformer_engine_op_fuser; gradients are reduced in 16 bits"
        ),
    ),
    replace(
        _MEGATRON_CORE,
        name="megascale",
        title="MegaScale: Megatron-LM with communication overlap",
        hides=_OVERLAPPED,
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
        name="torchtitan-row-wise",
        title="torchtitan with row-wise scaled 8-bit products",
        gathers_small=False,
        scaling_bytes=ROW_WISE,
        source="pytorch/torchtitan benchmarks, asyncTP 2025-06",
    ),
    Software(
        name="automodel",
        title="NeMo AutoModel: PyTorch FSDP2 with Transformer Engine's kernels and DeepEP",
        dispatch="ranks",
        whole="experts",
        unpacks_bytes=_TORCHTITAN.unpacks_bytes,
        fused_loss=False,
        framework="pytorch",
        source="NVIDIA-NeMo/Automodel examples/llm_benchmark: fsdp2, attn and linear te, deepep, MaskedCrossEntropy; "
        "enable_fsdp_optimizations (MoEFSDPSyncMixin), and defer_fsdp_grad_sync is off for dense models",
    ),
    _KEMPNERFORGE,
    replace(
        _KEMPNERFORGE,
        name="kempnerforge-eager",
        title="KempnerForge without torch.compile",
        launch=EAGER_LAUNCH,
        fused_activation=False,
        apart_bytes=EAGER_NORMS,
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
        delayed_weights=True,
        source="arXiv 2412.19437 section 3.2: 20 of 132 multiprocessors communicate",
    ),
)

SOFTWARE: Mapping[str, Software] = MappingProxyType({row.name: row for row in _TABLE})
"""Software of every trainer by its name."""

EARLY = ("megatron-lm-2021", "zero-bubble", "megatron-deepspeed")
"""Prefixes of software without sequence parallelism and sharded optimizers by default."""


def usual_software(name: str, gpu: Gpu) -> str:
    """Return the software of a trainer on a GPU, where the user names none: on AMD's, Megatron Core runs in Primus."""
    of_core = name.startswith(("megatron-core", "megatron-bridge", "nemo"))
    return "primus" if of_core and gpu.generation.startswith("cdna") else name


def software(name: str) -> Software:
    """Return the software of a trainer by its name, with the traits behind it. Raises UnknownNameError for unknown ones."""
    row = SOFTWARE.get(name.lower())
    if row is None and SEPARATOR in name:
        return _with_traits(name.lower())
    if row is None:
        raise UnknownNameError("software", name, SOFTWARE, field="software")
    return row


@lru_cache(maxsize=256)
def _with_traits(name: str) -> Software:
    begin, *traits = name.split(SEPARATOR)
    made = software(begin)
    for trait in traits:
        change = TRAITS.get(trait)
        if change is None:
            raise UnknownNameError("trait of software", trait, TRAITS, field="software")
        made = replace(made, **{"hides": (made.hides | change.hides) - change.exposes, **change.software})
    words = ", ".join(trait.replace("-", " ") for trait in traits)
    return replace(made, name=name, title=f"{made.title}, with {words}")


def kept_whole(configuration: Configuration) -> tuple[bool, bool]:
    """Return whether a rank holds its sharded weights, and its summed gradients, whole for a step.

    Beside a pipeline it does, because gathering and reducing for every microbatch would take m times as long.
    """
    if configuration.pipeline > 1:
        return configuration.zero >= 3, configuration.zero >= 2
    whole = software(configuration.software).whole if configuration.zero >= 3 else ""
    weights = whole == "experts" and configuration.expert > 1
    return weights, (weights or whole == "gradients") and configuration.microbatches > 1


def gathers_weights(configuration: Configuration) -> bool:
    """Return True if every microbatch gathers sharded weights for F and again for the backward."""
    return configuration.zero >= 3 and not kept_whole(configuration)[0]


def op_gap_of(configuration: Configuration) -> float:
    """Return the overhead between two ops of a configuration, in seconds."""
    own = configuration.op_gap
    return software(configuration.software).op_gap if own is None else own
