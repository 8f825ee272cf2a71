"""Environment of Megatron's processes, and its dispatcher of tokens, for a plan."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.extensions.planning import Configuration, software
from pipeplan.extensions.planning.estimates.running import hides_exchanges
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.trainers.megatron import FSDP

_FREE_CONNECTIONS = frozenset({"blackwell"})
"""GPU generations on which the number of device connections does not order communication before kernels."""


def environment(cluster: Cluster, configuration: Configuration) -> Iterator[str]:
    """Yield the environment variables of every process that ``validate_args`` requires."""
    if hides_exchanges(configuration):
        yield "export CUDA_DEVICE_MAX_CONNECTIONS=32  # exchanges wait for kernels of other streams with few connections"
    elif shards_as_fsdp(configuration):
        yield "unset CUDA_DEVICE_MAX_CONNECTIONS  # Megatron FSDP refuses 1"
    elif configuration.tensor * configuration.context > 1 and cluster.gpu.generation not in _FREE_CONNECTIONS:
        yield "export CUDA_DEVICE_MAX_CONNECTIONS=1  # required for tensor and context parallelism before Blackwell"
    if configuration.most_offloaded > 0:
        yield "export NVTE_CPU_OFFLOAD_V1=1  # otherwise Transformer Engine >= 2.10 also offloads weights"
    ranks = min(configuration.expert * configuration.expert_tensor, cluster.joined)
    if ranks > 1 and dispatcher(cluster, configuration) == "hybridep":
        yield (
            f"export USE_MNNVL={int(_is_grace(cluster))} NVLINK_DOMAIN_SIZE={cluster.joined} "
            f"NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN={ranks}"
        )


def dispatcher(cluster: Cluster, configuration: Configuration) -> str | None:
    """Return the library that sends a token to the experts of a rank once; None if tokens are sent once per expert.

    DeepEP's training kernels do not reach the GPUs of other nodes of an NVLink domain, and Megatron-Bridge refuses them on
    every Grace Blackwell GPU. Between nodes of other Blackwell GPUs they crash or hang (Megatron-Bridge #6021 and #5067).
    """
    if software(configuration.software).dispatch == "experts" or configuration.expert * configuration.tensor == 1:
        return None
    ranks = configuration.expert * configuration.expert_tensor
    crosses = cluster.gpu.generation == "blackwell" and ranks > min(cluster.joined, _LARGEST_NODE)
    return "hybridep" if _is_grace(cluster) or crosses else "deepep"


_LARGEST_NODE = 8
"""Largest group of ranks that DeepEP takes for one node."""


def _is_grace(cluster: Cluster) -> bool:
    return cluster.gpu.name.startswith("gb")


def shards_as_fsdp(configuration: Configuration) -> bool:
    """Return True if Megatron FSDP shards gradients or parameters, which it does only without a pipeline."""
    return configuration.zero in FSDP and configuration.pipeline == 1


def adds_apart(configuration: Configuration) -> bool:
    """Return True if gradients are added after the products that make them; Megatron FSDP refuses the fusion."""
    return shards_as_fsdp(configuration) or software(configuration.software).adds_bytes > 0
