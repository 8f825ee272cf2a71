"""Trainers by name: which kernels they run, which communication they hide, and what they lose between ops.

A prediction is of hardware *and* of the software on it: the same products take a fifth longer where attention is not one
kernel, where collectives wait, or where Python cannot launch fast enough. Each row says where its entries are from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from pipeplan.errors import UnknownNameError
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.trainer import (
    ADDED_APART,
    EAGER_LAUNCH,
    EAGER_NORMS,
    EAGER_UPDATE,
    MEGATRON_LAUNCH,
    ROW_WISE,
    Software,
)

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
    source="pytorch/torchtitan docs: FSDP2 gathers ahead, copies out of its buffer, reduces in 32 bits beside computation",
)
_MEGATRON_CORE = Software(
    name="megatron-core",
    title="Megatron Core with Transformer Engine",
    launch=MEGATRON_LAUNCH,
    source="Megatron-LM docs: overlap-grad-reduce, overlap-param-gather, context parallelism by p2p ring",
)
_LLM_FOUNDRY = Software(
    name="llm-foundry",
    title="llm-foundry: PyTorch FSDP, eager, attention by Triton; gradients reduced in 32 bits",
    core="triton",
    update_bytes=EAGER_UPDATE,
    fused_activation=False,
    fused_loss=False,
    source="mosaicml/llm-foundry scripts/train/benchmarking; composer's FSDP mixed_precision DEFAULT",
)

_TABLE = (
    _MEGATRON_2021,
    replace(
        _MEGATRON_2021,
        name="megatron-lm-2021-unfused",
        title="Megatron-LM of 2021, whose products do not add to gradients",
        adds_bytes=ADDED_APART,
        source="arXiv 2104.04473; --no-gradient-accumulation-fusion came with the fusion, in 2022",
    ),
    replace(
        _MEGATRON_2021,
        name="zero-bubble",
        title="the zero-bubble authors' fork of Megatron-LM, without the optimizer's barrier",
        barrier=False,
        source="ICLR 2024, sections 4 and 5 (post-validation)",
    ),
    replace(
        _MEGATRON_2021,
        name="megatron-deepspeed",
        title="Megatron-DeepSpeed (2021 to 2023): DeepSpeed's pipeline, whose messages wait",
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
    _MEGATRON_CORE,
    replace(
        _MEGATRON_CORE,
        name="megatron-core-plain",
        title="Megatron Core as it runs without flags for overlap",
        context_method="all_to_all",
        hides=frozenset({"context"}),
        source="SimuMax's simu_tools/megatron_scripts: no overlap-grad-reduce, no overlap-param-gather, no tp-comm-overlap; "
        "cp-comm-type a2a",
    ),
    replace(
        _MEGATRON_CORE,
        name="megatron-core-unfused-loss",
        title="Megatron Core without --cross-entropy-loss-fusion, which is its default",
        fused_loss=False,
        source="Megatron-LM tests/functional_tests/test_cases, model_config.yaml of the release tests",
    ),
    replace(
        _MEGATRON_CORE,
        name="nemo",
        title="NeMo on Megatron Core: communication beside products",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        source="NVIDIA/dgxc-benchmarking recipes (tp_comm_overlap, overlap_grad_reduce, overlap_param_gather)",
    ),
    replace(
        _MEGATRON_CORE,
        name="megatron-bridge",
        title="Megatron Bridge's performance recipes since 26.06: exchanges of experts beside the other microbatch",
        hides=frozenset({"tensor", "context", "expert", "data", "parameters"}),
        dispatch="ranks",
        graphs=True,
        fp32_gradients=False,
        source=(
            "NVIDIA-NeMo/Megatron-Bridge docs/performance-guide.md and scripts/performance/configs: HybridEP, "
            "moe_a2a_overlap, full-iteration graphs; FP8 recipes reduce gradients in 16 bits"
        ),
    ),
    replace(
        _MEGATRON_CORE,
        name="megatron-bridge-26.04",
        title="Megatron Bridge's performance recipes until 26.04: graphs, communication of tensor ranks beside products",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        dispatch="ranks",
        graphs=True,
        fp32_gradients=False,
        source="as megatron-bridge, recipes before moe_a2a_overlap",
    ),
    replace(
        _MEGATRON_CORE,
        name="megatron-bridge-26.02",
        title="Megatron Bridge's performance recipes until 26.02: as until 26.04, without whole graphs",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        dispatch="ranks",
        fp32_gradients=False,
        source="as megatron-bridge; its recipes of that time capture parts of a layer, or nothing",
    ),
    replace(
        _MEGATRON_CORE,
        name="megascale",
        title="MegaScale: Megatron-LM with communication beside products",
        hides=frozenset({"tensor", "context", "data", "parameters"}),
        source="arXiv 2402.15627 section 3",
    ),
    replace(_MEGATRON_CORE, name="primus", title="Primus on Megatron Core, AMD", source="AMD-AGI/Primus"),
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
        title="torchtitan with products in 8 bits that are scaled row by row",
        small_reach=ROW_WISE,
        source="pytorch/torchtitan benchmarks, asyncTP 2025-06",
    ),
    replace(
        _TORCHTITAN,
        name="torchtitan-row-wise-async-tp",
        title="torchtitan with row-wise scaling and asynchronous tensor parallelism",
        hides=_TORCHTITAN.hides | {"tensor"},
        small_reach=ROW_WISE,
        source="pytorch/torchtitan benchmarks, asyncTP 2025-06",
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
        title="DeepSeek's HAI-LLM: FP8, DualPipe, all-to-all beside the other microbatch",
        hides=frozenset({"context", "expert", "data", "parameters"}),
        dispatch="ranks",
        reserved=20 / 132,
        source="arXiv 2412.19437 section 3.2: 20 of 132 multiprocessors communicate",
    ),
)

SOFTWARE: Mapping[str, Software] = MappingProxyType({each.name: each for each in _TABLE})
"""Every trainer by its name."""


def software(name: str) -> Software:
    """The trainer of this name.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    found = SOFTWARE.get(name.lower())
    if found is None:
        raise UnknownNameError("software", name, SOFTWARE, field="software")
    return found


def op_gap_of(configuration: Configuration) -> float:
    """What each op of a configuration loses besides; seconds."""
    own = configuration.op_gap
    return software(configuration.software).op_gap if own is None else own
