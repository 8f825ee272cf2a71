"""Data sheets of GPUs, links and clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """Data sheet of a GPU.

    Attributes
    ----------
    name
        Name such as ``h100-sxm``.
    peak
        Dense FLOP/s by format: ``bf16`` (and fp16), ``fp8``, ``fp4``.
    memory_bytes, memory_bandwidth
        Memory in bytes, and its bandwidth in bytes/s.
    host_bandwidth
        Bandwidth to and from the host, bytes/s each way.
    price
        Price of an hour in dollars; None: unknown.
    source
        Source of the numbers.
    generation
        Generation of its kernels: a name of :data:`pipeplan.extensions.planning.hardware.efficiency.GENERATIONS`.
    multiprocessors
        Number of multiprocessors (SMs or compute units) that share a kernel's tiles.
    sustained
        Rate of products that its power sustains, relative to the generation's GPU with the most power.
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

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Gpu], tuple[dict[str, Any]]]:
        """Pickle and copy the fields, with the peaks as a dict, because Python does not pickle read-only mappings."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _gpu_of, (values | {"peak": dict(self.peak)},)


def _gpu_of(values: dict[str, Any]) -> Gpu:
    return Gpu(**values | {"peak": MappingProxyType(values["peak"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Link between GPUs.

    Attributes
    ----------
    bandwidth
        Bandwidth of one GPU, one way; bytes/s by its data sheet.
    latency
        Latency of one message in seconds.
    peer_bandwidth
        Bandwidth between two GPUs if it is lower (a mesh); None: the same.
    """

    bandwidth: float
    latency: float
    peer_bandwidth: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cluster of equal GPUs in nodes.

    Attributes
    ----------
    per_node, nodes
        GPUs per node, and number of nodes.
    inside, between
        Links within a node (NVLink), and from a GPU of one node to a GPU of another.
    domain
        Number of GPUs that ``inside`` joins: the node's, or more (NVL72).
    """

    gpu: Gpu
    per_node: int
    nodes: int
    inside: Link
    between: Link
    domain: int = field(default=0)

    @property
    def gpus(self) -> int:
        """Total number of GPUs."""
        return self.per_node * self.nodes

    @property
    def joined(self) -> int:
        """Number of GPUs that ``inside`` joins."""
        return self.domain or self.per_node
