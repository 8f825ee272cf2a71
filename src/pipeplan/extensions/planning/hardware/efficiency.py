"""Efficiency of kernels and collectives relative to data sheets: every constant of the roofline, with its source.

A constant belongs to a generation of GPUs and its libraries, never to one machine, model or paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pipeplan.foundation.errors import UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Efficiency of a fused attention core.

    Attributes
    ----------
    reach
        Fraction of the 16-bit peak for many keys and with all multiprocessors busy.
    half_keys
        Number of keys at which half of that is reached.
    half_dim
        Dimension per head at which the exponentials of the scores take as long as the products: peak FLOPs per
        multiprocessor and clock, over 4 FLOPs per score and dimension, times 16 exponentials per clock.
    block
        Queries per block. The last block of a causal mask sees all keys and leaves one multiprocessor busy at the end
        (causal tail).
    """

    reach: float
    half_keys: float
    half_dim: float
    block: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Efficiency of one generation's kernels.

    Attributes
    ----------
    gemm
        Fraction of the peak that full waves of tiles of a long product reach, by number format.
    accumulating
        Factor on it if the result is added to a 32-bit one.
    grouped
        Factor on it for the products of many experts, which run side by side; one expert's product is a plain one.
    fill
        Cost of filling and draining a tile's pipeline, in steps of the inner dimension.
    tiles
        Rows and columns of the library's tiles, the best first, with their rates relative to the best one.
    quantised
        Fraction of a partial last wave that is lost: 1 for a full wave's time, 0 for persistent kernels.
    forward, backward
        Fused attention, forward and backward.
    memory
        Fraction of the memory bandwidth that long elementwise passes reach.
    small
        Fraction of the peak of a recurrence's products of 64 to 128 rows in Triton, between reading and writing memory; too
        low to be limited by power.
    kernel
        Additional seconds per kernel: launch on a busy stream, ramp and tail.
    ring, lost
        Fraction of a joined group's bandwidth that a ring of many GPUs reaches; one of n GPUs reaches 1 - lost/n of it.
    switch
        Rate of all-reduces within the switch (NVLink SHARP) relative to a ring's; 0 if the switch cannot reduce.
    beside
        Factor on the time of computation beside an exchange with experts, which takes multiprocessors and memory bandwidth.
    """

    gemm: Mapping[str, float] = field(hash=False)
    accumulating: float = 0.95
    grouped: float = 0.83
    fill: float = 128.0
    tiles: tuple[tuple[int, int, float], ...] = ((256, 128, 1.0), (128, 256, 1.0), (128, 128, 0.94), (64, 64, 0.7))
    quantised: float = 0.8
    forward: Attention
    backward: Attention
    memory: float = 0.85
    small: float = 0.19
    kernel: float = 3e-6
    ring: float = 0.81
    lost: float = 0.0
    switch: float = 0.0
    beside: float = 1.18


_AMPERE = Generation(
    gemm=MappingProxyType({"bf16": 0.8}),
    forward=Attention(reach=0.68, half_keys=200, half_dim=32),
    backward=Attention(reach=0.62, half_keys=300, half_dim=32, block=64),
    memory=0.88,
    lost=0.36,
)
"""gemm: .869 is the best shape's for a moment (survey), a step's products fall to .92 of it: fitted on 19 models on A100, of
which no single one decides the fit. W of zero-bubble's Table 9 runs at .76 to .82 of the peak. fill: SimuMax's A100 file,
products with an inner dimension of 512 to 4096. forward, backward: FlashAttention-2, arXiv 2307.08691 figures 4 to 6, read
from them. memory: fitted with gemm; long copies reach 1.8 of 2.04 TB/s. ring, lost: vTrain's tables from 64 MiB to 1 GiB are
lines of 231, 225 and 200 of 300 GB/s with 8, 4 and 2 GPUs (VIA-Research/vTrain trace/a100); 235 with 8 (network/README.md of
stas00/ml-engineering). beside, here and where no run gives it: 15% of the
multiprocessors, ``processor_usage`` of NVLink in Calculon's A100 file."""

_HOPPER = Generation(
    gemm=MappingProxyType({"bf16": 0.655, "fp8": 0.56}),
    forward=Attention(reach=0.70, half_keys=250, half_dim=64),
    backward=Attention(reach=0.62, half_keys=400, half_dim=64, block=64),
    quantised=0.6,
    fill=192.0,
    memory=0.85,
    kernel=2.5e-6,
    switch=0.83,
    beside=1.5,
)
"""gemm: the best shape reaches .80 and .71 for a moment (survey), a step's products fall to about .82 and .79 of it by
power: fitted on the dense rows of DGX Cloud, MPT and Megatron Bridge (H100).
forward, backward: FlashAttention-3, arXiv 2407.08608 figures 5 and 6, read from them. ring, switch: 361 to 368 of 450 GB/s
for all three operations on 4 to 8 H200, and 1.14, 1.19, 1.26 and 1.29 times as much for all-reduces of 5 to 8
(network/README.md of stas00/ml-engineering); NCCL's src/graph/tuning.cc has .85. small: after the time of memory, the gated
delta rule reaches 204 TFLOP/s on H800 (PaddlePaddle/flash-attention pull request 133), Mamba-2's scan 150 to 195 on H100
(vllm-project/vllm pull request 27299). beside: Qwen3 30B on 16 H100 gains 15.1% by pairs (Megatron-Bridge pull request
5094); 32 of 132 multiprocessors move its tokens, which would be 1.32."""

_BLACKWELL = Generation(
    gemm=MappingProxyType({"bf16": 0.68, "fp8": 0.62, "fp4": 0.42}),
    forward=Attention(reach=0.75, half_keys=64, half_dim=128, block=256),
    backward=Attention(reach=0.58, half_keys=64, half_dim=128, block=64),
    quantised=0.5,
    fill=256.0,
    memory=0.7,
    small=0.09,
    kernel=2.5e-6,
    ring=0.755,
    switch=0.70,
    beside=1.0,
)
"""For a GPU of 1400 W; those with less power sustain less (``Gpu.sustained``). gemm: .48, the median of 514 shapes on a B200
of 1000 W (SimuMax), over 1000/1400; the best shape reaches .78 for a moment (survey). fp4: fitted on the dense NVFP4 rows of
Megatron Bridge (GB200, GB300). forward, backward: SimuMax's 20 shapes of each, causal halves counted. memory: that file's
default. ring: 673 to 682 of 900 GB/s on 4 to 8 B200; switch: 646 to 723 for all-reduces of 256 MiB to 1 GiB on 8
(network/README.md of stas00/ml-engineering), .742 of 900 in that file; NCCL has .74. small: the gated delta rule reaches 275
TFLOP/s forward and 150 backward on a B200 of 1000 W (pytorch/helion examples/linear/BENCHMARKS.md). beside: the 25 rows of
Megatron Bridge from 26.06 on whose recipes have pairs are 1% too slow on average; with 1.15, 4%."""

_CDNA3 = Generation(
    gemm=MappingProxyType({"bf16": 0.51, "fp8": 0.45}),
    forward=Attention(reach=0.53, half_keys=380, half_dim=32),
    backward=Attention(reach=0.42, half_keys=390, half_dim=32),
    tiles=((256, 256, 1.0), (256, 128, 0.95), (128, 128, 0.85)),
    memory=0.75,
    kernel=4e-6,
    ring=0.70,
)
"""For a GPU of 1000 W (MI325X). gemm: the survey's best shape reaches .60 there; whole steps .85 of that, as on Hopper.
forward, backward: causal rows of ROCm/aiter op_tests/cpp/mha/README.md (MI300X, 32-bit sums). ring: 313 of 448 GB/s on 8
MI300X, 48 of 64 on 2 (network/README.md of stas00/ml-engineering): checksums and protocol (ROCm/rccl issue 1210)."""

_CDNA4 = replace(
    _CDNA3,
    gemm=MappingProxyType({"bf16": 0.48, "fp8": 0.38, "fp4": 0.34}),
    forward=Attention(reach=0.59, half_keys=550, half_dim=64),
    backward=Attention(reach=0.33, half_keys=330, half_dim=64),
)
"""gemm: AMD's kernels reach 1250 to 1550 of 2500 TFLOP/s in 16 bits and 1800 to 1980 of 5000 in 8 bits on MI355X
(AMD-AGI/Primus-Turbo, pull requests 274 and 284); whole steps .85 of that in 16 bits. forward, backward: the rows of MI355X
in ROCm/aiter's table."""

GENERATIONS: Mapping[str, Generation] = MappingProxyType(
    {
        "volta": Generation(
            gemm=MappingProxyType({"bf16": 0.72}),
            forward=Attention(reach=0.35, half_keys=240, half_dim=16),
            backward=Attention(reach=0.3, half_keys=300, half_dim=16),
            memory=0.8,
        ),
        "ampere": _AMPERE,
        "ada": Generation(
            gemm=MappingProxyType({"bf16": 0.8, "fp8": 0.7}),
            forward=Attention(reach=0.6, half_keys=240, half_dim=16),
            backward=Attention(reach=0.5, half_keys=300, half_dim=16),
            memory=0.85,
        ),
        "hopper": _HOPPER,
        "blackwell": _BLACKWELL,
        "cdna3": _CDNA3,
        "cdna4": _CDNA4,
    }
)
"""Efficiency by generation (``Gpu.generation``)."""

FORMATS: Mapping[str, str] = MappingProxyType(
    {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
)
"""Format whose peak applies, by precision."""

BYTES: Mapping[str, float] = MappingProxyType({"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625})
"""Bytes per number by format; 4-bit numbers include one scale per 16 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEfficiency:
    """Fractions of a link's bandwidth that messages reach, and latencies of collectives.

    Attributes
    ----------
    all_to_all
        Fraction of a joined group's bandwidth for all-to-alls.
    network
        Fraction of the network bandwidth; ``network_all_to_all`` for all-to-alls, whose messages are small;
        ``network_by_node`` if a token is sent once per node, because these kernels combine messages.
    message
        Fraction of the bandwidth that one pair of GPUs reaches.
    launch
        Seconds of a ring or tree besides its steps and its transfer; ``message_launch`` for messages between two GPUs.
    switch
        Seconds of an all-reduce within the switch.
    crossing, posting
        Seconds of a ring's step across the network, and of one within a node if the ring crosses the network.
    """

    all_to_all: float
    network: float
    network_all_to_all: float
    network_by_node: float
    message: float
    launch: float
    message_launch: float
    switch: float
    crossing: float
    posting: float


LINKS = LinkEfficiency(
    all_to_all=0.60,
    network=0.90,
    network_all_to_all=0.60,
    network_by_node=0.88,
    message=0.80,
    launch=40e-6,
    message_launch=8e-6,
    switch=25e-6,
    crossing=14e-6,
    posting=6e-6,
)
"""all_to_all: SimuMax's B200 file. network: Calculon's A100 file. message: Primus' default. network_by_node: DeepEP's
kernels carry 43 to 51 of 50 GB/s over 16 to 64 ranks (its README). launch: what all-reduces on 2, 4 and 8 A100, 8 H200 and
8 B200 take besides steps and transfers (sources of ``Generation.ring``): 38 to 52 us. switch, crossing, posting: NCCL's
src/graph/tuning.cc: NVLS, rings with the simple protocol over the network, and three times the overhead of posting."""


def generation(name: str) -> Generation:
    """Return the efficiency of a generation of GPUs."""
    kernels = GENERATIONS.get(name)
    if kernels is None:
        raise UnknownNameError("generation of GPUs", name, GENERATIONS, field="generation")
    return kernels
