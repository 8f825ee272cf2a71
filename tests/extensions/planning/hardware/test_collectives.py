"""Collectives: published formulas where links reach all of their bandwidth, and published tables where they do not."""

from __future__ import annotations

from dataclasses import replace
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.extensions.planning.hardware import OPERATIONS, Link, cluster, collective_time, collectives, p2p_time
from pipeplan.extensions.planning.hardware.efficiency import LINKS, generation
from pipeplan.foundation.errors import UnknownNameError
from tests.planning_data import planning

MIB = 1 << 20
NODE = cluster("a100:8x1")
CLUSTERS = st.sampled_from(
    [cluster(text) for text in ("a100:8x16", "h100:8x16", "mi300x:8x16", "gb200:4x32", "l40s:8x16")]
)
GROUPS = st.sampled_from([(2, 1), (4, 1), (8, 1), (16, 1), (64, 1), (4, 2), (8, 2), (16, 8), (2, 64)])


@pytest.fixture
def perfect(monkeypatch):
    """Links that reach all of their bandwidth, and collectives that cost nothing to launch."""
    whole = ("all_to_all", "network", "network_all_to_all", "network_by_node", "message")
    free = ("launch", "message_launch", "crossing", "posting")
    monkeypatch.setattr(collectives, "LINKS", replace(LINKS, **dict.fromkeys(whole, 1.0), **dict.fromkeys(free, 0.0)))
    monkeypatch.setattr(
        collectives, "generation", lambda name: replace(generation(name), ring=1.0, lost=0.0, switch=0.0)
    )
    collective_time.cache_clear()
    yield
    collective_time.cache_clear()


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_rings(perfect, ranks):
    size, link = 1e9, NODE.inside
    share = (ranks - 1) / ranks * size / link.bandwidth
    steps = (ranks - 1) * link.latency
    assert collective_time(NODE, "all_gather", size, ranks) == pytest.approx(share + steps)
    assert collective_time(NODE, "reduce_scatter", size, ranks) == pytest.approx(share + steps)
    assert collective_time(NODE, "all_reduce", size, ranks) == pytest.approx(2 * share + 2 * steps)
    assert collective_time(NODE, "all_to_all", size, ranks) == pytest.approx(share + steps)
    assert collective_time(NODE, "ring", size, ranks, steps=3) == pytest.approx(
        3 * (size / link.bandwidth + link.latency)
    )


def test_a_small_sum_over_many_nodes_takes_a_tree(perfect):
    many = cluster("h100:8x64")
    size = 1024.0
    tree = 2 * size / many.inside.bandwidth + 2 * (7 * many.inside.latency + log2(64) * many.between.latency)
    assert collective_time(many, "all_reduce", size, 512) == pytest.approx(tree, rel=1e-3)


def test_a_ring_over_nodes_uses_every_port(perfect):
    two = cluster("h100:8x2")
    size = 1e10
    ring = 15 / 16 * size / (8 * two.between.bandwidth)
    assert collective_time(two, "all_gather", size, 16) == pytest.approx(ring, rel=1e-2)
    one_a_node = 1 / 2 * size / two.between.bandwidth
    assert collective_time(two, "all_gather", size, 2, 8) == pytest.approx(one_a_node, rel=1e-2)


def test_in_a_mesh_a_few_gpus_have_few_links(perfect):
    mesh = cluster("mi300x:8x1")
    size = 1e9
    assert mesh.inside.peer_bandwidth is not None
    for ranks in (2, 4, 8):
        bandwidth = mesh.inside.peer_bandwidth * (ranks - 1)
        share = (ranks - 1) / ranks * size / bandwidth
        assert collective_time(mesh, "all_to_all", size, ranks) == pytest.approx(share, rel=0.02)
    assert p2p_time(mesh, size, 1) == pytest.approx(size / mesh.inside.peer_bandwidth, rel=0.01)


def test_node_limited_routing_sends_a_token_once_a_node(perfect):
    four = cluster("h100:8x4")
    size = 8e9
    to_all = collective_time(four, "all_to_all", size, 32)
    limited = collective_time(four, "all_to_all", size, 32, nodes_a_token=4, copies=8)
    assert to_all == pytest.approx(24 / 32 * size / four.between.bandwidth, rel=0.01)
    assert limited == pytest.approx(size / 8 * 4 * 3 / 4 / four.between.bandwidth, rel=0.01)


@settings(deadline=None)
@given(CLUSTERS, st.sampled_from(OPERATIONS), st.floats(1, 1e10), GROUPS)
def test_collectives_take_longer_with_size_and_less_with_bandwidth(machine, operation, size, group):
    ranks, stride = group
    time = collective_time(machine, operation, size, ranks, stride)
    assert time > 0
    assert collective_time(machine, operation, size, 1) == collective_time(machine, operation, 0.0, ranks) == 0
    assert collective_time(machine, operation, 2 * size, ranks, stride) >= time
    faster = replace(machine, inside=_twice(machine.inside), between=_twice(machine.between))
    assert collective_time(faster, operation, size, ranks, stride) < time
    least = size / ranks / max(machine.inside.bandwidth, machine.joined * machine.between.bandwidth)
    assert time >= least


def _twice(link: Link) -> Link:
    peer = link.peer_bandwidth
    return replace(link, bandwidth=2 * link.bandwidth, peer_bandwidth=None if peer is None else 2 * peer)


@settings(deadline=None)
@given(CLUSTERS, st.floats(1, 1e10), GROUPS)
def test_a_sum_is_no_faster_than_its_halves_bandwidth(machine, size, group):
    ranks, stride = group
    halves = sum(collective_time(machine, half, size, ranks, stride) for half in ("reduce_scatter", "all_gather"))
    assert collective_time(machine, "all_reduce", size, ranks, stride) <= 1.01 * halves


def test_messages_stay_in_a_node_where_the_pipeline_does():
    machine = cluster("h100:8x4")
    assert p2p_time(machine, 1e8, 1, ranks=8) < p2p_time(machine, 1e8, 1, ranks=16)
    assert p2p_time(machine, 1e8, 8) == p2p_time(machine, 1e8, 1, ranks=16)
    assert p2p_time(machine, 0, 8) == 0


def test_the_measured_bandwidths_of_all_reduces():
    """vTrain's tables of NCCL on 8, 4 and 2 A100s, and a published example over four nodes."""
    tables = planning("presets.json")["communication"]
    sizes = {"1 MiB": MIB, "16 MiB": 16 * MIB, "128 MiB": 128 * MIB, "1 GiB": 1024 * MIB}
    for name, table in tables["vtrain_a100_all_reduce_busbw_gb_per_s"].items():
        if not name.startswith("gpus"):
            continue
        ranks = int(name.removeprefix("gpus"))
        for size, measured in table.items():
            moved = 2 * (ranks - 1) / ranks * sizes[size]
            result = moved / collective_time(NODE, "all_reduce", sizes[size], ranks) / 1e9
            assert result == pytest.approx(measured, rel=0.12), (name, size)
    example = tables["four_node_all_reduce_busbw_gb_per_s"]
    four = replace(cluster("a100:8x4"), between=Link(bandwidth=12.8e9, latency=8e-6))
    for size in ("1 MiB", "16 MiB"):
        result = 2 * 31 / 32 * sizes[size] / collective_time(four, "all_reduce", sizes[size], 32) / 1e9
        assert result == pytest.approx(example[size], rel=0.35), size


def test_the_measured_fractions_of_eight_b200():
    table = planning("presets.json")["communication"]["simumax_b200_intra_node"]
    machine = cluster("b200:8x1")
    for operation, rounds in (("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1), ("all_to_all", 1)):
        busbw = rounds * 7 / 8 * 256 * MIB / collective_time(machine, operation, 256 * MIB, 8)
        assert busbw / 900e9 == pytest.approx(table[operation], rel=0.15), operation


def test_switches_that_reduce_help_all_reduces_of_more_than_four_gpus():
    """Bus bandwidths of 8 H200 with and without NVLink SHARP (stas00/ml-engineering network/README.md), in GB/s."""
    node = cluster("h200:8x1")
    measured = {16: 219.9, 64: 346.5, 256: 436.2, 1024: 463.6}
    for size, busbw in measured.items():
        time = collective_time(node, "all_reduce", size * MIB, 8)
        assert 7 / 4 * size * MIB / time / 1e9 == pytest.approx(busbw, rel=0.1), size
    size = 8192 * MIB
    for ranks, busbw in ((4, 363.3), (5, 414.2), (6, 435.6), (7, 460.0), (8, 473.1)):
        time = collective_time(node, "all_reduce", size, ranks)
        assert 2 * (ranks - 1) / ranks * size / time / 1e9 == pytest.approx(busbw, rel=0.04), ranks


def test_rings_of_many_nodes_wait_for_each_of_their_steps():
    many = cluster("h100:8x128")
    steps = 127 * LINKS.crossing + 896 * LINKS.posting
    assert collective_time(many, "all_gather", 1024.0, 1024) == pytest.approx(LINKS.launch + steps, rel=0.01)


def test_an_unknown_collective_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'all_reduce'"):
        collective_time(NODE, "all_reduced", 1.0, 8)
