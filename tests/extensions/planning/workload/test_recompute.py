"""Modules computed again: what moves into the backward, and what is not kept."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import (
    RECOMPUTE,
    Execution,
    Gemm,
    GroupedGemm,
    LayerWork,
    ModelShape,
    layers_of,
    model,
    offloaded,
    recomputed,
)
from tests.extensions.planning.workload.shapes import hybrids, shapes

S = 2048


def layer(name: str, kind: str = "dense", **chosen: object) -> LayerWork:
    execution = Execution(sequence=S, **chosen)  # type: ignore[arg-type]
    return next(item for item in layers_of(model(name), execution) if item.kind == kind)


def dropped(before: LayerWork, modules: set[str]) -> float:
    return before.kept_bytes - recomputed(before, modules).kept_bytes


@pytest.mark.parametrize(
    ("name", "kind", "module", "expected"),
    [
        ("llama3-8b", "dense", "core_attn", 4 * 32),
        ("llama3-8b", "dense", "mlp", 2 * 4096 + 6 * 14336),
        ("llama3-8b", "dense", "layernorm", 2 * 2 * 4096),
        ("deepseek-v3", "dense", "mla_up_proj", 131_072),
        ("deepseek-v3", "moe", "moe_act", 2 * 8 * 2048),
        ("deepseek-v3", "moe", "shared_experts", 6 * 2048),
        ("deepseek-v3", "moe", "moe", 6 * 2048 + 4 * 256 + 8 * (2 * 7168 + 6 * 2048 + 8 + 4)),
    ],
)
def test_what_modules_drop(name: str, kind: str, module: str, expected: float):
    """Bytes a token, by the names that Megatron gives the modules."""
    before = layer(name, kind)
    assert dropped(before, {module}) == pytest.approx(expected * S)
    again = recomputed(before, {module})
    assert again.transient_bytes - before.transient_bytes == pytest.approx(expected * S), "all of it is held at once"


def test_norms_computed_again_in_eight_bits():
    """Each product's own copy of a norm's output is dropped; the router's stays in 16 bits."""
    assert dropped(layer("deepseek-v3", "moe", precision="fp8"), {"layernorm"}) == S * 7168 * (1 + 1 + 2 + 1)


def test_the_work_comes_before_the_input_backward():
    before = layer("llama3-8b")
    after = recomputed(before, {"full"})
    assert after.backward_input == before.forward + before.backward_input
    assert after.backward_weight == before.backward_weight
    assert [item.name for item in after.kept if item.bytes] == ["attention norm input"]
    assert after.kept_bytes == 2 * 4096 * S
    assert recomputed(before, {"moe", "mla_up_proj"}) == before, "modules of other layers change nothing"
    pytorch = layer("llama3-8b", framework="pytorch")
    again = recomputed(pytorch, {"full"}).backward_input[: -len(pytorch.backward_input)]
    assert again == pytorch.forward[: len(again)]
    assert pytorch.forward[len(again)].name == "down", "PyTorch stops before the last product"


def test_selective_checkpointing_per_op():
    """torchtitan: of q, k, v, o, gate, up, down every second is computed again; q, v, gate, down and attention are kept.

    Compiled code does not keep the output of down, which only the next layer reads.
    """
    compiled = recomputed(layer("llama3-8b"), {"selective-op"})
    before = layer("llama3-8b", fused_activation=False)
    after = recomputed(before, {"selective-op"})
    again = after.backward_input[: len(after.backward_input) - len(before.backward_input)]
    products = [(item.columns, item.inner) for item in again if isinstance(item, (Gemm, GroupedGemm))]
    assert products == [(1024, 4096), (4096, 4096), (14336, 4096)]
    kept = 2 * 4096 + 2 * (4096 + 1024 + 14336 + 4096) + 2 * 4096 + 4 * 32
    assert after.kept_bytes == kept * S
    assert compiled.kept_bytes == (kept - 2 * 4096) * S


def test_what_is_exchanged_is_kept_per_op():
    """Reduce-scatters' shards and all-to-alls' tokens, beside products and attention."""
    chosen = {"tensor": 2, "sequence_parallel": True, "expert": 8}
    kept = recomputed(layer("qwen3-30b-a3b", "moe", **chosen), {"selective-op"}).kept
    sizes = sorted(item.bytes for item in kept if item.name.endswith("of those saved"))
    h, q, kd, experts = 2048, 4096, 512, 128
    products = [
        2 * q // 2,
        2 * kd // 2,
        2 * experts // 2,
    ]  # of q, k, v, output and the router, in this order: q, v, router
    assert sizes == sorted(
        S * item for item in (*products, 2 * q // 2 + 4 * 16, 2 * h // 2, 2 * 8 * h // 2, 2 * 8 * h // 2)
    )


def test_every_module_has_a_title():
    result = {
        name
        for preset in ("llama3-8b", "deepseek-v3")
        for item in layers_of(model(preset), Execution())
        for name in item.recomputable
    }
    assert result == set(RECOMPUTE)


@settings(max_examples=40)
@given(shapes() | hybrids(), st.sets(st.sampled_from(sorted(RECOMPUTE))))
def test_never_keeps_more_than_everything(shape: ModelShape, modules: set[str]):
    """All but per-op checkpointing, which keeps outputs that nothing needs, keep at most what they would keep anyway."""
    for before in layers_of(shape, Execution(sequence=64)):
        after = recomputed(before, modules - {"selective-op"})
        assert after.kept_bytes <= before.kept_bytes
        assert after.bytes_until_weight == pytest.approx(before.bytes_until_weight)
        assert recomputed(after, modules - {"selective-op"}) == after


@given(st.floats(0, 1))
def test_offloaded_bytes_are_back_for_the_backward(share: float):
    before = layer("llama3-8b")
    after = offloaded(before, share)
    assert after.kept_bytes == pytest.approx((1 - share) * before.kept_bytes)
    assert after.bytes_until_weight == pytest.approx(before.bytes_until_weight)
    assert after.transient_bytes - before.transient_bytes == pytest.approx(share * before.kept_bytes, abs=1)
