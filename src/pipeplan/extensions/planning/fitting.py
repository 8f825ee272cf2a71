"""Comparison of a predicted peak with the memory of a GPU, within the error of the prediction."""

from __future__ import annotations

from pipeplan.extensions.planning.error_bars import table
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.results import Fit
from pipeplan.foundation.files import GIBIBYTE

CONTEXT_BYTES = 1.4 * GIBIBYTE
"""Bytes of a GPU's memory that the CUDA context and NCCL's buffers take."""

RESERVE_BYTES = CONTEXT_BYTES + 3.1 * GIBIBYTE
"""Bytes of a GPU's memory that the default limit leaves free: the context, and 3.1 GiB that the allocator reserves beyond
what is allocated (median of 43 runs of SimuMax's B200 release)."""


def default_limit(cluster: Cluster) -> float:
    """Return the default memory limit in bytes: a GPU's memory minus :data:`RESERVE_BYTES`."""
    return max(cluster.gpu.memory_bytes - RESERVE_BYTES, cluster.gpu.memory_bytes / 2)


def largest_limit(cluster: Cluster) -> float:
    """Return the bytes that a framework can allocate at most: all of a GPU's memory but the context."""
    return max(cluster.gpu.memory_bytes - CONTEXT_BYTES, cluster.gpu.memory_bytes / 2)


def widest_limit(cluster: Cluster) -> float:
    """Return the largest predicted peak in bytes that could still fit, within the error bar of such predictions."""
    return largest_limit(cluster) / table().memory.low


def comfortable(limit: float) -> float:
    """Return the largest predicted peak in bytes that fits within a limit at the upper end of its error bar, too."""
    return limit / table().memory.high


def fit_of(peak: float, limit: float, widest: float) -> Fit:
    """Return whether a predicted peak fits.

    Parameters
    ----------
    peak
        Predicted peak in bytes.
    limit
        Bytes that may be allocated in comfort.
    widest
        Largest predicted peak that could still fit; see :func:`widest_limit`.
    """
    if peak <= comfortable(limit):
        return "fits"
    return "tight" if peak <= max(limit, widest) else "does not fit"
