"""Published config.json files as they are, and what is wrong with others."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import (
    ModelShape,
    architecture_names,
    known_model,
    model,
    parameter_counts,
    read_config,
    read_model,
    short_form,
)
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError

CONFIGS = Path(__file__).parent / "configs"

COUNTS: dict[str, int] = json.loads((CONFIGS.parent / "parameter_counts.json").read_text())["configs"]
"""Parameters without MTP layers and images, as Hugging Face Transformers 5.23 builds each file's model; grok-1, which it
does not have, by hand: 64 layers with four norms, a tied head."""

LLAMA = json.loads((CONFIGS / "Meta-Llama-3-8B.json").read_text())
OSS = json.loads((CONFIGS / "gpt-oss-20b.json").read_text())
QWEN = json.loads((CONFIGS / "Qwen2.5-7B.json").read_text())
QWEN_MOE = json.loads((CONFIGS / "Qwen3-30B-A3B.json").read_text())
DEEPSEEK = json.loads((CONFIGS / "DeepSeek-V3.json").read_text())
NEMOTRON = json.loads((CONFIGS / "NVIDIA-Nemotron-Nano-9B-v2.json").read_text())
LINEAR = json.loads((CONFIGS / "Qwen3-Next-80B-A3B-Instruct.json").read_text())
ERNIE = json.loads((CONFIGS / "ERNIE-4.5-21B-A3B-Base-PT.json").read_text())


def shape_of(name: str) -> ModelShape:
    return read_config(CONFIGS / f"{name}.json")


def without(config: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in fields}


def test_published_files_have_their_exact_parameters():
    assert {path.stem for path in CONFIGS.glob("*.json")} == set(COUNTS)
    for name, count in COUNTS.items():
        assert parameter_counts(read_config(CONFIGS / f"{name}.json")).total == count, name


def test_published_files_say_what_presets_say():
    """In all that a file says of the model, not of its training; trainers build grok-1 with other norms and another head."""
    for name in [name for name in COUNTS if known_model(name) is not None and name != "grok-1"]:
        read, preset = read_config(CONFIGS / f"{name}.json"), model(name)
        training: dict[str, Any] = {"trained_sequence": read.trained_sequence, "precision": read.precision}
        assert replace(preset, name=read.name, source=read.source, **training) == read, name


def test_published_files_have_no_field_that_is_unknown():
    """Except further tokens that Transformers does not build."""
    unread = {name: read_config(CONFIGS / f"{name}.json").details.unread for name in COUNTS}
    assert {name: fields for name, fields in unread.items() if fields} == {
        "ERNIE-4.5-21B-A3B-Base-PT": "num_nextn_predict_layers",
        "MiniMax-M2": "mtp_transformer_layers, num_mtp_modules, use_mtp",
    }


def test_a_field_that_is_unknown_is_kept_by_name():
    """Tokens, formats, dropout and initialization say nothing of a network, nor does what is null."""
    reported = {
        "eos_token_id": 5,
        "torch_dtype": "float16",
        "attention_dropout": 0.1,
        "initializer_range": 0.1,
        "memory": None,
    }
    assert read_config({**LLAMA, **reported}) == read_config(LLAMA)
    assert read_config({**LLAMA, "scoring_func": "novel"}).details.unread == "scoring_func"
    assert read_config({**LLAMA, "memory": 3, "gates": [1]}).details.unread == "memory, gates"
    assert (
        read_config({**LLAMA, "use_qk_norm": True, "sliding_window": 512}).details.unread
        == "use_qk_norm, sliding_window"
    )
    assert read_config({**OSS, "attn_config": {"memory": 3}}).details.unread == "attn_config.memory"
    multimodal = json.loads((CONFIGS / "gemma-3-27b-pt.json").read_text())
    assert read_config({**multimodal, "image_tokens": 4}).details.unread == ""


def test_positions_are_as_the_library_reads_them():
    """Share, base and kind of scaling, as Transformers 5.23 has them in the configuration of each file."""
    shares = {name: read_config(CONFIGS / f"{name}.json").details.rotary_share for name in COUNTS}
    assert {name: share for name, share in shares.items() if share != 1} == {
        "Bamba-9B-v1": 0.5,
        "DeepSeek-V4-Flash-Base": 0.125,
        "GLM-4-9B-0414": 0.5,
        "GLM-4.5": 0.5,
        "GLM-4.5-Air": 0.5,
        "Laguna-XS.2": 0.5,
        "MiMo-V2-Flash": 0.334,
        "MiniMax-M2": 0.5,
        "Minitron-8B-Base": 0.5,
        "Nemotron-4-340B-Base-hf": 0.5,
        "Qwen3-Next-80B-A3B-Instruct": 0.25,
        "Qwen3.5-27B": 0.25,
        "Qwen3.5-35B-A3B": 0.25,
        "Qwen3.5-397B-A17B": 0.25,
        "Qwen3.5-9B": 0.25,
        "glm-4-9b-hf": 0.5,
        "gpt-neox-20b": 0.25,
    }


def test_windows_are_those_of_the_file():
    """A list of types says which layers have one; Qwen's are off by default; Mistral's is 4096 unless it is null."""
    every_third = ["sliding_attention", "sliding_attention", "full_attention"] * 8
    mistral = json.loads((CONFIGS / "Mistral-7B-v0.1.json").read_text())
    on = {**QWEN, "use_sliding_window": True}
    for config, window, every in (
        ({**OSS, "layer_types": every_third}, 128, 3),
        ({**OSS, "layer_types": ["full_attention"] * 24}, None, 1),
        ({**OSS, "layer_types": ["sliding_attention"] * 24}, 128, 1),
        (QWEN, None, 1),
        ({**on, "max_window_layers": 0}, 131072, 1),
        ({**on, "max_window_layers": 28}, None, 1),
        (without(mistral, "sliding_window"), 4096, 1),
        ({**mistral, "sliding_window": None}, None, 1),
    ):
        shape = read_config(config)
        assert (shape.sliding_window, shape.sliding_every) == (window, every)
    pattern = read_config({**OSS, "layer_types": [*["full_attention"] * 2, *["sliding_attention"] * 22]}).pattern
    assert pattern == "2AE 22WE"


def test_gemma_has_the_activation_of_its_own_field():
    document = json.loads((CONFIGS / "gemma-2b.json").read_text()) | {"hidden_act": "relu"}
    assert read_config(document).activation == "gelu-tanh"
    assert read_config({**document, "hidden_activation": "silu"}).activation == "silu"


def test_each_other_layer_with_experts():
    """Newer files have another name for the number of experts."""
    renamed = {**without(QWEN_MOE, "num_experts"), "num_local_experts": 128}
    assert read_config(renamed) == read_config(QWEN_MOE)
    result = read_config({**QWEN_MOE, "decoder_sparse_step": 2})
    assert (result.moe_layers, result.dense_layers, result.ffn) == (24, 24, 6144)
    assert [result.has_experts(layer) for layer in range(3)] == [False, True, False]
    assert read_config({**QWEN_MOE, "mlp_only_layers": [0, 1]}).dense_layers == 2


def test_what_a_file_of_each_architecture_lacks_is_named():
    for name in architecture_names():
        with pytest.raises(InputError, match=r"config.json of .* lacks") as raised:
            read_config({"model_type": name})
        assert raised.value.field, name


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        (
            without(LLAMA, "num_hidden_layers", "vocab_size"),
            "num_hidden_layers",
            "llama lacks num_hidden_layers, vocab_size",
        ),
        (
            {**LLAMA, "hidden_size": "4096"},
            "hidden_size",
            "invalid hidden_size '4096' of a llama config.json: expected an integer >= 0",
        ),
        (
            {**LLAMA, "num_hidden_layers": 0},
            "layers",
            "contradictory config.json of llama: invalid layers 0: expected 1 to",
        ),
        ({**LLAMA, "tie_word_embeddings": "no"}, "tie_word_embeddings", "true or false"),
        ({**LLAMA, "mlp_bias": True}, "mlp_bias", "attention_bias"),
        ({**LLAMA, "hidden_size": -(10**5000)}, "hidden_size", r"invalid hidden_size: about 10\^"),
        ({**OSS, "layer_types": ["full_attention"]}, "layer_types", "expected 24 types"),
        ({**DEEPSEEK, "moe_layer_freq": 2}, "moe_layer_freq", "every layer"),
        ({**ERNIE, "moe_layer_end_index": 20}, "moe_layer_end_index", "the last layer, 27"),
        ({**ERNIE, "use_bias": True}, "use_bias", "false, as the published"),
        ({**DEEPSEEK, "attention_bias": True}, "attention_bias", "latent attention"),
        (without(LLAMA, "model_type"), "model_type", "has no model_type"),
        ({**LLAMA, "model_type": "llama5"}, "model_type", "did you mean 'llama'"),
        ({**LLAMA, "model_type": "t5", "is_encoder_decoder": True}, "is_encoder_decoder", "t5 is an encoder-decoder"),
        (
            {**LLAMA, "model_type": "rwkv7"},
            "model_type",
            "rwkv7 is not modelled: it has linear recurrences$",
        ),
        ({**NEMOTRON, "hybrid_override_pattern": "MX"}, "hybrid_override_pattern", "expected M, \\*, - and E, not 'X'"),
        (
            {**LINEAR, "layer_types": ["mega"] * 48},
            "layer_types",
            "layers of type 'mega' of qwen3_next are not modelled",
        ),
        ({**LLAMA, "quantization_config": {"quant_method": "gptq"}}, "quantization_config", "quantized for inference"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_field(config: dict[str, Any], field: str, words: str):
    with pytest.raises(InputError, match=words) as raised:
        read_config(config)
    assert raised.value.field == field
    assert len(str(raised.value)) < 700


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ('{"model_type": "llama"', "invalid model's config.json"),
        ('{"model_type": "llama", "model_type": "gpt2"}', "duplicate key 'model_type'"),
        ("[1, 2]", "not a list"),
        ('{"vocab_size": ' + "9" * 5000 + "}", "invalid model's config.json"),
        ("[" * 100_000, "nested too deeply"),
        (" " * (9 << 20), "has at most"),
    ],
)
def test_files_that_are_no_config(tmp_path: Path, content: str, words: str):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=words):
        read_config(path)


def test_documents_that_no_message_could_show(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\nlayers: 0x{'f' * 100_000}\n")
    with pytest.raises(InputError, match="invalid layers: about"):
        read_config(path)
    config = {**LLAMA}
    config["rope_scaling"] = config
    with pytest.raises(InputError, match="nested too deeply"):
        read_config(config)


def test_a_model_by_name_file_folder_or_content(tmp_path: Path):
    assert read_model("llama3-8b") == model("llama3-8b")
    assert read_model(str(CONFIGS / "gpt2.json")) == read_model(CONFIGS / "gpt2.json")
    assert read_model({"name": "llama3-8b", "layers": 4}).layers == 4
    path = tmp_path / "mine.yaml"
    path.write_text("layers: 4\nhidden: 64\nheads: 8\nvocab: 100\nffn: 256\n")
    assert read_model(str(path)) == ModelShape(name="mine", layers=4, hidden=64, heads=8, vocabulary=100, ffn=256)
    assert (read_config(CONFIGS / "starcoder2-15b.json").name, read_config(LLAMA).name) == ("starcoder2-15b", "llama")
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert read_config(folder) == read_config(folder / "config.json")
    assert read_config(folder).name == "my-model"
    short = tmp_path / "mine.json"
    short.write_text(json.dumps(short_form(model("deepseek-v3"))))
    assert read_model(short) == model("deepseek-v3"), "a short form in JSON is no file of a hub"
    for source, message in (
        ("lama3-8b", "did you mean 'llama3-8b'"),
        ("", "unknown model ''"),
        ("x.json", "cannot read"),
    ):
        with pytest.raises(InputError, match=message):
            read_model(source)


def test_numbers_that_only_python_writes_are_read_or_refused_in_words(tmp_path: Path):
    path = tmp_path / "config.json"
    text = json.dumps({**NEMOTRON, "time_step_limit": [0.0, float("inf")], "time_step_max": float("nan")})
    path.write_text(text)
    assert "Infinity" in text
    assert replace(read_config(path), name="", source="") == replace(read_config(NEMOTRON), name="", source="")
    path.write_text(json.dumps({**NEMOTRON, "hidden_size": float("-inf")}))
    with pytest.raises(InputError, match="invalid hidden_size -inf of a nemotron_h config"):
        read_config(path)


def test_the_language_model_of_a_multimodal_file_is_read_wherever_it_is():
    """Qwen2.5-Omni's is a part of a part; what the parts leave out is that of the whole file."""
    text = without(QWEN, "tie_word_embeddings", "model_type") | {"model_type": "qwen2_5_omni_text"}
    whole = {"model_type": "qwen2_5_omni", "thinker_config": {"audio_config": {}, "text_config": text}}
    shape = read_config(whole)
    assert shape.source == "config.json of qwen2, its language model alone"
    assert parameter_counts(shape) == parameter_counts(read_config(QWEN))
    assert read_config({**whole, "tie_word_embeddings": True}).tied_embeddings


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = PLAIN | st.lists(PLAIN | st.lists(PLAIN, max_size=1), max_size=3) | st.sampled_from([10**5000, -(10**5000)])


@given(st.sampled_from(sorted(COUNTS)), st.data())
def test_whatever_a_field_holds_is_read_or_refused_in_words(name: str, data: st.DataObject):
    config = json.loads((CONFIGS / f"{name}.json").read_text())
    inner = config.get("text_config", config)
    fields = st.sampled_from(sorted(inner))
    changes = data.draw(
        st.dictionaries(fields, VALUES | st.dictionaries(st.sampled_from(["quant_method", "a"]), VALUES), max_size=3)
    )
    inner.update(changes)
    _read_or_refuse(lambda: read_config(config))


@given(
    st.dictionaries(
        st.sampled_from(["name", *short_form(model("deepseek-v3")), "seq", "gated", "tied", "moe_every"]), VALUES
    )
)
def test_whatever_a_short_form_holds_is_read_or_refused_in_words(document: dict[str, Any]):
    _read_or_refuse(lambda: read_config({"name": "x", **document}))


def _read_or_refuse(read: Callable[[], ModelShape]) -> None:
    try:
        result = read()
    except PipeplanError as error:
        message = str(error)
        assert 10 < len(message) < 900
    else:
        assert parameter_counts(result).total > 0
