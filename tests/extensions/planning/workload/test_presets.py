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


def test_every_name_is_that_of_one_model_with_a_source():
    assert [model(name).name for name in model_names()] == list(model_names())
    assert [name for name in model_names() if not model(name).source] == []
    names = planning("presets.json")["models"]
    assert [name for name in names if model(name).name != name] == []


def test_a_short_form_changes_the_model_of_its_name():
    """Layers without MTP are those of a row that states them; learned positions are as many as tokens."""
    assert from_dict({"name": "DeepSeek-V3"}).mtp_layers == 1
    assert from_dict({"name": "deepseek-v3", "layers": 61}).mtp_layers == 0
    assert from_dict({"name": "deepseek-v3", "layers": 61, "mtp": 1}).mtp_layers == 1
    assert from_dict({"name": "llama3-8b", "seq": 32768}).trained_sequence == 32768
    cut = from_dict({"name": "gpt-oss-120b, 4 layers", "layers": 4})
    assert (cut.name, cut.layers, cut.sliding_window, cut.attention_sinks) == ("gpt-oss-120b, 4 layers", 4, 128, True)
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
