from dataclasses import replace

import pytest

from pipeplan.extensions.planning import Configuration, estimate
from pipeplan.extensions.planning.estimates.stages import stage_costs
from pipeplan.extensions.planning.hardware import cluster, gpu
from pipeplan.extensions.planning.workload import model, token_flops
from pipeplan.foundation.errors import ShapeError, UnknownNameError
from tests.extensions.planning.configurations import DEEPSEEK, H100, LLAMA, configuration


class Twice:
    """A machine on which one kind of work takes twice as long."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def factor(self, kind: str) -> float:
        return 2.0 if kind == self.kind else 1.0


def test_the_parts_of_the_step_are_the_step():
    result = estimate(LLAMA, H100, configuration())
    parts = result.time
    assert parts.total == pytest.approx(result.step_time)
    assert parts.compute > 0.6 * parts.total
    assert parts.bubble > 0
    assert parts.tensor > 0
    assert parts.optimizer > 0
    assert parts.expert == parts.recompute == 0


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_flops_and_what_follows_from_them(precision):
    result = estimate(LLAMA, H100, configuration(precision=precision))
    tokens = 128 * 8192
    assert result.flops == pytest.approx(token_flops(LLAMA, 8192).training * tokens)
    assert result.tokens_per_second == pytest.approx(tokens / result.step_time)
    assert result.mfu == pytest.approx(result.flops / (64 * result.step_time * gpu("h100-sxm").peak[precision]))


def test_recomputation_by_stage_is_what_each_stage_does():
    first = (("full",), *[()] * 19)
    result = stage_costs(LLAMA, H100, configuration(recompute_by_stage=first)).backward_input
    plain = stage_costs(LLAMA, H100, configuration()).backward_input
    assert result[0] > 1.2 * plain[0]
    assert result[1:].tolist() == plain[1:].tolist()


def test_offload_beyond_what_is_hidden_adds_time():
    slow = replace(H100, gpu=replace(H100.gpu, host_bandwidth=1e9))
    plain, moved = (estimate(LLAMA, slow, configuration(offload=share)) for share in (0.0, 1.0))
    assert moved.step_time > plain.step_time
    assert moved.peak_bytes < plain.peak_bytes
    fast = replace(H100, gpu=replace(H100.gpu, host_bandwidth=1e15))
    plain, moved = (estimate(LLAMA, fast, configuration(offload=share)) for share in (0.0, 1.0))
    assert moved.step_time == pytest.approx(plain.step_time)


def test_hybrid_sharding_trades_memory_for_shorter_rings():
    """Four copies on 1024 GPUs: a quarter of the ranks in a ring, and four times the state."""
    requested = Configuration(
        sequence=4096, global_batch=1024, data=1024, zero=3, software="torchtitan", recompute=("full",)
    )
    small, many = model("llama3-8b"), cluster("h100-sxm:8x128")
    spread, hybrid = (estimate(small, many, replace(requested, replicate=copies)) for copies in (1, 4))
    assert hybrid.time.data < spread.time.data
    assert hybrid.memory[0].optimizer == pytest.approx(4 * spread.memory[0].optimizer)
    alone = estimate(small, many, replace(requested, replicate=1024))
    assert alone.memory[0].optimizer == pytest.approx(1024 * spread.memory[0].optimizer)


def test_beside_a_pipeline_sharded_weights_are_gathered_once_a_step():
    requested = Configuration(
        sequence=4096, global_batch=256, pipeline=4, data=16, zero=3, software="torchtitan", schedule="1f1b"
    )
    few, many = (estimate(LLAMA, H100, replace(requested, global_batch=batch)).time for batch in (256, 1024))
    assert many.data == pytest.approx(few.data)
    kept = estimate(LLAMA, H100, replace(requested, zero=1)).time
    assert few.data == pytest.approx(kept.data)


@pytest.mark.parametrize("kind", ["gemm", "head", "collective"])
def test_a_calibration_makes_its_kind_slower_and_is_said(kind):
    plain = estimate(LLAMA, H100, configuration())
    result = estimate(LLAMA, H100, configuration(), calibration=Twice(kind))
    assert result.step_time > plain.step_time
    assert [name for name, origin in result.costs_from.items() if origin == "calibrated"] == [kind]
    assert set(plain.costs_from.values()) == {"analytic"}


def test_experts_are_spread_over_the_gpus_of_a_rank():
    requested = Configuration(sequence=4096, global_batch=64, pipeline=4, data=16, expert=32, schedule="1f1b")
    with pytest.raises(ShapeError, match="does not divide the 16 GPUs of a pipeline rank"):
        estimate(DEEPSEEK, H100, requested)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"data": 3}, ShapeError, "= 96 GPUs; expected the cluster"),
        ({"global_batch": 129}, ShapeError, "is not divisible by data 2 x"),
        ({"layers": (5,) * 20}, ShapeError, "add up to 100; expected 80 for llama3-70b"),
        ({"software": "megatron-cor"}, UnknownNameError, "did you mean 'megatron-core'"),
    ],
)
def test_what_cannot_be_is_refused(changes, error, words):
    with pytest.raises(error, match=words):
        estimate(LLAMA, H100, configuration(**changes))
