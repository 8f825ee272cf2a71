"""How long a collective takes: by algorithm, size, and which of its ranks stand in one node.

A rank's group is ``ranks`` GPUs, each ``stride`` numbers after the last one; numbers run through a node before the next.
Rings and trees are pipelined through nodes, as NCCL's are: the slower kind of link decides, and latencies add up.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log2

from pipeplan.errors import UnknownNameError
from pipeplan.hardware.efficiency import LINKS
from pipeplan.hardware.sheets import Cluster, Link

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
        ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all`` or ``ring`` (each passes ``size`` bytes to the
        next one, ``steps`` times).
    size
        Bytes of the whole buffer on a rank: what an all-reduce reduces, an all-gather ends with, a reduce-scatter begins
        with, what a rank hands to an all-to-all, its own share with it.
    nodes_a_token, copies
        Of an all-to-all: to how many nodes each token goes at most, where it goes to ``copies`` ranks: over the network it
        goes once a node. None: once a rank.

    Raises
    ------
    UnknownNameError
        For another operation.
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
        return LINKS.launch + _all_to_all(cluster, size, ranks, together, nodes_a_token=nodes_a_token, copies=copies)
    rounds = 2 if operation == "all_reduce" else 1
    moved = rounds * (ranks - 1) / ranks * size
    transfer = moved / _ring_bandwidth(cluster, operation, ranks, together, nodes)
    latency = _ring_latency(cluster, rounds, ranks, nodes)
    if operation == "all_reduce":
        slower = 2.0 * size / moved  # a tree moves every byte up and down
        tree = transfer * slower + _tree_latency(cluster, together, nodes)
        return LINKS.launch + min(transfer + latency, tree)
    return LINKS.launch + transfer + latency


def p2p_time(cluster: Cluster, size: float, apart: int, *, ranks: int = 2) -> float:
    """Seconds of a message of ``size`` bytes between neighbours of a pipeline.

    Parameters
    ----------
    apart
        GPUs that lie between two neighbours' numbers.
    ranks
        Of the pipeline: where it leaves the node, the boundary that does so decides.
    """
    if size <= 0 or apart <= 0:
        return 0.0
    if apart * (ranks - 1) < cluster.joined:
        return size / (_pair(cluster.inside) * LINKS.message) + cluster.inside.latency + LINKS.launch
    return size / (_pair(cluster.between) * LINKS.network) + cluster.between.latency + LINKS.launch


def _pair(link: Link) -> float:
    """What one GPU reaches one other with; bytes/s."""
    return link.peer_bandwidth or link.bandwidth


def _together(cluster: Cluster, ranks: int, stride: int) -> int:
    """How many ranks of a group stand in one node (or domain): all of them where the last one does."""
    if stride * (ranks - 1) < cluster.joined:
        return ranks
    return max(1, min(ranks, cluster.joined // max(1, stride)))


def _inside_bandwidth(link: Link, together: int) -> float:
    """What each of ``together`` GPUs sends the others of them with; bytes/s. In a mesh, by a link to each."""
    if link.peer_bandwidth is None:
        return link.bandwidth
    return min(link.bandwidth, link.peer_bandwidth * (together - 1))


def _reach(operation: str, ranks: int) -> float:
    return LINKS.reach[operation] * (1.0 - LINKS.lost / ranks)


def _ring_bandwidth(cluster: Cluster, operation: str, ranks: int, together: int, nodes: int) -> float:
    """Bytes/s of a ring; over nodes, all GPUs of a node that take part share the load of its ports."""
    network = together * cluster.between.bandwidth * LINKS.network
    if together == 1:
        return network
    inside = _inside_bandwidth(cluster.inside, together) * _reach(operation, ranks)
    return inside if nodes == 1 else min(inside, network)


def _ring_latency(cluster: Cluster, rounds: int, ranks: int, nodes: int) -> float:
    """Every step of every round waits for one message; ``nodes`` of a round's steps cross the network."""
    crossing = nodes if nodes > 1 else 0
    if crossing >= ranks:
        return rounds * (ranks - 1) * cluster.between.latency
    return rounds * ((ranks - 1 - crossing) * cluster.inside.latency + crossing * cluster.between.latency)


def _tree_latency(cluster: Cluster, together: int, nodes: int) -> float:
    """Up and down a chain in the node and a binary tree over nodes."""
    return 2.0 * ((together - 1) * cluster.inside.latency + ceil(log2(nodes)) * cluster.between.latency)


def _all_to_all(
    cluster: Cluster, size: float, ranks: int, together: int, *, nodes_a_token: int | None, copies: int
) -> float:
    """Messages inside nodes and over the network, which go on at the same time."""
    nodes = ceil(ranks / together)
    over_network = size * (ranks - together) / ranks
    inside = size * (together - 1) / ranks
    if nodes_a_token is not None and nodes > 1:
        over_network = size / copies * min(nodes_a_token, copies, nodes) * (nodes - 1) / nodes
        inside = size * (together - 1) / together  # what came over the network is passed on
    seconds = 0.0
    if together > 1:
        rate = _inside_bandwidth(cluster.inside, together) * _reach("all_to_all", ranks)
        seconds = inside / rate + (together - 1) * cluster.inside.latency
    if nodes > 1:
        reach = LINKS.network_all_to_all if nodes_a_token is None else LINKS.network_by_node
        network = over_network / (cluster.between.bandwidth * reach)
        seconds = max(seconds, network + min(ranks - together, 32) * cluster.between.latency)
    return seconds
