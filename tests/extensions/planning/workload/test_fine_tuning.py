"""Low-rank adapters, and documents that are packed into a sequence."""

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.published_runs.rows import row_from
from pipeplan.extensions.planning import Configuration, estimate
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import (
    AttentionCore,
    Execution,
    Gemm,
    MemoryPass,
    ModelShape,
    RankParameters,
    layers_of,
    model,
    token_flops,
)
from tests.extensions.planning.workload.shapes import shapes
from tests.published_runs.test_rows import changed

LLAMA = model("llama3-8b")
RANK = 16


def total(layers, part):
    return sum((getattr(layer, part) * layer.count for layer in layers), RankParameters())


def test_adapters_are_the_only_trained_parameters():
    """Llama 3 8B: adapters beside query, key and value in one product, output, gate and up in one, and down."""
    hidden, fused, ffn = 4096, 4096 + 2 * 1024, 14_336
    beside = (hidden + fused) + (hidden + hidden) + (hidden + 2 * ffn) + (ffn + hidden)
    layers = layers_of(LLAMA, Execution(adapter_rank=RANK))
    assert total(layers, "parameters") == RankParameters(dense=32 * RANK * beside)
    assert total(layers, "frozen") == total(layers_of(LLAMA, Execution()), "parameters")
    assert total(layers_of(LLAMA, Execution()), "frozen") == RankParameters()
    assert all(isinstance(work, Gemm) and RANK in (work.rows, work.columns) for work in layers[1].backward_weight)
    assert len(layers[1].backward_weight) == 2 * 4
    qwen = model("qwen3-30b-a3b")
    assert qwen.experts is not None
    trained = total(layers_of(qwen, Execution(adapter_rank=RANK, expert=8)), "parameters")
    assert trained.expert == qwen.layers * 16 * RANK * (3 * (qwen.hidden + qwen.experts.width) - qwen.hidden)


def test_performance_recipes_adapt_queries_keys_and_values_only():
    """NeMo and Megatron Bridge: the others' products have no weight gradients and keep nothing for them."""
    named = frozenset({"query, key and value"})
    every, only = (layers_of(LLAMA, Execution(adapter_rank=RANK, adapted=names))[1] for names in (frozenset(), named))
    assert only.parameters == RankParameters(dense=RANK * (4096 + 4096 + 2 * 1024))
    assert only.weights.dense - only.parameters.dense == every.weights.dense - every.parameters.dense
    assert len(only.backward_weight) == 2
    assert {"activation output", "attention output", "ffn input"} <= {tensor.name for tensor in every.kept} - {
        tensor.name for tensor in only.kept
    }


@pytest.mark.parametrize(("number", "dropout", "scaling"), [(2.0, 5, 4), (4.0, 15, 18)])
def test_eager_adapters_pass_over_the_input_of_every_module_and_the_output(number: float, dropout: int, scaling: int):
    """PEFT beside query, key and value: dropout with its mask three times, scaling once; in 32 bits with casts."""
    run = Execution(adapter_rank=RANK, adapter_bytes=number, adapted=frozenset({"query, key and value"}), sequence=4096)
    eager, fused = (layers_of(LLAMA, replace(run, fused_activation=apart))[1].forward for apart in (False, True))
    moved, least = (
        sum(work.bytes for work in works if isinstance(work, MemoryPass) and work.name.endswith("adapter"))
        for works in (eager, fused)
    )
    assert moved - least == 4096 * (3 * dropout * 4096 + scaling * (4096 + 2 * 1024))


@settings(max_examples=40)
@given(shape=shapes(), rank=st.integers(1, 8))
def test_any_model_has_adapters_and_freezes_the_rest(shape: ModelShape, rank: int):
    plain, adapted = layers_of(shape, Execution()), layers_of(shape, Execution(adapter_rank=rank))
    assert total(adapted, "frozen") == total(plain, "parameters")
    for before, after in zip(plain, adapted, strict=True):
        assert after.kind == before.kind
        assert len(after.forward) >= len(before.forward)
        if after.kind in ("embedding", "head", "loss"):
            assert not after.backward_weight
            assert after.parameters == RankParameters()


@pytest.mark.parametrize(("tensor", "zero"), [(2, 1), (1, 3)])
def test_adapters_need_less_time_and_memory(tensor: int, zero: Literal[1, 3]):
    machines = cluster("h100-sxm:8")
    requested = Configuration(sequence=8192, global_batch=32, tensor=tensor, data=8 // tensor, recompute=("full",))
    whole = estimate(LLAMA, machines, replace(requested, zero=zero))
    adapted = estimate(LLAMA, machines, replace(requested, zero=zero, lora_rank=RANK))
    assert 0.6 * whole.step_time < adapted.step_time < whole.step_time
    assert adapted.memory[0].optimizer < 0.02 * whole.memory[0].optimizer
    assert adapted.memory[0].weights == pytest.approx(whole.memory[0].weights, rel=0.02)
    assert adapted.flops == pytest.approx(32 * 8192 * token_flops(LLAMA, 8192).adapting)
    assert adapted.flops < whole.flops


BESIDE_QWEN = (4096 + 6144) + (4096 + 4096) + (4096 + 2 * 12_288) + (12_288 + 4096)
"""Rows and columns of the products in a layer of Qwen3 8B."""


def test_adapters_of_an_8b_model_fit_one_gpu_with_the_memory_that_is_counted_by_hand():
    """Weights in 16 bits alone; of adapters, 16-bit weights and gradients, and 12 bytes of state."""
    qwen = model("qwen3-8b")
    software = "megatron-bridge-26.04+adapters-on-all-products"
    requested = Configuration(sequence=4096, global_batch=8, software=software, lora_rank=32)
    (memory,) = estimate(qwen, cluster("h100-sxm:1"), requested, with_error_bar=False).memory
    adapters = 36 * 32 * BESIDE_QWEN
    gib = 2**30
    assert memory.weights == pytest.approx(2 * (8_190_735_360 + adapters) / gib, rel=1e-3)
    assert memory.gradients == pytest.approx(2 * adapters / gib, rel=1e-3)
    assert memory.optimizer == pytest.approx(12 * adapters / gib, rel=1e-3)
    assert 30 < memory.total < 40


def test_adapters_of_a_70b_model_fit_one_node():
    requested = Configuration(sequence=4096, global_batch=8, software="megatron-bridge-26.04", lora_rank=32)
    split = replace(requested, tensor=8, sequence_parallel=True)
    memory = estimate(model("llama3-70b"), cluster("h100-sxm:8"), split, with_error_bar=False).memory[0]
    assert memory.weights == pytest.approx(2 * 70_553_706_496 / 8 / 2**30, rel=0.02)
    assert memory.total < 40
    whole = estimate(
        model("llama3-70b"), cluster("h100-sxm:8"), replace(split, lora_rank=0), with_error_bar=False
    ).memory[0]
    assert whole.total > 140


@pytest.mark.parametrize("software", ["torchtitan", "deepspeed-zero3"])
def test_sharded_weights_are_gathered_and_only_gradients_of_adapters_reduced(software: str):
    machines = cluster("h100-sxm:8x4")
    requested = Configuration(sequence=512, global_batch=32, data=32, zero=3, recompute=("full",), software=software)
    whole, adapted = (
        estimate(model("llama3-70b"), machines, replace(requested, lora_rank=rank), with_error_bar=False).memory[0]
        for rank in (0, RANK)
    )
    assert adapted.gathered > 0.85 * whole.gathered
    assert adapted.transient < 0.8 * whole.transient


def test_packed_documents_attend_within_themselves():
    def cores(document: int | None):
        (_, layer, *_) = layers_of(LLAMA, Execution(sequence=4096, document=document))
        return [work for work in layer.forward if isinstance(work, AttentionCore)]

    assert [work.keys for work in cores(None)] == [2048]
    assert [work.keys for work in cores(512)] == [256]
    assert [work.keys for work in cores(10_000)] == [2048], "a document is at most a sequence"
    machines = cluster("h100-sxm:8")
    requested = Configuration(sequence=32_768, global_batch=8, data=8, zero=3, recompute=("full",))
    whole, packed = (estimate(LLAMA, machines, replace(requested, document=size)) for size in (None, 1024))
    assert packed.step_time < whole.step_time
    assert packed.flops == pytest.approx(8 * 32_768 * token_flops(LLAMA, 1024).training)


def test_rows_of_fine_tuning():
    row = row_from(changed(lora_rank=8, batch={"document": 256})).configuration
    assert row is not None
    assert (row.lora_rank, row.document) == (8, 256)
    assert "invalid batch.document" in row_from(changed(batch={"document": 0})).refused
    assert "lora rank must be an integer" in row_from(changed(lora_rank="8")).refused
