"""What a trainer's software is: its kernels, the communication that it hides, what it loses; and all that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from pipeplan.errors import UnknownNameError
from pipeplan.planner.configuration import Configuration
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
    """The software of one trainer.

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
    """Return the seconds that each op of a configuration loses besides its work."""
    own = configuration.op_gap
    return software(configuration.software).op_gap if own is None else own
