"""What a shape knows of itself, and what no model's shape is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import Experts, LatentAttention, ModelShape, model
from pipeplan.foundation.errors import InputError

DENSE = {"name": "a model", "layers": 4, "hidden": 64, "heads": 8, "vocabulary": 100, "ffn": 256}

LATENT = LatentAttention(query_rank=None, key_value_rank=4, nope_dim=4, rope_dim=4, value_dim=4)


def shape(**changes: object) -> ModelShape:
    return ModelShape(**{**DENSE, **changes})  # type: ignore[arg-type]


def test_heads_that_follow_are_filled_in():
    assert (shape().kv_heads, shape().head_dim) == (8, 8)
    assert shape() == shape(kv_heads=8, head_dim=8)
    latent = model("deepseek-v3")
    assert (latent.kv_heads, latent.head_dim, latent.key_heads) == (None, None, 128)
    assert (latent.score_dim, latent.value_dim, latent.query_width) == (192, 128, 128 * 192)


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


def test_experts_that_cannot_be():
    for change in ({"count": 0}, {"top_k": 9}, {"width": 0}, {"every": 0}):
        with pytest.raises(InputError) as raised:
            Experts(**{"count": 8, "top_k": 2, "width": 4, **change})  # type: ignore[arg-type]
        assert raised.value.field == next(iter(change))


def test_layers_by_their_period():
    """Llama 4 Maverick has experts in layers 1, 3, ... of 48; Gemma 3 has five windowed layers, then one without."""
    maverick, gemma = model("llama4-maverick"), model("gemma3-1b")
    assert [maverick.has_experts(layer) for layer in range(4)] == [False, True, False, True]
    assert (maverick.moe_layers, maverick.dense_layers) == (24, 24)
    assert [gemma.is_windowed(layer) for layer in range(7)] == [True] * 5 + [False, True]


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
