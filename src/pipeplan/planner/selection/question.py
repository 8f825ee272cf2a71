"""What a plan is asked: a model, a cluster, a batch, and what is decided already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pipeplan.errors import InputError, ShapeError
from pipeplan.files import GIBIBYTE
from pipeplan.hardware import Cluster
from pipeplan.workload import ModelShape

RESERVE_BYTES = 4.5 * GIBIBYTE
"""What a limit by default leaves of a GPU's memory: the allocator reserves 3.1 GiB more than is allocated (median of 43 runs
of SimuMax's B200 release), and the context and NCCL's buffers take about 1.4 GiB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A model to train on all GPUs of a cluster.

    Attributes
    ----------
    model, cluster
        What, and on what.
    global_batch, sequence
        Sequences in a step, and tokens in a sequence.
    memory_limit
        Of a GPU; bytes that the framework may allocate.
    fixed
        By field, the values that it may have.

    Raises
    ------
    ShapeError
        For less than one GPU, sequence in a batch or token in a sequence.
    InputError
        For a memory limit that is not more than 0.
    """

    model: ModelShape
    cluster: Cluster
    global_batch: int
    sequence: int
    memory_limit: float
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name in ("global_batch", "sequence"):
            if getattr(self, name) < 1:
                raise ShapeError(f"{name} must be at least 1, not {getattr(self, name)}", field=name)
        if self.gpus < 1:
            raise ShapeError(
                f"a plan needs GPUs: {self.cluster.nodes} nodes with {self.cluster.per_node} each have none",
                field="cluster",
            )
        if not self.memory_limit > 0:
            raise InputError(
                f"a memory limit must be more than 0, not {self.memory_limit:g} bytes", field="memory_limit"
            )

    @property
    def gpus(self) -> int:
        """All of the cluster's."""
        return self.cluster.gpus


def default_limit(cluster: Cluster) -> float:
    """What a framework may allocate where nobody says: a GPU's memory less :data:`RESERVE_BYTES`; bytes."""
    return max(cluster.gpu.memory_bytes - RESERVE_BYTES, cluster.gpu.memory_bytes / 2)
