"""The short form of a shape, there and back."""

import pytest
from hypothesis import given

from pipeplan.extensions.planning.workload import ModelShape, shape_from, short_form
from pipeplan.foundation.errors import InputError
from tests.extensions.planning.workload.shapes import hybrids, shapes

DENSE = {"name": "mine", "layers": 4, "hidden": 64, "heads": 8, "vocab": 100, "ffn": 256}
EXPERTS = {"experts": 8, "topk": 2, "moe_ffn": 32}
LATENT = {"q_lora": 16, "kv_lora": 8, "qk_nope": 4, "qk_rope": 4, "v": 4}


@given(shapes() | hybrids())
def test_writer_and_reader_undo_each_other(drawn: ModelShape):
    assert shape_from(short_form(drawn)) == drawn


GPT2 = {"gated": False, "tied": True, "seq": 1024}


@pytest.mark.parametrize(
    ("keys", "norm", "biases", "positions"),
    [
        ({}, "rms", False, None),
        (GPT2, "layer", True, 1024),
        ({**GPT2, "learned_positions": None, "norm": "layer-no-bias"}, "layer-no-bias", False, None),
        ({"gated": False}, "layer", False, None),
    ],
)
def test_models_of_the_kinds_of_llama_gpt2_and_nemotron(
    keys: dict[str, object], norm: str, biases: bool, positions: int | None
):
    shape = shape_from({**DENSE, **keys})
    assert (shape.norm, shape.bias_all, shape.learned_positions) == (norm, biases, positions)
    counted = {"parameters": 5, "active_parameters": 6, "mtp_unknown": True}
    assert shape_from({**DENSE, **keys, **counted}) == shape, "tables of runs count, which is passed over"


def test_experts_everywhere_need_no_dense_ffn():
    assert shape_from({**DENSE, **EXPERTS, "ffn": None}).dense_layers == 0


@pytest.mark.parametrize(
    ("document", "field", "words"),
    [
        ({"name": "GPT 98.5B", "seq": 1024}, "layers", "lacks layers, hidden, heads, vocab"),
        ({**DENSE, "gated": "yes"}, "gated", "true or false"),
        ({**DENSE, "mla": {"q_lora": 4}}, "kv_lora", "lacks kv_lora"),
        ({**DENSE, "experts": 8}, "topk", "lacks topk, moe_ffn"),
        ({**DENSE, "norm": 3}, "norm", "expected text"),
        ({**DENSE, "rope_theta": "high"}, "rope_theta", "expected a number"),
        ({**DENSE, "kv_head": 4}, "kv_head", "did you mean 'kv_heads'"),
        ({**DENSE, "mla": {**LATENT, "kv_lor": 4}}, "mla.kv_lor", "did you mean 'kv_lora'"),
    ],
)
def test_what_is_wrong_is_named(document: dict[str, object], field: str, words: str):
    with pytest.raises(InputError, match=words) as raised:
        shape_from(document)
    assert raised.value.field == field
