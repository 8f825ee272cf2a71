"""GPUs, links and clusters: data sheets, not behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The data sheet of a GPU.

    Attributes
    ----------
    name
        Such as ``h100-sxm``.
    peak
        Dense FLOP/s by format: ``bf16`` (and fp16), ``fp8``, ``fp4``.
    memory_bytes, memory_bandwidth
        Of its own memory; bytes, bytes/s.
    host_bandwidth
        To and from the host, each way; bytes/s.
    price
        Of an hour of it, in any currency; None where nobody said.
    source
        Where the numbers are from.
    generation
        Whose kernels it runs: a name of :data:`pipeplan.hardware.efficiency.GENERATIONS`.
    multiprocessors
        That share a kernel's tiles (SMs, or compute units).
    sustained
        What its power lets products sustain of what the GPU of its generation with the most power does; 1: as much.
    """

    name: str
    peak: Mapping[str, float] = field(hash=False)
    memory_bytes: float
    memory_bandwidth: float
    host_bandwidth: float = 25e9
    price: float | None = None
    source: str = ""
    generation: str = "hopper"
    multiprocessors: int = 132
    sustained: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The link by which GPUs reach each other.

    Attributes
    ----------
    bandwidth
        Of one GPU, one way; bytes/s by its data sheet.
    latency
        Of one message; seconds.
    peer_bandwidth
        What one GPU reaches one other with, where that is less (a mesh); None: the same.
    """

    bandwidth: float
    latency: float
    peer_bandwidth: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Equal GPUs in nodes.

    Attributes
    ----------
    per_node, nodes
        GPUs of a node, and nodes.
    inside, between
        The links of a node's GPUs (NVLink), and from a GPU of one node to a GPU of another.
    domain
        GPUs that ``inside`` joins: the node's, or more (NVL72).
    """

    gpu: Gpu
    per_node: int
    nodes: int
    inside: Link
    between: Link
    domain: int = field(default=0)

    @property
    def gpus(self) -> int:
        """The number of all GPUs."""
        return self.per_node * self.nodes

    @property
    def joined(self) -> int:
        """The number of GPUs that ``inside`` joins."""
        return self.domain or self.per_node
