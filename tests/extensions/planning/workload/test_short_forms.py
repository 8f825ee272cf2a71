"""The short form of a shape, there and back."""

import pytest
from hypothesis import given

from pipeplan.extensions.planning.workload import ModelShape, shape_from, short_form
from pipeplan.foundation.errors import InputError, UnknownNameError
from tests.extensions.planning.workload.shapes import hybrids, shapes

DENSE = {"name": "mine", "layers": 4, "hidden": 64, "heads": 8, "vocab": 100, "ffn": 256}
EXPERTS = {"experts": 8, "topk": 2, "moe_ffn": 32}
LATENT = {"q_lora": 16, "kv_lora": 8, "qk_nope": 4, "qk_rope": 4, "v": 4}


@given(shapes() | hybrids())
def test_writer_and_reader_undo_each_other(drawn: ModelShape):
    assert shape_from(short_form(drawn)) == drawn


def test_what_is_not_said_is_a_model_of_llamas_kind():
    result = shape_from(DENSE)
    assert (result.norm, result.gated, result.bias_qkv, result.learned_positions) == ("rms", True, False, None)


def test_no_gate_and_tied_embeddings_make_a_model_of_gpt2s_kind():
    result = shape_from({**DENSE, "gated": False, "tied": True, "seq": 1024})
    assert (result.norm, result.bias_qkv, result.bias_all, result.learned_positions) == ("layer", True, True, 1024)


def test_a_model_of_gpt2s_kind_can_be_told_to_have_no_positions_or_biases():
    result = shape_from(
        {**DENSE, "gated": False, "tied": True, "seq": 1024, "learned_positions": None, "norm": "layer-no-bias"}
    )
    assert (result.norm, result.bias_all, result.learned_positions) == ("layer-no-bias", False, None)


def test_no_gate_alone_is_a_model_of_nemotrons_kind():
    result = shape_from({**DENSE, "gated": False})
    assert (result.norm, result.bias_all, result.learned_positions) == ("layer", False, None)


@pytest.mark.parametrize(
    ("document", "field", "words"),
    [
        ({"name": "GPT 98.5B", "seq": 1024}, "layers", "lacks layers, hidden, heads, vocab"),
        ({**DENSE, "gated": "yes"}, "gated", "true or false"),
        ({**DENSE, "mla": {"q_lora": 4}}, "kv_lora", "lacks kv_lora"),
        ({**DENSE, "experts": 8}, "topk", "lacks topk, moe_ffn"),
        ({**DENSE, **EXPERTS, "topk": 9}, "top_k", "invalid top_k 9"),
        ({**DENSE, "ffn": None}, "ffn", "dense"),
    ],
)
def test_what_is_wrong_is_named(document: dict[str, object], field: str, words: str):
    with pytest.raises(InputError, match=words) as raised:
        shape_from(document)
    assert raised.value.field == field


def test_a_key_that_nobody_knows_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'kv_heads'"):
        shape_from({**DENSE, "kv_head": 4})
    with pytest.raises(UnknownNameError, match="did you mean 'kv_lora'"):
        shape_from({**DENSE, "mla": {**LATENT, "kv_lor": 4}})


def test_experts_everywhere_need_no_dense_ffn():
    assert shape_from({**DENSE, **EXPERTS, "ffn": None}).dense_layers == 0


def test_what_tables_of_runs_count_is_passed_over():
    assert shape_from({**DENSE, "parameters": 5, "active_parameters": 6, "mtp_unknown": True}) == shape_from(DENSE)
