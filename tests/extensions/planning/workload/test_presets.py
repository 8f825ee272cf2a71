"""Published models by name, and rows of runs that name one."""

import pytest

from pipeplan.extensions.planning.workload import from_dict, known_model, model, model_names
from pipeplan.foundation.errors import InputError, UnknownNameError
from tests.planning_data import planning


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("meta-llama/Meta-Llama-3-70B-Instruct", "llama3-70b"),
        ("Llama-3.1-405B", "llama3.1-405b"),
        ("deepseek-ai/DeepSeek-V3-Base", "deepseek-v3"),
        ("Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("google/gemma-3-27b-it", "gemma3-27b"),
        ("GPT-3", "gpt3-175b"),
        ("  gpt oss 120b ", "gpt-oss-120b"),
    ],
)
def test_spelling_does_not_matter(spelling: str, name: str):
    assert model(spelling).name == name


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'llama3-70b'") as raised:
        model("lama3-70")
    assert raised.value.field == "model"
    assert known_model("lama3-70") is None


def test_no_two_models_have_one_spelling():
    """Else one of them could not be had."""
    assert [model(name).name for name in model_names()] == list(model_names())


def test_each_model_says_where_its_numbers_are_from():
    for name in model_names():
        assert model(name).source, name


def test_all_shared_presets_are_known():
    names = planning("presets.json")["models"]
    assert len(names) >= 29
    assert [name for name in names if model(name).name != name] == []


def test_a_name_alone_is_the_whole_model():
    assert from_dict({"name": "DeepSeek-V3"}).mtp_layers == 1
    assert from_dict({"name": "llama3-8b", "seq": 32768}).trained_sequence == 32768


def test_a_cut_keeps_what_it_does_not_say():
    cut = from_dict({"name": "gpt-oss-120b, 4 layers", "layers": 4})
    assert (cut.name, cut.layers, cut.sliding_window, cut.attention_sinks) == ("gpt-oss-120b, 4 layers", 4, 128, True)


def test_a_shape_that_is_said_says_whether_there_are_mtp_layers():
    """Rows of one model with and without them differ in this key alone."""
    assert from_dict({"name": "deepseek-v3", "layers": 61}).mtp_layers == 0
    assert from_dict({"name": "deepseek-v3", "layers": 61, "mtp": 1}).mtp_layers == 1


def test_learned_positions_are_as_many_as_tokens():
    assert from_dict({"name": "mpt-125m", "seq": 65536}).learned_positions == 65536
    assert from_dict({"name": "mpt-125m", "seq": 512, "learned_positions": 2048}).learned_positions == 2048


def test_rows_of_runs_are_read_or_lack_a_shape():
    """The rows that say nothing but an unknown name are refused; all others are read."""
    rows = [row["model"] for row in planning("published_runs.json")["rows"]]
    shapeless = [row for row in rows if known_model(row["name"].split(",")[0]) is None and "hidden" not in row]
    for row in shapeless:
        with pytest.raises(InputError, match="write its shape, or the name of a known model"):
            from_dict(row)
    assert {row["name"] for row in shapeless} == {"GPT 98.5B"}
    assert [row["name"] for row in rows if row not in shapeless and from_dict(row).layers != row["layers"]] == []
