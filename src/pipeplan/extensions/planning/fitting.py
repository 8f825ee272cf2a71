"""Comparison of a predicted peak with the memory of a GPU, within the error of the prediction."""

from __future__ import annotations

from pipeplan.extensions.planning.error_bars import table
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.results import Fit
from pipeplan.foundation.files import GIBIBYTE

_CONTEXT_BYTES = 0.8 * GIBIBYTE
"""Bytes that the driver and a process's CUDA context take: of an RTX 4090's 24,564 MiB, processes see 23.64 GiB, and take
0.42 to 0.46 GiB beyond what PyTorch reserves, as its out-of-memory errors print."""

_GROUP_BYTES = 688 * 2**20
"""Bytes of NCCL's buffers for a group of GPUs connected by NVLink (NVIDIA/nccl issue 964)."""

RESERVED = 0.05
"""Median of what PyTorch's allocator reserves beyond what is allocated in SimuMax's 22 runs on B200: 0.03 to 0.08."""


def default_limit(cluster: Cluster) -> float:
    """Return the default memory limit in bytes: what can be allocated if the allocator reserves as much as usual."""
    return largest_limit(cluster) / (1 + RESERVED)


def largest_limit(cluster: Cluster) -> float:
    """Return the bytes that a framework can reserve at most: a GPU's memory less the context and buffers of a group."""
    groups = _GROUP_BYTES if cluster.gpus > 1 else 0
    return cluster.gpu.memory_bytes - _CONTEXT_BYTES - groups


def widest_limit(cluster: Cluster) -> float:
    """Return the largest predicted peak in bytes that could still fit, within the error bar of such predictions."""
    return largest_limit(cluster) / table().memory.low


def comfortable(limit: float) -> float:
    """Return the largest predicted peak in bytes that fits within a limit at the upper end of its error bar, too."""
    return limit / table().memory.high


def fit_of(peak: float, limit: float, widest: float) -> Fit:
    """Return whether a predicted peak in bytes fits within a limit, or could still fit (:func:`widest_limit`)."""
    if peak <= comfortable(limit):
        return "fits"
    return "tight" if peak <= max(limit, widest) else "does not fit"
