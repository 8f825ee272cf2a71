"""Megatron-LM's flags for the shapes of published config files, and the parts that have no flag."""

import json
import re
from dataclasses import replace
from math import log
from pathlib import Path

import pytest

import pipeplan
from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.flags.megatron_model import model_flags, model_warnings, to_add
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import flags_of
from pipeplan.extensions.planning.workload import ModelShape, model, read_config
from tests.extensions.planning.workload.test_config_json import CONFIGS, shape_of


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        (
            "DeepSeek-V3.2",
            {
                "--experimental-attention-variant dsa",
                "--dsa-indexer-n-heads 64",
                "--dsa-indexer-head-dim 128",
                "--dsa-indexer-topk 2048",
            },
        ),
        ("K-EXAONE-236B-A23B", {"--window-size '(127,0)'", "--window-attn-skip-freq 4"}),
        ("MiMo-V2-Flash", {f"--window-attn-skip-freq '({'+'.join(['[0]*1+[1]*4', *['[0]*1+[1]*5'] * 7, '[0]*1'])})'"}),
        ("GLM-4.7-Flash", {"--kv-channels 256", "--v-head-dim 256"}),
    ],
)
def test_flags(name: str, flags: set[str]) -> None:
    """Windows are 1 in their list; the size of a head must be set where the heads do not divide the width."""
    shape = shape_of(name)
    assert flags <= set(model_flags(shape))


NETWORKS: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "networks.json").read_text())
"""Flags of the network of each file, and its parts that have none."""


def options(flags: str) -> dict[str, str]:
    return {name: value.strip() for name, value in re.findall(r"(--[\w-]+)([^-]*(?:-(?!-)[^-]*)*)", flags)}


def parts_of(shape: ModelShape, release: str = "0.19") -> str:
    """Parts of a model that no flag expresses, as its warning names them."""
    named = [
        re.search(r"has no flags for parts of \S+ \((.*)\): they", warning)
        for warning in model_warnings(shape, release)
    ]
    return "; ".join(match[1] for match in named if match)


def test_each_fact_of_a_config_is_a_flag_or_named() -> None:
    """Also of releases without a flag, and as a list where a period does not divide the layers."""
    oss, smol = shape_of("gpt-oss-120b"), shape_of("SmolLM3-3B-Base")
    assert "--position-embedding-type rope" in [*model_flags(oss, "0.18")]
    assert parts_of(oss, "0.18") == "the scaling of rotary positions (yarn, factor 32)"
    six = replace(smol, layers=6, details=replace(smol.details, no_rotary_every=4))
    assert "--no-rope-freq '([0]*3+[1]*1+[0]*2)'" in [*model_flags(six)]
    for name, network in NETWORKS.items():
        shape = shape_of(name)
        written = options(" ".join(model_flags(shape)))
        assert options(network["flags"]).items() <= written.items(), name
        assert parts_of(shape) == network["without a flag"], name


YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}


def test_yarns_factor_on_attention_is_that_of_the_config() -> None:
    """Megatron-core's factor of its flags: the ratio of 0.1 m ln(factor) + 1 for its two scales m."""
    config = json.loads((CONFIGS / "gpt-oss-20b.json").read_text())
    for more in ({}, {"attention_factor": 1.1}, {"attention_factor": 1.2, "mscale": 0.7, "mscale_all_dim": 0.5}):
        flags = options(" ".join(model_flags(read_config({**config, "rope_scaling": {**YARN, **more}}))))
        scales = (float(flags.get("--mscale", "1")), float(flags.get("--mscale-all-dim", "0")))
        mine, every = (0.1 * scale * log(32) + 1 for scale in scales)
        assert mine / every == pytest.approx(more.get("attention_factor", 0.1 * log(32) + 1), rel=1e-4)


def test_a_changed_field_of_a_config_changes_flags_or_warnings() -> None:
    """Each field of the network, on a file that has another value of it."""
    changes: tuple[tuple[str, dict[str, object], str], ...] = (
        ("Meta-Llama-3-8B", {"hidden_act": "gelu"}, "gates of GELU"),
        ("Meta-Llama-3-8B", {"hidden_act": "mish"}, "gates of mish"),
        ("Meta-Llama-3-8B", {"partial_rotary_factor": 0.25}, "--rotary-percent 0.25"),
        ("Meta-Llama-3-8B", {"rope_scaling": {"type": "linear", "factor": 4.0}}, "interpolation-factor 4"),
        (
            "Meta-Llama-3-8B",
            {"rope_scaling": {"type": "linear", "factor": 2.5}},
            "rotary positions (linear, factor 2.5)",
        ),
        ("Meta-Llama-3-8B", {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "positions (dynamic, factor 2)"),
        (
            "Llama-3.1-405B",
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 2.0}},
            "(llama3,",
        ),
        ("Phi-3-mini-4k-instruct", {"rope_scaling": {"type": "longrope"}}, "positions (longrope, factor 1)"),
        ("Meta-Llama-3-8B", {"attention_bias": True}, "a bias of the attention's output alone"),
        ("gpt-neox-20b", {"hidden_act": "gelu"}, "--no-bias-gelu-fusion"),
        ("falcon-7b", {"activation": "gelu_new"}, "the activation GELU with tanh"),
        ("MiniMax-M2", {"rotary_dim": 32}, "--rotary-percent 0.25"),
        ("SmolLM3-3B-Base", {"no_rope_layers": [1, 0] * 18}, "--no-rope-freq 2"),
        ("SmolLM3-3B-Base", {"no_rope_layers": [0, *[1] * 35]}, "does not know (no_rope_layers)"),
        ("DeepSeek-V3", {"rope_scaling": {"type": "yarn", "factor": 4, "beta_fast": 16}}, "positions (yarn, factor 4)"),
        ("gpt-oss-20b", {"rope_scaling": {**YARN, "attention_factor": 1.0}}, "--mscale 0 "),
        ("gpt-oss-20b", {"rope_scaling": {**YARN, "low_rank": 2}}, "does not know (rope_scaling.low_rank)"),
        ("opt-125m", {"word_embed_proj_dim": 512}, "does not know (word_embed_proj_dim)"),
        ("dbrx-base", {"attn_config": {"clip_qkv": 6, "kv_n_heads": 8}}, "clipped to 6"),
        ("K-EXAONE-236B-A23B", {"n_group": 8, "topk_group": 4}, "--moe-router-num-groups 8 --moe-router-group-topk 4"),
        ("Kimi-Linear-48B-A3B-Base", {"num_expert_group": 8, "topk_group": 4}, "--moe-router-num-groups 8"),
        ("Bamba-9B-v1", {"mamba_d_conv": 2}, "convolutions of Mamba-2 of width 2"),
        ("Bamba-9B-v1", {"mamba_conv_bias": False}, "convolutions of Mamba-2 without biases"),
        ("Bamba-9B-v1", {"mamba_proj_bias": True}, "biases of Mamba-2's projections"),
    )
    for name, change, words in changes:
        config = json.loads((CONFIGS / f"{name}.json").read_text())
        before, after = (read_config({**config, **more}) for more in ({}, change))
        texts = [" ".join((*model_flags(shape), *model_warnings(shape))) for shape in (before, after)]
        assert [words in text for text in texts] == [False, True], (name, change)


def test_what_a_config_must_still_say_is_only_asked_where_it_is_unknown() -> None:
    for name in ("gpt2", "mpt-7b-hub", "Meta-Llama-3-8B", "DeepSeek-V3", "NVIDIA-Nemotron-Nano-9B-v2"):
        assert not [*to_add(shape_of(name))], name
    assert [*to_add(model("gpt3-175b"))] == ["in MODEL_ARGS, as in the model's config.json: --norm-epsilon"]
    (request,) = to_add(model("yi-34b"))
    assert request.endswith(": --norm-epsilon, --rotary-base, the scaling of rotary positions")


def test_every_trainer_names_what_it_cannot_be_told() -> None:
    machines, configuration = cluster("h100-sxm:8x1"), Configuration(sequence=2048, global_batch=32, data=8)
    config = json.loads((CONFIGS / "gpt-neox-20b.json").read_text())
    written = flags_of(read_config({**config, "use_gated_residual": True}), machines, configuration)
    for trainer in ("megatron", "bridge", "torchtitan"):
        warnings = " ".join(written[trainer].warnings)
        assert "attention and FFN in parallel" in warnings, trainer
        assert "pipeplan does not know (use_gated_residual)" in warnings, trainer
    plain = flags_of(model("llama3-8b"), machines, configuration)
    assert not [warning for flags in plain.values() for warning in flags.warnings if "these parts" in warning]
    scaled = flags_of(model("llama3.1-8b"), machines, configuration)
    assert "--use-rope-scaling" in scaled["megatron"].text
    for trainer in ("bridge", "torchtitan"):
        assert "(llama3, factor 8)" in " ".join(scaled[trainer].warnings)


def test_an_estimate_says_which_fields_it_does_not_know(tmp_path: Path) -> None:
    config = json.loads((CONFIGS / "Meta-Llama-3-8B.json").read_text())
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**config, "memory_layers": 3}))
    row = {"model": str(file), "cluster": "h100-sxm:8x1", "sequence": 2048, "global_batch": 16}
    (estimated,) = pipeplan.estimate(row)
    assert "model: as if its config.json had no memory_layers, which are unknown here" in estimated.assumed
