"""The roofline: never above the data sheet, rising with size, and near what was measured of kernels."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.extensions.planning.hardware import (
    PRESETS,
    attention_time,
    gemm_time,
    gpu,
    grouped_gemm_time,
    host_time,
    memory_time,
    optimizer_time,
)
from tests.planning_data import planning

NAMES = st.sampled_from(sorted(PRESETS))
SIZES = st.integers(1, 1 << 17)
PRECISIONS = st.sampled_from(["bf16", "fp16", "fp8", "mxfp8", "nvfp4"])


@settings(deadline=None)
@given(NAMES, SIZES, SIZES, SIZES, PRECISIONS, st.integers(1, 64), st.booleans())
def test_a_product_is_never_faster_than_the_data_sheet(name, rows, columns, inner, precision, copies, accumulates):
    card = gpu(name)
    time = gemm_time(card, rows, columns, inner, precision, copies=copies, accumulates=accumulates)
    assert time >= 2.0 * rows * columns * inner * copies / max(card.peak.values())
    assert time >= copies * 2.0 * rows * columns / card.memory_bandwidth


@settings(deadline=None)
@given(NAMES, SIZES, SIZES, SIZES, PRECISIONS, st.integers(1, 64))
def test_more_of_equal_products_take_longer_and_share_what_a_partial_wave_loses(
    name, rows, columns, inner, precision, copies
):
    card = gpu(name)
    one, many, more = (
        gemm_time(card, rows, columns, inner, precision, copies=number) for number in (1, copies, copies + 1)
    )
    assert one <= many <= more
    assert many <= 2 * copies * one


@settings(deadline=None)
@given(NAMES, SIZES, SIZES, SIZES)
def test_more_work_or_a_slower_gpu_takes_longer(name, rows, columns, inner):
    card = gpu(name)
    time = gemm_time(card, rows, columns, inner)
    assert time <= gemm_time(card, rows, columns, 2 * inner)
    assert time <= gemm_time(card, 2 * rows, columns, inner) * (1 + 1e-9)
    twice = replace(card, peak={form: 2 * peak for form, peak in card.peak.items()})
    assert gemm_time(twice, rows, columns, inner) <= time
    wider = replace(card, memory_bandwidth=2 * card.memory_bandwidth)
    assert gemm_time(wider, rows, columns, inner) <= time
    assert memory_time(wider, rows * columns) < memory_time(card, rows * columns)


def attention(card, sequence, heads=16, batch=1, dim=128, **kwargs):
    return attention_time(
        card,
        queries=batch * sequence,
        keys=sequence / 2,
        heads=heads,
        kv_heads=heads,
        score_dim=dim,
        value_dim=dim,
        **kwargs,
    )


@pytest.mark.parametrize(("name", "least"), [("a100", 0.6), ("h100", 0.66), ("b200", 0.74)])
def test_exponentials_take_the_same_time_at_half_the_dimension(name, least):
    """FlashAttention-3 reaches .77 of the rate with heads of 64 on Hopper, FlashAttention-4 .66 on Blackwell."""
    card = gpu(name)
    assert least < attention(card, 32768, dim=64) / attention(card, 32768) < least + 0.03


@settings(deadline=None)
@given(NAMES, st.integers(6, 17), st.integers(0, 7))
def test_attention_is_never_faster_than_the_peak_and_grows_with_the_sequence(name, log_sequence, log_heads):
    card = gpu(name)
    sequence, heads = 1 << log_sequence, 1 << log_heads
    forward, backward = attention(card, sequence, heads), attention(card, sequence, heads, backward=True)
    flops = 2.0 * sequence * sequence / 2 * heads * 256
    assert forward >= flops / card.peak["bf16"]
    assert backward >= 2.5 * flops / card.peak["bf16"]
    assert attention(card, 2 * sequence, heads) > forward


@pytest.mark.parametrize("backward", [False, True])
def test_scores_that_reach_memory_cost_their_bytes(backward):
    card = gpu("a100")
    sequence, heads = 2048, 16
    unfused = attention_time(
        card,
        queries=sequence,
        keys=sequence,
        heads=heads,
        kv_heads=heads,
        score_dim=128,
        value_dim=128,
        fused=False,
        backward=backward,
    )
    assert unfused > attention(card, sequence, heads, backward=backward)
    written = 2 * 2.0 * heads * sequence * sequence
    assert unfused > (1 + backward) * written / card.memory_bandwidth


def test_elementwise_work_is_bytes_over_bandwidth_and_launches():
    card = gpu("h100")
    one = memory_time(card, 1e9)
    assert one > 1e9 / card.memory_bandwidth
    assert memory_time(card, 1e9, 11) - one == pytest.approx(10 * (memory_time(card, 1, 2) - memory_time(card, 1)))
    assert optimizer_time(card, 1e9) == memory_time(card, 30e9)
    assert host_time(card, card.host_bandwidth) == 1.0


def test_the_best_products_of_the_survey_are_not_beaten():
    """Power aside: no product is predicted faster than the fastest shape that was found on such a GPU."""
    for name, sheet in planning("presets.json")["hardware"].items():
        if sheet["gemm_best_tflops"] is None:
            continue
        card = gpu(name)
        size = 16384
        assert 2.0 * size**3 / gemm_time(card, size, size, size) <= 1.02 * sheet["gemm_best_tflops"] * 1e12, name


def test_products_of_real_layers_reach_the_medians_that_were_measured():
    """SimuMax's medians over shapes of real models; its A100 is the PCIe card."""
    kernels = planning("presets.json")["achieved"]["kernel_fractions"]
    shapes = [
        (4096, columns / split, 8192 if columns != 8192 else 28672 / split)
        for columns in (10240, 8192, 57344, 128256)
        for split in (1, 2, 4, 8)
    ]
    for name, measured in (("b200", kernels["b200"]), ("a100-pcie", kernels["a100_pcie"])):
        card = gpu(name)
        reached = [
            2.0 * m * n * k / time / card.peak["bf16"]
            for m, n, k in shapes
            for time in (
                gemm_time(card, m, n, k),
                gemm_time(card, m, k, n),
                gemm_time(card, n, k, m, accumulates=True),
            )
        ]
        assert median(reached) == pytest.approx(measured["gemm"]["median"], rel=0.1)
        assert measured["gemm"]["p10"] < median(reached) < measured["gemm"]["p90"]


def test_an_expert_has_the_products_of_its_share_of_the_tokens():
    """One expert's products are plain ones; a weight gradient is as large as its weights, and as deep as its tokens."""
    card = gpu("h100")
    assert grouped_gemm_time(card, 1, 4096, 1024, 7168) == gemm_time(card, 4096, 1024, 7168)
    weight = grouped_gemm_time(card, 1, 4096, 1024, 7168, weight_gradient=True)
    assert weight == gemm_time(card, 7168, 1024, 4096)
    many = grouped_gemm_time(card, 256, 4096, 4096, 7168, weight_gradient=True)
    assert many > 2 * grouped_gemm_time(card, 8, 4096, 4096, 7168, weight_gradient=True)
