"""What a shape knows of itself, and what no model's shape is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import Experts, LatentAttention, ModelShape, model
from pipeplan.foundation.errors import InputError
from tests.extensions.planning.workload.shapes import shapes

DENSE = {"name": "a model", "layers": 4, "hidden": 64, "heads": 8, "vocabulary": 100, "ffn": 256}

LATENT = LatentAttention(query_rank=None, key_value_rank=4, nope_dim=4, rope_dim=4, value_dim=4)


def shape(**changes: object) -> ModelShape:
    return ModelShape(**{**DENSE, **changes})  # type: ignore[arg-type]


def test_heads_that_follow_are_filled_in():
    filled = shape()
    assert (filled.kv_heads, filled.head_dim) == (8, 8)
    assert filled == shape(kv_heads=8, head_dim=8)


def test_latent_attention_says_its_own_heads():
    result = model("deepseek-v3")
    assert (result.kv_heads, result.head_dim) == (None, None)
    assert (result.score_dim, result.value_dim, result.query_width, result.value_width) == (
        192,
        128,
        128 * 192,
        128 * 128,
    )
    assert result.key_heads == 128


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"layers": 0}, "layers"),
        ({"heads": 2.0}, "heads"),
        ({"vocabulary": 10**5000}, "vocabulary"),
        ({"layers": 10**6}, "layers"),
        ({"kv_heads": 3}, "kv_heads"),
        ({"heads": 7}, "head_dim"),
        ({"ffn": None}, "ffn"),
        ({"norm": "batch"}, "norm"),
        ({"norms_a_layer": 3}, "norms_a_layer"),
        ({"latent": LATENT, "bias_qkv": True}, "bias_qkv"),
        ({"experts": Experts(count=8, top_k=2, width=4, leading_dense_layers=5)}, "leading_dense_layers"),
    ],
)
def test_numbers_that_no_model_has(change: dict[str, object], field: str):
    with pytest.raises(InputError) as raised:
        shape(**change)
    assert raised.value.field == field
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("change", "field"),
    [({"count": 0}, "count"), ({"top_k": 9}, "top_k"), ({"width": 0}, "width"), ({"every": 0}, "every")],
)
def test_experts_that_cannot_be(change: dict[str, int], field: str):
    with pytest.raises(InputError) as raised:
        Experts(**{"count": 8, "top_k": 2, "width": 4, **change})  # type: ignore[arg-type]
    assert raised.value.field == field


def test_each_other_layer_has_experts_from_the_second_on():
    """Llama 4 Maverick: layers 1, 3, ... of 48 (``interleave_moe_layer_step`` 2)."""
    result = model("llama4-maverick")
    assert [result.has_experts(layer) for layer in range(4)] == [False, True, False, True]
    assert (result.moe_layers, result.dense_layers) == (24, 24)


def test_each_sixth_layer_sees_everything():
    """Gemma 3: five windowed layers, then one that is not."""
    result = model("gemma3-1b")
    assert [result.is_windowed(layer) for layer in range(7)] == [True] * 5 + [False, True]
    assert result.windowed_layers == 26 - 4


@given(shapes())
def test_layers_that_are_counted_are_those_that_are_told(drawn: ModelShape):
    layers = range(drawn.layers)
    assert drawn.moe_layers == sum(map(drawn.has_experts, layers))
    assert drawn.windowed_layers == sum(map(drawn.is_windowed, layers))
    assert drawn.dense_layers + drawn.moe_layers == drawn.layers


@given(st.integers(1, 200), st.integers(1, 300), st.booleans())
def test_keys_seen_are_those_of_the_mask(sequence: int, window: int, chunked: bool):
    """Each query sees, in the mean of the triangle, half a key less than the ones up to itself that the window leaves."""
    result = shape(sliding_window=window, chunked_windows=chunked)
    if chunked:
        areas = [query % window + 0.5 for query in range(sequence)]
    else:
        areas = [query + 0.5 if query < window else window for query in range(sequence)]
    assert result.keys_seen(sequence, windowed=True) == pytest.approx(sum(areas) / sequence)


def test_a_kernel_that_skips_nothing_computes_all_keys():
    result = model("gpt-oss-120b")
    assert result.keys_seen(4096, windowed=True, causal=False) == 4096
    assert result.keys_seen(4096) == 2048
    assert result.keys_seen(4096, windowed=True) == 126
