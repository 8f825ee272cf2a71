"""Mixers in the place of attention: FLOPs against the sources, work against FLOPs, and every published hybrid estimated."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.extensions.planning import layout_of
from pipeplan.extensions.planning.hardware import memory_time, preset
from pipeplan.extensions.planning.workload import (
    Collective,
    Execution,
    Gemm,
    LayerWork,
    MemoryPass,
    layers_of,
    parameter_counts,
    read_config,
    token_flops,
)
from pipeplan.extensions.planning.workload.components import MixerOfModel
from pipeplan.extensions.planning.workload.mixers.delta import delta_rule
from pipeplan.extensions.planning.workload.parameters import form_parts, mixing_flops
from pipeplan.extensions.planning.workload.pattern import LayerForm, read_pattern, write_pattern
from pipeplan.foundation.errors import InputError, ShapeError
from tests.extensions.planning.workload.test_config_json import CONFIGS, shape_of

OF_2026 = sorted(path.stem for path in CONFIGS.glob("*.json") if "_source" in json.loads(path.read_text()))

QWEN = "Qwen3-Next-80B-A3B-Instruct"
NEMOTRON = "NVIDIA-Nemotron-Nano-9B-v2"
KIMI = "Kimi-Linear-48B-A3B-Base"


def layer(name: str, title: str, execution: Execution | None = None) -> LayerWork:
    layers = layers_of(shape_of(name), Execution() if execution is None else execution)
    return next(item for item in layers if title in item.name)


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        (QWEN, 2 * (2048 * 2 * (2048 + 4096 + 32) + 4 * (2 * 2048 + 4096) + 32 * 128**2 * 4 + 2048 * 4096)),
        (NEMOTRON, 2 * 4480 * (2 * 10240 + 2 * 8 * 128 + 128) + 7 * 10240 * 128 + 2 * 10240 * 4480),
    ],
)
def test_mixers_as_megatron_counts_them(name: str, flops: int):
    """``gdn_layer_flops`` (projections, convolution, four products with the state, output) and ``mamba_layer_flops``."""
    shape, form = shape_of(name), LayerForm("M", "")
    products = sum(2 * part.active for part in form_parts(shape, form) if part.matrix)
    assert products + mixing_flops(shape, form, 4096) == flops


@pytest.mark.parametrize(("name", "title"), [(NEMOTRON, "Mamba-2"), (QWEN, "Gated DeltaNet"), (KIMI, "Kimi")])
def test_the_work_of_a_mixer(name: str, title: str):
    """The backward takes two to three forwards; tensor ranks share it, and context ranks exchange heads for tokens."""
    whole, part = layer(name, title), layer(name, title, Execution(tensor=4, sequence_parallel=True))
    forward, backward = (
        sum(work.flops for work in works if isinstance(work, Gemm | MemoryPass))
        for works in (whole.forward, (*whole.backward_input, *whole.backward_weight))
    )
    assert 2 * forward < backward < 3 * forward
    assert part.kept_bytes == pytest.approx(whole.kept_bytes / 4, rel=0.05)
    context = layer(name, title, Execution(context=2)).forward
    collectives = [work for work in context if isinstance(work, Collective)]
    assert [(work.operation, work.group) for work in collectives] == [("all_to_all", "context")]


@pytest.mark.parametrize(("gpu", "published"), [("h100", 2.033e-3), ("b200", 1.204e-3)])
def test_kernels_of_the_delta_rule_take_their_published_time(gpu: str, published: float):
    """8,192 tokens of 96 heads of 128 in flash-linear-attention, whose queries and keys are normalized before."""
    rule = delta_rule(64, 96, 128, 128)
    tokens, passes = 8192, 8 * 96 * 128 + 4 * 96 * 128
    seconds = memory_time(preset(gpu).gpu, tokens * (rule.forward_bytes - passes), 5, tokens * rule.flops)
    assert seconds == pytest.approx(published, rel=0.2)


def test_tensor_degrees_divide_the_heads():
    with pytest.raises(ShapeError, match="does not divide 16 heads of Gated DeltaNet"):
        layers_of(replace(shape_of(QWEN), heads=32), Execution(tensor=32))


def test_patterns_go_there_and_back_or_have_a_word_that_is_no_layer():
    for text in ["AD", "3ME AE", "M D M E A", "2AD 5WE SH"]:
        assert write_pattern(read_pattern(text)) == text, text
    for word in ["DD", "0AD", "AA", "ad", "3", "A-", "AED"]:
        with pytest.raises(InputError, match="of a pattern"):
            read_pattern(f"AD {word}")


def test_an_indexer_scores_all_keys_and_attention_reads_a_few():
    shape, sequence = shape_of("DeepSeek-V3.2"), 65_536
    seen = 2048 - 2048**2 / (2 * sequence)
    scored = 2 * (sequence / 2) * 64 * (128 + 1)
    assert token_flops(shape, sequence).core == pytest.approx(61 * (2 * seen * 128 * (192 + 128) + scored))
    dense = replace(shape, sparse=None)
    assert token_flops(shape, sequence).core < token_flops(dense, sequence).core / 3


def test_heads_that_a_file_lists_by_layer():
    """33,442,617,088 parameters as Hugging Face Transformers 5.23 builds it."""
    config = json.loads((CONFIGS / "Laguna-XS.2.json").read_text())
    config["layer_types"] = [*["full_attention"], *["sliding_attention"] * 3] * 10
    config["num_attention_heads_per_layer"] = [48, 64, 64, 64] * 10
    shape = read_config(config)
    assert (shape.heads, shape.heads_of(LayerForm("W", "E")).heads) == (48, 64)
    assert parameter_counts(shape).total == 33_442_617_088
    config["num_attention_heads_per_layer"] = [48, 64, 64, 32] * 10
    with pytest.raises(InputError, match="one number for windowed layers, and one for the others"):
        read_config(config)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pattern": "AD"}, "expected 56 layers, not 1"),
        ({"pattern": "56ME"}, "the model has none"),
        ({"pattern": "56XD"}, "no mixer X"),
        ({"mixers": (MixerOfModel(letter="A", kind="mamba-2", sizes=()),)}, "invalid letter 'A'"),
        ({"mixers": (MixerOfModel(letter="M", kind="mamba-2", sizes=()),)}, "Mamba-2 lacks state_heads"),
    ],
)
def test_patterns_that_do_not_fit(change: dict[str, Any], words: str):
    with pytest.raises(InputError, match=words):
        replace(shape_of(NEMOTRON), **change)


@pytest.mark.parametrize("name", OF_2026)
def test_models_of_2026_are_estimated(name: str):
    """On 512 H100, in the first split that their sizes allow."""
    experts = shape_of(name).experts
    document = {"model": json.loads((CONFIGS / f"{name}.json").read_text()), "cluster": "h100-sxm:8x64"}
    document |= {"global_batch": 1024, "sequence": 8192, "pp": 8, "ep": 1 if experts is None else 8}
    (row,) = pipeplan.estimate(document)
    assert row.estimate is not None
    assert 0.02 < row.estimate.mfu < 0.6


def test_stages_of_unlike_layers_are_planned():
    name = "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
    result = pipeplan.plan(
        CONFIGS / f"{name}.json",
        "h100-sxm:8x4",
        global_batch=128,
        sequence=4096,
        seconds=20,
        workers=1,
        fix={"pp": 4, "tp": 1, "schedule": "1f1b", "microbatch_size": 1},
    )
    best = result.best
    assert best is not None
    layers = layout_of(shape_of(name), best.configuration)
    assert sum(layers) == shape_of(name).layers
    # 1F1B with equal stages idles 3 of 3 + 32 parts; stages of unlike layers may be somewhat unequal.
    assert best.time.bubble / best.step_time < 0.3


def test_an_unknown_type_is_approximated_on_request(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads((CONFIGS / "Qwen3-30B-A3B.json").read_text()), "model_type": "novel_moe"}))
    document = {"model": str(path), "cluster": "h100-sxm:8x1", "global_batch": 8, "sequence": 4096, "ep": 8}
    with pytest.raises(InputError, match="'novel_moe'; --approximate treats it as qwen3_moe"):
        pipeplan.estimate(document)
    (row,) = pipeplan.estimate(document, approximate=True)
    assert "model: novel_moe is not modelled and is treated as qwen3_moe" in row.assumed


NOVEL = {
    "model_type": "novel", "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 16, "head_dim": 128,
    "num_key_value_heads": 4, "vocab_size": 64000, "intermediate_size": 6144, "hidden_act": "silu",
    "tie_word_embeddings": False,
}  # fmt: skip
WIDE = {"num_local_experts": 48, "num_experts_per_tok": 4, "moe_intermediate_size": 768, "decoder_sparse_step": 1}
ENDS, ATTENTION, DENSE = 2 * 64000 * 2048, 24 * 2048 * 128 * (2 * 16 + 2 * 4), 3 * 2048 * 6144


@pytest.mark.parametrize(
    ("fields", "ffns"),
    [
        ({}, 24 * DENSE),
        (WIDE, 24 * 48 * 3 * 2048 * 768),
        ({"moe_num_experts": 8, "moe_topk": 2, "moe_num_shared_experts": 2, "moe_layer_freq": 1,
          "moe_ffn_hidden_size": 6144}, 24 * 10 * DENSE),
        ({**WIDE, "num_shared_experts": 1, "num_dense_layers": 2}, 2 * DENSE + 22 * 49 * 3 * 2048 * 768),
        ({**WIDE, "shared_expert_intermediate_size": 1536}, 24 * 50 * 3 * 2048 * 768),
        ({**WIDE, "mlp_layer_types": ["dense", "sparse"] * 12}, 12 * DENSE + 12 * 48 * 3 * 2048 * 768),
        ({**WIDE, "moe_intermediate_size": [768] * 24}, 24 * 48 * 3 * 2048 * 768),
        ({**WIDE, "is_moe": False}, 24 * DENSE),
    ],
)  # fmt: skip
def test_experts_of_an_unknown_type_are_counted_under_every_usual_name(fields: dict[str, Any], ffns: int):
    counts = parameter_counts(read_config(NOVEL | fields, approximate=True))
    assert counts.total == pytest.approx(ENDS + ATTENTION + ffns, rel=2e-3)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"num_experts_per_tok": 2}, "the number of its experts is unknown"),
        ({"moe_topk": 2}, "the number of its experts is unknown"),
        ({"experts_per_token": 2}, "the number of its experts is unknown"),
        ({**WIDE, "moe_intermediate_size": None}, "its 48 experts have no width"),
        ({**WIDE, "decoder_sparse_step": None}, "does not state which layers have experts"),
        ({**WIDE, "moe_intermediate_size": [768, 1536] * 12}, "moe_intermediate_size differs between layers"),
        ({**WIDE, "expert_layer_period": 2}, "expert_layer_period"),
        ({"mamba_d_state": 128}, "mamba_d_state"),
        ({"kv_lora_rank": 512}, "kv_lora_rank"),
        ({**WIDE, "num_hidden_layers": 10**15}, "invalid layers"),
        ({"hidden_act": "relu2"}, "hidden_act"),
        ({"hidden_act": None}, "does not state hidden_act"),
        ({"vision_config": {}}, "which part of it is the language model"),
    ],
)
def test_an_unknown_type_whose_sizes_depend_on_unknown_fields_is_refused(fields: dict[str, Any], named: str):
    with pytest.raises(InputError, match=named):
        read_config(NOVEL | fields, approximate=True)
    with pytest.raises(InputError, match=r"unsupported architecture 'novel'; supported"):
        read_config(NOVEL | fields)


@pytest.mark.parametrize("field", ["num_key_value_heads", "tie_word_embeddings"])
def test_an_unknown_type_that_leaves_out_a_size_with_an_unknown_default_is_refused(field: str):
    with pytest.raises(InputError, match=f"novel cannot be approximated: it does not state {field}"):
        read_config({name: value for name, value in NOVEL.items() if name != field}, approximate=True)


def test_layers_of_no_modelled_kind_are_not_approximated():
    for name in ("zamba2", "jamba", "recurrent_gemma", "rwkv7", "gemma4_text"):
        with pytest.raises(InputError, match=f"{name} cannot be approximated: it has (state-space|linear|embeddings)"):
            read_config({**NOVEL, "model_type": name}, approximate=True)


def test_kimi_k3_has_the_parameters_of_its_checkpoint():
    """Of the checkpoint's tensors, 3 million are not counted: weights of earlier layers' outputs, and norms of latents."""
    whole = [*range(4, 93, 4), 93]
    text = {
        "model_type": "kimi_linear", "vocab_size": 163840, "hidden_size": 7168, "num_hidden_layers": 93,
        "num_attention_heads": 96, "num_key_value_heads": 96, "intermediate_size": 33792, "hidden_act": "situ",
        "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0, "attn_res_block_size": 12,
        "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "mla_use_nope": True, "mla_use_output_gate": True, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "moe_intermediate_size": 3072, "routed_expert_hidden_size": 3584, "latent_moe_use_norm": True, "num_experts": 896,
        "num_experts_per_token": 16, "num_shared_experts": 2, "num_expert_group": 1, "topk_group": 1,
        "moe_renormalize": True, "moe_router_activation_func": "sigmoid", "use_grouped_topk": True,
        "topk_method": "noaux_tc", "routed_scaling_factor": 1.0, "num_nextn_predict_layers": 0,
        "do_sample": False, "top_k": 50, "temperature": 1.0,
        "linear_attn_config": {
            "full_attn_layers": whole, "kda_layers": [layer for layer in range(1, 94) if layer not in whole],
            "num_heads": 96, "head_dim": 128, "short_conv_kernel_size": 4, "use_full_rank_gate": True,
        },
    }  # fmt: skip
    shape = read_config({"model_type": "kimi_k3", "text_config": text, "vision_config": {"vt_num_hidden_layers": 27}})
    wide, h = 96 * 128, 7168
    delta = 3 * wide * (h + 4) + 96 * (h + 1) + 128 * (h + wide) + wide + 128
    latent = h * (1536 + 576) + 96 * 192 * 1536 + 96 * 256 * 512 + 1536 + 512
    experts = 896 * (3 * 3584 * 3072 + h + 1) + 2 * 3584 * h + 3 * h * 6144
    layers = 69 * delta + 24 * latent + 93 * 2 * wide * h + 93 * 2 * h + 3 * h * 33_792 + 92 * experts
    assert parameter_counts(shape).total == 2 * 163_840 * h + h + layers
    assert (shape.source, shape.activation) == ("config.json of kimi_linear, its language model alone", "situ")
    assert shape.details.unread == "attn_res_block_size"
