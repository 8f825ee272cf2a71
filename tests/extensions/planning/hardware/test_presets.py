"""Presets against the collected data sheets, and the names that GPUs go by."""

from __future__ import annotations

import pytest

from pipeplan.extensions.planning.hardware import PRESETS, gpu, preset
from pipeplan.extensions.planning.hardware.efficiency import generation
from pipeplan.foundation.errors import UnknownNameError
from tests.planning_data import planning


def test_every_collected_gpu_has_its_collected_numbers():
    for name, sheet in planning("presets.json")["hardware"].items():
        result = preset(name)
        card, node = result.gpu, result.node
        assert card.peak["bf16"] == sheet["bf16_dense_tflops"] * 1e12, name
        if sheet["fp8_dense_tflops"] is not None:
            assert card.peak["fp8"] == sheet["fp8_dense_tflops"] * 1e12, name
        assert card.memory_bandwidth == pytest.approx(sheet["hbm_tb_per_s"] * 1e12), name
        assert sheet["hbm_gb"] * 1e9 <= card.memory_bytes <= sheet["hbm_gb"] * 2**30, name
        assert node.per_node == sheet["gpus_per_node"], name
        assert node.domain == sheet.get("nvlink_domain", 0), name
        assert node.inside.bandwidth == pytest.approx(sheet["intra_node_gb_per_s_each_way"] * 1e9), name
        assert node.between.bandwidth == pytest.approx(sheet["inter_node_gb_per_s_each_way_per_gpu"] * 1e9), name
        if "p2p_link_gb_per_s" in sheet:
            assert node.inside.peer_bandwidth == sheet["p2p_link_gb_per_s"] * 1e9, name


def test_every_gpu_of_a_published_run_has_a_preset():
    names = {row["hardware"]["gpu"] for row in planning("published_runs.json")["rows"]}
    assert {preset(name).gpu.name for name in names} <= set(PRESETS)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("H100", "h100-sxm"),
        ("A100 (NVIDIA Ampere)", "a100-sxm-80gb"),
        ("gb200_nvl72", "gb200"),
    ],
)
def test_names_that_gpus_go_by(alias, name):
    assert gpu(alias).name == name


def test_a_preset_is_complete_and_has_names_of_its_own():
    names = [name for item in PRESETS.values() for name in (item.gpu.name, *item.aliases)]
    assert len(set(names)) == len(names)
    for name in PRESETS:
        card = gpu(name)
        kernels = generation(card.generation)
        assert card.source, name
        assert card.peak.keys() <= kernels.gemm.keys(), name
        assert "bf16" in card.peak, name
        assert 0 < card.sustained < 1.25, name
        assert all(0 < reach <= 1 for reach in kernels.gemm.values()), name


def test_where_no_gpu_is_near_those_with_a_preset_are_listed():
    with pytest.raises(UnknownNameError, match="known: a100-pcie-80gb, a100-sxm-40gb, ") as caught:
        gpu("tpu")
    assert "dgx-a100" not in str(caught.value)
