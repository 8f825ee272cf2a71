"""Clusters by name and from files; what is wrong with them is said in a sentence."""

from __future__ import annotations

import pytest

from pipeplan.extensions.planning.hardware import PRESETS, cluster, gpu
from pipeplan.extensions.planning.hardware.sheets import quantity
from pipeplan.foundation.errors import CostError, FormatError, InputError, UnknownNameError


def test_a_cluster_by_name():
    result = cluster("h100-sxm:8x16")
    assert (result.gpu, result.per_node, result.nodes, result.gpus) == (gpu("h100-sxm"), 8, 16, 128)
    assert result.inside == PRESETS["h100-sxm"].node.inside
    assert result.joined == 8
    assert (cluster("a100:32").per_node, cluster("a100:32").nodes) == (8, 4)
    assert (cluster("a100:4").per_node, cluster("a100:4").nodes) == (4, 1)
    joined = [cluster(text).joined for text in ("gb200:4x64", "gb200:4x4", "b200:4x64")]
    assert joined == [72, 16, 4], "a domain joins more than a node, but no more than there is"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("h100-sxm:0x4", CostError, "with 0 GPUs per node: expected at least 1"),
        ("h100-sxm:12", FormatError, "12 GPUs of cluster .* do not fill nodes of 8"),
        ("h100-sxm:8xx4", FormatError, "size '8xx4' of cluster .*: expected GPU:PER_NODExNODES"),
        ("h100-sxm", FormatError, "has no size: expected .*h100-sxm:8x16"),
        ("h10-sxm:8x16", UnknownNameError, "did you mean 'h100-sxm'"),
        ("h100:8x99999999", CostError, "is too large"),
        ("missing.yaml", InputError, "cannot read the cluster file missing.yaml"),
    ],
)
def test_what_is_no_cluster(text, kind, message):
    with pytest.raises(kind, match=message) as caught:
        cluster(text)
    if not text.endswith("yaml"):
        assert caught.value.field == "cluster"


def test_a_file_changes_a_preset(tmp_path):
    path = tmp_path / "ours.yaml"
    path.write_text(
        "gpu: {base: h100-sxm, name: ours, memory_bytes: 94 GiB, peak: {bf16: 900 TFLOP/s}, price: 2.5}\n"
        "nodes: 4\n"
        "between: {bandwidth: 200 Gb/s}\n"
        "inside: {latency: 3 us}\n"
    )
    result = cluster(path)
    assert result.gpu.memory_bytes == 94 * 2**30
    assert result.gpu.peak == {"bf16": 900e12, "fp8": 1979e12}
    assert result.gpu.price == 2.5
    assert result.gpu.memory_bandwidth == gpu("h100-sxm").memory_bandwidth
    assert (result.per_node, result.nodes) == (8, 4)
    assert result.between.bandwidth == 25e9
    assert result.between.latency == PRESETS["h100-sxm"].node.between.latency
    assert result.inside.latency == pytest.approx(3e-6)
    assert result.inside.bandwidth == 450e9


def test_a_gpu_of_ones_own(tmp_path):
    path = tmp_path / "chip.toml"
    path.write_text(
        'per_node = 16\nnodes = 2\ngpu = {name = "chip", peak = {bf16 = 5e14}, memory_bytes = 1e11, '
        'memory_bandwidth = "2 TB/s", generation = "cdna3"}\n'
        'inside = {bandwidth = "300 GB/s", latency = 1e-6, peer_bandwidth = "20 GB/s"}\n'
        'between = {bandwidth = "100 Gbit/s", latency = "5 us"}\n'
    )
    result = cluster(str(path))
    assert (result.gpu.name, result.gpu.peak["bf16"], result.gpu.memory_bandwidth) == ("chip", 5e14, 2e12)
    assert result.inside.peer_bandwidth == 20e9
    assert result.between.bandwidth == 12.5e9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "has no keys: it is a list"),
        ("gpu: h100\nnodess: 2", "did you mean 'nodes'"),
        ("gpu: {name: x}\n", "lacks peak, memory_bytes, memory_bandwidth"),
        ("gpu: {base: h100, peak: {bf16: 5 GB}}", "989 TFLOP/s"),
        ("gpu: {base: h100, generation: hoper}", "did you mean 'hopper'"),
        ("gpu: h100\nnodes: 1.5", "invalid nodes 1.5: expected an integer"),
        ("gpu: h100\ndomain: 4", "expected at least the 8 GPUs"),
        ("gpu: h100\nbetween: {bandwidth: 5 parsecs}", "450 GB/s or 400 Gb/s"),
        (
            "gpu: {name: x, peak: {bf16: 1e12}, memory_bytes: 1e9, memory_bandwidth: 1e9}\nper_node: 1",
            "no link speed inside",
        ),
        ("gpu: {name: x, peak: {fp8: 1e12}, memory_bytes: 1e9, memory_bandwidth: 1e9}", "has no bf16"),
    ],
)
def test_a_file_that_is_no_cluster(tmp_path, text, message):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        cluster(path)
    assert caught.value.field == "cluster"


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("80 GB", "B", 80e9),
        ("400 Gb/s", "B/s", 50e9),
        ("2 PFLOP/s", "FLOP/s", 2e15),
        ("989 TFLOPS", "FLOP/s", 989e12),
        ("5 us", "s", 5e-6),
        (3, "s", 3.0),
    ],
)
def test_sizes_as_data_sheets_print_them(text, unit, value):
    assert quantity("size", text, unit) == pytest.approx(value)
