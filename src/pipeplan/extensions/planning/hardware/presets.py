"""Presets of GPUs for training and of their usual nodes: data sheets with their sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from pipeplan.extensions.planning.hardware.sheets import Gpu, Link
from pipeplan.foundation.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Usual node of a GPU.

    Attributes
    ----------
    per_node
        GPUs per node.
    inside, between
        Links within the node, and to other nodes.
    domain
        Maximum number of GPUs that ``inside`` joins if it spans several nodes (NVL72); 0: the node's.
    """

    per_node: int
    inside: Link
    between: Link
    domain: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """GPU with its usual node."""

    gpu: Gpu
    node: Node
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the GPU."""
        return self.gpu.name


_SURVEY = "vendor sheets as collected in stas00/ml-engineering compute/accelerator (744d01e1)"
_T, _G = 1e12, 1e9

_NVLINK3 = Link(bandwidth=300 * _G, latency=5.5e-6)
"""Latencies: the fixed part of an all-reduce of 8 GPUs is 2 (8 - 1) of them and a launch: 85 us in vTrain's A100 tables, 22
us in SimuMax's B200 file; Hopper's lies between."""
_NVLINK4 = Link(bandwidth=450 * _G, latency=2e-6)
_NVLINK5 = Link(bandwidth=900 * _G, latency=1e-6)
"""Latencies: the fixed part of an all-reduce of 8 GPUs is 2 (8 - 1) of them and a launch: 85 us in vTrain's A100 tables, 22
us in SimuMax's B200 file; Hopper's is between them."""


def _network(gigabits: float) -> Link:
    """Return a network link with one port per GPU.

    Latency: 1 MiB takes 119 us over four nodes (stas00/ml-engineering, network benchmarks).
    """
    return Link(bandwidth=gigabits / 8 * _G, latency=8e-6)


def _mesh(peer: float) -> Link:
    """Return seven links, one to each other GPU of a node."""
    return Link(bandwidth=7 * peer * _G, latency=3e-6, peer_bandwidth=peer * _G)


def _pcie(gigabytes: float) -> Link:
    return Link(bandwidth=gigabytes * _G, latency=8e-6)


def _gpu(
    name: str,
    generation: str,
    multiprocessors: int,
    *,
    tflops: tuple[float, ...],
    memory: float,
    bandwidth: float,
    host: float,
    sustained: float = 1.0,
    source: str = _SURVEY,
) -> Gpu:
    """Return a GPU from TFLOP/s in 16, 8 and 4 bits, bytes of memory, TB/s of memory, and GB/s to the host each way."""
    return Gpu(
        name=name,
        peak=MappingProxyType({kind: rate * _T for kind, rate in zip(("bf16", "fp8", "fp4"), tflops, strict=False)}),
        memory_bytes=memory,
        memory_bandwidth=bandwidth * _T,
        host_bandwidth=host * _G,
        source=source,
        generation=generation,
        multiprocessors=multiprocessors,
        sustained=sustained,
    )


_MIB, _GIB = 1 << 20, 1 << 30
"""Memory is as the driver reports it; data sheets use either kind of GB."""

_1000_W, _1100_W, _1200_W = 1000 / 1400, 1100 / 1400, 1200 / 1400
"""Blackwell's products run at a rate that the power allows: DGX B200, DGX B300 and GB200 have this fraction of GB300's 1400
W."""

_A100 = Node(per_node=8, inside=_NVLINK3, between=_network(200))
_H100 = Node(per_node=8, inside=_NVLINK4, between=_network(400))
_B200 = Node(per_node=8, inside=_NVLINK5, between=_network(400))
_B300 = Node(per_node=8, inside=_NVLINK5, between=_network(800))
_GB200 = Node(per_node=4, inside=_NVLINK5, between=_network(400), domain=72)
_GB300 = Node(per_node=4, inside=_NVLINK5, between=_network(800), domain=72)
_MI300 = Node(per_node=8, inside=_mesh(64), between=_network(400))
_MI355 = Node(per_node=8, inside=_mesh(76.5), between=_network(400))

_HOPPER = (989, 1979)
_GB = (2450, 4900, 9800)

_TABLE = (
    Preset(
        gpu=_gpu("a100-sxm-40gb", "ampere", 108, tflops=(312,), memory=40 * _GIB, bandwidth=1.555, host=25),
        node=_A100,
        aliases=("a100-40gb",),
    ),
    Preset(
        gpu=_gpu("a100-sxm-80gb", "ampere", 108, tflops=(312,), memory=80 * _GIB, bandwidth=2.039, host=25),
        node=_A100,
        aliases=("a100", "a100-80gb", "a100-sxm", "a100 (nvidia ampere)", "dgx-a100"),
    ),
    Preset(
        gpu=_gpu(
            "a100-pcie-80gb", "ampere", 108, tflops=(312,), memory=80 * _GIB, bandwidth=1.935, host=25, sustained=0.9
        ),
        node=Node(per_node=8, inside=_pcie(25), between=_network(200)),
        aliases=("a100-pcie",),
    ),
    Preset(
        gpu=_gpu("a800-sxm-80gb", "ampere", 108, tflops=(312,), memory=80 * _GIB, bandwidth=2.039, host=25),
        node=replace(_A100, inside=replace(_NVLINK3, bandwidth=200 * _G)),
        aliases=("a800", "a800-sxm"),
    ),
    Preset(
        gpu=_gpu("h100-sxm", "hopper", 132, tflops=_HOPPER, memory=81_559 * _MIB, bandwidth=3.35, host=50),
        node=_H100,
        aliases=("h100", "h100-sxm-80gb", "h100-80gb", "h100-sxm5", "dgx-h100"),
    ),
    Preset(
        gpu=_gpu(
            "h100-sxm-96gb-hbm2e",
            "hopper",
            132,
            tflops=_HOPPER,
            memory=96 * _GIB,
            bandwidth=2.4,
            host=50,
            sustained=(500 / 700) ** (2 / 3),  # 500 W of 700: clocks fall slower than power
        ),
        node=_H100,
        aliases=("h100-sxm-96gb-hbm2e-500w", "h100-96gb"),
    ),
    Preset(
        gpu=_gpu("h200-sxm", "hopper", 132, tflops=_HOPPER, memory=143_771 * _MIB, bandwidth=4.8, host=50),
        node=_H100,
        aliases=("h200", "h200-sxm-141gb", "h200-141gb"),
    ),
    Preset(
        gpu=_gpu(
            "gh200",
            "hopper",
            132,
            tflops=_HOPPER,
            memory=96 * _GIB,
            bandwidth=4.0,
            host=400,
            source="NVIDIA GH200 data sheet: 96 GB HBM3, NVLink-C2C 450 GB/s each way",
        ),
        node=Node(per_node=4, inside=_NVLINK4, between=_network(400)),
    ),
    Preset(
        gpu=_gpu(
            "h800-sxm",
            "hopper",
            132,
            tflops=_HOPPER,
            memory=81_559 * _MIB,
            bandwidth=3.35,
            host=50,
            source="as H100 with NVLink of 400 GB/s both ways together (arXiv 2412.19437 section 3.1)",
        ),
        node=replace(_H100, inside=replace(_NVLINK4, bandwidth=200 * _G)),
        aliases=("h800", "h800-sxm-80gb", "h800-80gb"),
    ),
    Preset(
        gpu=_gpu(
            "h20",
            "hopper",
            78,
            tflops=(148, 296),
            memory=96 * _GIB,
            bandwidth=4.0,
            host=50,
            source="NVIDIA H20 figures as published by its board makers",
        ),
        node=_H100,
        aliases=("h20-sxm", "h20-96gb"),
    ),
    Preset(
        gpu=_gpu(
            "b200-sxm",
            "blackwell",
            148,
            tflops=(2250, 4500, 9000),
            memory=183_359 * _MIB,
            bandwidth=8.0,
            host=50,
            sustained=_1000_W,
        ),
        node=_B200,
        aliases=("b200", "b200-180gb", "dgx-b200"),
    ),
    Preset(
        gpu=_gpu(
            "b300-sxm",
            "blackwell",
            148,
            tflops=(2250, 4500, 13500),
            memory=275_040 * _MIB,
            bandwidth=8.0,
            host=100,
            sustained=_1100_W,
        ),
        node=_B300,
        aliases=("b300", "dgx-b300"),
    ),
    Preset(
        gpu=_gpu(
            "gb200", "blackwell", 148, tflops=_GB, memory=189_471 * _MIB, bandwidth=8.0, host=400, sustained=_1200_W
        ),
        node=_GB200,
        aliases=("gb200-nvl72",),
    ),
    Preset(
        gpu=_gpu("gb300", "blackwell", 148, tflops=(2450, 4900, 14700), memory=275_040 * _MIB, bandwidth=8.0, host=400),
        node=_GB300,
        aliases=("gb300-nvl72",),
    ),
    Preset(
        gpu=_gpu(
            "mi300x",
            "cdna3",
            304,
            tflops=(1307, 2614),
            memory=192 * _GIB,
            bandwidth=5.3,
            host=50,
            sustained=0.51 / 0.60,  # 750 W of MI325X's 1000: rates of the survey's best shapes
        ),
        node=_MI300,
        aliases=("mi300",),
    ),
    Preset(
        gpu=_gpu("mi325x", "cdna3", 304, tflops=(1307, 2614), memory=256 * _GIB, bandwidth=6.0, host=50),
        node=_MI300,
        aliases=("mi325",),
    ),
    Preset(
        gpu=_gpu("mi355x", "cdna4", 256, tflops=(2500, 5000, 10000), memory=288 * _GIB, bandwidth=8.0, host=50),
        node=_MI355,
        aliases=("mi355",),
    ),
    Preset(
        gpu=_gpu(
            "v100-sxm-32gb",
            "volta",
            80,
            tflops=(125,),
            memory=32 * _GIB,
            bandwidth=0.9,
            host=12,
            source="NVIDIA V100 data sheet (fp16; it has no bf16)",
        ),
        node=Node(per_node=8, inside=Link(bandwidth=150 * _G, latency=6e-6), between=_network(100)),
        aliases=("v100", "v100-sxm2", "v100-32gb"),
    ),
    Preset(
        gpu=_gpu(
            "l40s",
            "ada",
            142,
            tflops=(362, 733),
            memory=46_068 * _MIB,
            bandwidth=0.864,
            host=25,
            source="NVIDIA L40S data sheet, without sparsity",
        ),
        node=Node(per_node=8, inside=_pcie(25), between=_network(200)),
    ),
    Preset(
        gpu=_gpu(
            "rtx-4090",
            "ada",
            128,
            tflops=(165, 330),
            memory=24 * _GIB,
            bandwidth=1.008,
            host=25,
            source="NVIDIA Ada whitepaper: tensor throughput with 32-bit accumulation, without sparsity",
        ),
        node=Node(per_node=8, inside=_pcie(20), between=_network(100)),
        aliases=("4090", "rtx4090"),
    ),
)

PRESETS = Registry(
    "pipeplan.gpus",
    Preset,
    "GPU",
    lambda: _TABLE,
    names=lambda preset: (preset.name, *preset.aliases),
    plain=lambda name: " ".join(name.lower().replace("_", "-").split()),
)
"""Every preset by the name of its GPU: those of pipeplan, then registered ones and plugins."""


def preset(name: str) -> Preset:
    """Return the preset of a GPU by its name or an alias.

    Raises UnknownNameError if the name is unknown; names the nearest one.
    """
    return PRESETS.required(name, field="cluster")


def gpu(name: str) -> Gpu:
    """Return a GPU by its name or an alias. Raises UnknownNameError if the name is unknown; names the nearest one."""
    return preset(name).gpu
