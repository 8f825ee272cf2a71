"""Time of collectives: by algorithm, size, and how many of the ranks share a node.

The group of a rank is ``ranks`` GPUs with a distance of ``stride``; numbers run through a node before the next one. Rings
and trees are pipelined through nodes, as in NCCL: the slower kind of link decides the bandwidth, and latencies add up. A
switch that can reduce takes each byte once and returns it once (NVLink SHARP).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log2

from pipeplan.extensions.planning.hardware.efficiency import LINKS, generation
from pipeplan.extensions.planning.hardware.sheets import Cluster, Link
from pipeplan.foundation.errors import UnknownNameError

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring")


@lru_cache(1 << 16)
def collective_time(
    cluster: Cluster,
    operation: str,
    size: float,
    ranks: int,
    stride: int = 1,
    *,
    steps: int = 1,
    nodes_a_token: int | None = None,
    copies: int = 1,
) -> float:
    """Return the seconds of a collective.

    Parameters
    ----------
    operation
        ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all`` or ``ring`` (each rank passes ``size`` bytes to
        the next one, ``steps`` times).
    size
        Bytes of the whole buffer on a rank: input of an all-reduce or reduce-scatter, output of an all-gather, input of an
        all-to-all including the rank's own share.
    nodes_a_token, copies
        For an all-to-all with node-limited routing: maximum number of nodes per token, and number of ranks per token; a
        token crosses the network once per node. None: once per rank.

    Raises
    ------
    UnknownNameError
        If the operation is unknown.
    """
    if operation not in OPERATIONS:
        raise UnknownNameError("collective", operation, OPERATIONS)
    if ranks <= 1 or size <= 0:
        return 0.0
    together = _together(cluster, ranks, stride)
    nodes = ceil(ranks / together)
    if operation == "ring":
        link = cluster.inside if nodes == 1 else cluster.between
        reach = LINKS.message if nodes == 1 else LINKS.network
        return steps * (size / (_pair(link) * reach) + link.latency)
    if operation == "all_to_all":
        return LINKS.message_launch + _all_to_all(
            cluster, size, ranks, together, nodes_a_token=nodes_a_token, copies=copies
        )
    # A ring all-reduce is a reduce-scatter and an all-gather; each moves (n - 1) / n of the buffer.
    rounds = 2 if operation == "all_reduce" else 1
    moved = rounds * (ranks - 1) / ranks * size
    bandwidth = _ring_bandwidth(cluster, ranks, together, nodes)
    times = [moved / bandwidth + _ring_latency(cluster, rounds, ranks, nodes)]
    if operation == "all_reduce":
        # A tree moves every byte up and down, a ring only (n - 1) / n of them.
        times.append(2.0 * size / bandwidth + _tree_latency(cluster, together, nodes))
        switch = generation(cluster.gpu.generation).switch
        if switch and nodes == 1:
            times.append((ranks + 1) / ranks * size / (switch * bandwidth) + LINKS.switch)
    return LINKS.launch + min(times)


def p2p_time(cluster: Cluster, size: float, apart: int, *, ranks: int = 2) -> float:
    """Return the seconds of a message of ``size`` bytes between neighbors of a pipeline.

    Parameters
    ----------
    apart
        Distance between two neighbors in GPUs.
    ranks
        Number of pipeline ranks: if the pipeline leaves the node, the boundary that does so decides.
    """
    if size <= 0 or apart <= 0:
        return 0.0
    if apart * (ranks - 1) < cluster.joined:
        return size / (_pair(cluster.inside) * LINKS.message) + cluster.inside.latency + LINKS.message_launch
    return size / (_pair(cluster.between) * LINKS.network) + cluster.between.latency + LINKS.message_launch


def _pair(link: Link) -> float:
    """Return the bandwidth between two GPUs in bytes/s."""
    return link.peer_bandwidth or link.bandwidth


def _together(cluster: Cluster, ranks: int, stride: int) -> int:
    """Return the number of ranks of a group that share a node or NVLink domain; all of them if the last one does."""
    if stride * (ranks - 1) < cluster.joined:
        return ranks
    return max(1, min(ranks, cluster.joined // max(1, stride)))


def _inside_bandwidth(link: Link, together: int) -> float:
    """Return the bandwidth of each of ``together`` GPUs to the others in bytes/s; in a mesh, the sum of its links."""
    if link.peer_bandwidth is None:
        return link.bandwidth
    return min(link.bandwidth, link.peer_bandwidth * (together - 1))


def _ring_bandwidth(cluster: Cluster, ranks: int, together: int, nodes: int) -> float:
    """Return the bandwidth of a ring in bytes/s; across nodes, all participating GPUs of a node share its ports."""
    network = together * cluster.between.bandwidth * LINKS.network
    if together == 1:
        return network
    kernels = generation(cluster.gpu.generation)
    inside = _inside_bandwidth(cluster.inside, together) * kernels.ring * (1.0 - kernels.lost / ranks)
    return inside if nodes == 1 else min(inside, network)


def _ring_latency(cluster: Cluster, rounds: int, ranks: int, nodes: int) -> float:
    """Return the latency of a ring: every step waits for one message, and ``nodes`` steps per round cross the network."""
    if nodes == 1:
        return rounds * (ranks - 1) * cluster.inside.latency
    crossing = min(nodes, ranks - 1)
    posting = max(LINKS.posting, cluster.inside.latency)
    return rounds * (crossing * LINKS.crossing + (ranks - 1 - crossing) * posting)


def _tree_latency(cluster: Cluster, together: int, nodes: int) -> float:
    """Return the latency of a tree: up and down a chain within the node and a binary tree across nodes."""
    return 2.0 * ((together - 1) * cluster.inside.latency + ceil(log2(nodes)) * cluster.between.latency)


def _all_to_all(
    cluster: Cluster, size: float, ranks: int, together: int, *, nodes_a_token: int | None, copies: int
) -> float:
    """Return the seconds of an all-to-all; messages within nodes and across the network overlap."""
    nodes = ceil(ranks / together)
    over_network = size * (ranks - together) / ranks
    inside = size * (together - 1) / ranks
    if nodes_a_token is not None and nodes > 1:
        over_network = size / copies * min(nodes_a_token, copies, nodes) * (nodes - 1) / nodes
        inside = size * (together - 1) / together  # received tokens are forwarded within the node
    seconds = 0.0
    if together > 1:
        rate = _inside_bandwidth(cluster.inside, together) * LINKS.all_to_all
        seconds = inside / rate + (together - 1) * cluster.inside.latency
    if nodes > 1:
        reach = LINKS.network_all_to_all if nodes_a_token is None else LINKS.network_by_node
        network = over_network / (cluster.between.bandwidth * reach)
        seconds = max(seconds, network + min(ranks - together, 32) * cluster.between.latency)
    return seconds
