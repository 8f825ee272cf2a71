"""Hardware model: time of matrix products, memory passes and collectives. It knows nothing about models."""

from pipeplan.extensions.planning.hardware.clusters import cluster, cluster_from
from pipeplan.extensions.planning.hardware.collectives import OPERATIONS, collective_time, p2p_time
from pipeplan.extensions.planning.hardware.efficiency import FORMATS, generation
from pipeplan.extensions.planning.hardware.kernels import (
    attention_time,
    gemm_time,
    grouped_gemm_time,
    host_time,
    memory_time,
    optimizer_time,
)
from pipeplan.extensions.planning.hardware.presets import PRESETS, Node, Preset, gpu, preset
from pipeplan.extensions.planning.hardware.sheets import Cluster, Gpu, Link

__all__ = [
    "FORMATS",
    "OPERATIONS",
    "PRESETS",
    "Cluster",
    "Gpu",
    "Link",
    "Node",
    "Preset",
    "attention_time",
    "cluster",
    "cluster_from",
    "collective_time",
    "gemm_time",
    "generation",
    "gpu",
    "grouped_gemm_time",
    "host_time",
    "memory_time",
    "optimizer_time",
    "p2p_time",
    "preset",
]
