"""The hub's own library builds each published config file's model, without its numbers, and counts its parameters."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from pipeplan.extensions.planning.workload import ModelShape, layer_parts, parameter_counts, read_config
from tests.extensions.planning.workload.test_config_json import CONFIGS

NOT_THEIRS = {"grok-1": "Transformers has no Grok"}
SAME_AS = {"kimi_k2": "deepseek_v3", "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text"}
"""Architectures that the library knows by another name."""

STRAY = ("_source", "auto_map", "quantization_config", "attn_temperature_tuning")
"""Fields that change no parameter, and that it would act upon or refuse."""

UNREAD = {
    "deepseek_v32": ("layer_types",),
    "glm_moe_dsa": ("layer_types", "index_skip_topk_offset", "index_topk_freq"),
    "deepseek_v4": (
        # Two bases of rotary positions, by either name.
        *("compress_rope_theta", "rope_parameters.compress", "rope_parameters.main"),
        *("hc_eps", "hc_sinkhorn_iters", "qk_rope_head_dim", "scoring_func"),
    ),
    "bailing_hybrid": ("kda_lower_bound", "kda_safe_gate"),
    "olmo_hybrid": (
        *("linear_a_log_max", "linear_a_log_min", "linear_allow_neg_eigval", "linear_dt_init_floor", "linear_dt_max"),
        "linear_dt_min",
    ),
    "nemotron_h": (
        *("mtp_layers_block_type", "moe_intermediate_size", "moe_shared_expert_intermediate_size", "n_routed_experts"),
        *("norm_topk_prob", "num_experts_per_tok", "routed_scaling_factor"),
    ),
    "dbrx": ("num_key_value_heads",),
}
"""Fields that the library writes of an architecture and that are unknown here."""

NAMES = sorted(path.stem for path in CONFIGS.glob("*.json") if path.stem not in NOT_THEIRS)
SWITCHES = ("tie_word_embeddings", "attention_bias", "use_qk_norm", "use_bias", "qkv_bias")
PATTERNS = ("no_rope_layers", "moe_layers", "mlp_only_layers")
SLICED = ("layer_types", "mlp_layer_types", "hybrid_override_pattern", "num_attention_heads_per_layer")
NEVER_TIED = ("nemotron_h", "kimi_linear", "bailing_hybrid")
"""Architectures whose embeddings the library never ties, whatever their file says."""


def language_model(name: str) -> dict[str, Any]:
    config = json.loads((CONFIGS / f"{name}.json").read_text())
    config = config.get("text_config", config)
    return {key: value for key, value in config.items() if key not in STRAY}


def configured(config: dict[str, Any]) -> Any:
    """The library's configuration."""
    return AutoConfig.for_model(**config | {"model_type": SAME_AS.get(config["model_type"], config["model_type"])})


def theirs(config: dict[str, Any]) -> int:
    """Parameters of the library's model; a tied matrix counts once, and the bias that selects experts is one."""
    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(configured(config))
    chosen = ("e_score_correction_bias", "expert_bias")
    biases = sum(math.prod(buffer.shape) for name, buffer in built.named_buffers() if name.endswith(chosen))
    return sum(math.prod(each.shape) for each in built.parameters()) + biases


def cut(config: dict[str, Any], layers: int) -> dict[str, Any]:
    """The first layers only."""
    field = next(each for each in ("num_hidden_layers", "n_layer", "n_layers") if each in config)
    kept = {key: value for key, value in config.items() if key not in PATTERNS}
    kept |= {key: kept[key][:layers] for key in SLICED if key in kept}
    return {**kept, field: layers}


@pytest.mark.parametrize("name", NAMES)
def test_published_files(name: str, ran: Callable[[str], None]) -> None:
    config = language_model(name)
    assert parameter_counts(read_config(config)).total == theirs(config)
    if name == NAMES[-1]:
        ran(f"parameters of {len(NAMES)} published config files")


@pytest.mark.parametrize("name", NAMES)
def test_files_that_the_library_saves_again(name: str, tmp_path: Path) -> None:
    """It writes all fields, some under newer names; nearly all of them are known."""
    config = language_model(name)
    configured(config).save_pretrained(tmp_path)
    again, once = read_config(tmp_path), read_config(config)
    unread = set(again.details.unread.split(", ")) - set(once.details.unread.split(", ")) - {""}
    assert unread <= set(UNREAD.get(config["model_type"], ()))
    details = replace(again.details, unread=once.details.unread)
    assert replace(again, name=once.name, source=once.source, details=details) == once


@pytest.mark.parametrize("name", NAMES)
def test_rotary_positions(name: str) -> None:
    """Share, base and scaling are those of the library's own configuration, where every layer has the same."""
    config = language_model(name)
    rope = getattr(configured(config), "rope_parameters", None) or {}
    shape = read_config(config)
    if shape.positions != "rope" or config["model_type"] in ("deepseek_v4", "dbrx"):
        return  # DBRX's own base is under another key, and DeepSeek-V4 has two bases.
    rope = rope.get("full_attention", rope)
    scaling = shape.details.rotary_scaling
    assert shape.details.rotary_share == rope.get("partial_rotary_factor", 1.0)
    assert shape.rope_theta == rope["rope_theta"]
    assert ("default" if scaling is None else scaling.kind) == rope["rope_type"]
    assert scaling is None or scaling.factor == rope["factor"]


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("dbrx", "ERNIE"))])
def test_switches(name: str) -> None:
    """Each switch that a file has the other way round, on its first layers; DBRX's and ERNIE's may not be turned."""
    config = cut(language_model(name), 4)
    latent = "kv_lora_rank" in config
    untied = ("tie_word_embeddings",) if config["model_type"] in NEVER_TIED else ()
    for switch in (switch for switch in SWITCHES if switch not in untied):
        if isinstance(config.get(switch), bool) and not (latent and switch == "attention_bias"):
            turned = {**config, switch: not config[switch]}
            assert parameter_counts(read_config(turned)).total == theirs(turned), switch


@pytest.mark.parametrize("name", [name for name in NAMES if "first_k_dense_replace" in language_model(name)])
@pytest.mark.parametrize("dense", [0, 2, 4])
def test_leading_dense_layers(name: str, dense: int) -> None:
    config = {**cut(language_model(name), 4), "first_k_dense_replace": dense}
    config.pop("mlp_layer_types", None)
    assert parameter_counts(read_config(config)).total == theirs(config)


@pytest.mark.parametrize("name", ["Qwen3-30B-A3B", "Qwen1.5-MoE-A2.7B"])
def test_layers_with_experts_between_dense_ones(name: str) -> None:
    for change in ({"decoder_sparse_step": 2}, {"decoder_sparse_step": 3}, {"mlp_only_layers": [0, 1]}):
        config = {**cut(language_model(name), 5), **change}
        assert parameter_counts(read_config(config)).total == theirs(config), change


def test_which_layers_have_experts() -> None:
    """Llama 4 Maverick layer by layer."""
    config = cut(language_model("Llama-4-Maverick-17B-128E"), 6)
    shape = read_config(config)
    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    for index, layer in enumerate(built.model.layers):
        assert sum(math.prod(each.shape) for each in layer.parameters()) == of_layer(shape, index)


def of_layer(shape: ModelShape, index: int) -> int:
    return sum(part.count for part in layer_parts(shape, experts=shape.has_experts(index)))
