"""Kernels are timed one by one, on this host's CPU."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

from pipeplan.extensions.planning import kernel_timing
from pipeplan.extensions.planning.kernel_timing import KernelTimer, kernel_timer
from pipeplan.extensions.planning.workload import AttentionCore, Collective, Gemm, GroupedGemm, MemoryPass, Work
from pipeplan.foundation.errors import InputError


@pytest.fixture
def timer() -> KernelTimer:
    return kernel_timer("cpu", samples=2)


def core(sequence: int, **kwargs: float | bool) -> AttentionCore:
    sizes: dict[str, float] = {"heads": 2, "kv_heads": 1, "score_dim": 16, "value_dim": 16}
    return AttentionCore(name="core", queries=sequence, keys=sequence / 2, **{**sizes, **kwargs})  # type: ignore[arg-type]


WORKS: list[Work] = [
    Gemm(name="product", rows=32, columns=48, inner=16),
    Gemm(name="batched", rows=32, columns=48, inner=16, copies=3),
    Gemm(name="part of a token", rows=0.4, columns=48, inner=16),
    GroupedGemm(name="experts", groups=4, rows=64, columns=16, inner=32),
    GroupedGemm(name="gradients", groups=4, rows=64, columns=16, inner=32, weight_gradient=True),
    core(32),
    core(32, backward=True),
    core(32, kv_heads=2, score_dim=24),
    MemoryPass(name="pass", bytes=4096.0, kernels=3),
]


def test_every_kernel_takes_time(timer):
    for work in WORKS:
        assert 0 < timer(work) < 1, work.name
    assert 0 < timer.loss(16.0, 64.0) < 1
    assert 0 < timer.optimizer(1000.0) < 1


def test_what_needs_others_is_not_timed(timer):
    with pytest.raises(InputError, match="one GPU alone has no gather"):
        timer(Collective(name="gather", operation="all_gather", group="tensor", bytes=1.0))


def test_too_little_memory_is_a_sentence(timer):
    with pytest.raises(InputError, match="not enough device memory to measure the product: use a shorter sequence"):
        timer(Gemm(name="product", rows=1 << 40, columns=8, inner=1 << 10))


def test_the_device_is_described_and_must_be_the_requested_one(timer):
    assert timer.described.startswith("CPU, 1 thread(s), PyTorch ")
    with pytest.raises(InputError, match="invalid precision 'fp8': expected bf16 or fp16"):
        kernel_timer("cpu", precision="fp8")
    with pytest.raises(InputError, match="calibrating h100-sxm needs a GPU, but PyTorch finds none"):
        kernel_timer("cpu", name="h100-sxm")


@pytest.mark.parametrize(
    ("driver", "name", "same"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm", True),
        ("NVIDIA GB200", "b200-sxm", False),
        ("NVIDIA A100-SXM4-80GB", "h100-sxm", False),
    ],
)
def test_the_gpu_is_recognized_by_its_name(monkeypatch, driver, name, same):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: driver)
    device = torch.device("cuda")
    if same:
        kernel_timing._require(device, name)
    else:
        with pytest.raises(InputError, match=f"this machine's GPU is {driver}, not {name}"):
            kernel_timing._require(device, name)
