"""Facts of configurations: what keys mean to each trainer, which model a file names, and what a trainer defaults."""

from __future__ import annotations

from typing import Any

import pytest

from pipeplan.extensions.review import RULES, ReviewFacts, judged, judgement
from pipeplan.extensions.review.defaults import DEFAULTS, defaults_of
from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.keys import OWN_KEYS, setting_of
from pipeplan.extensions.review.models import named_model, properties_of
from pipeplan.extensions.review.settings import SETTINGS, UNKNOWN
from pipeplan.extensions.review.stated import RawEntry, ReadSettings, facts_of
from pipeplan.trainers import trainer_kind


def facts(trainer: str, *keys: tuple[str, Any], whole: bool = True, others: tuple[str, ...] = ()) -> ReviewFacts:
    """Return the facts of keys with raw values, and of flags that no setting spells."""
    entries = tuple(RawEntry(key, raw, SettingPlace("file", 1, key)) for key, raw in keys)
    places = tuple(SettingPlace("file", 1, key) for key in others)
    return facts_of(ReadSettings(entries=entries, whole=whole, others=places), trainer_kind(trainer))


def errors(c: ReviewFacts) -> set[str]:
    return {fault.rule.id for fault in judged(c, RULES) if fault.rule.severity == "error"}


@pytest.mark.parametrize(
    ("trainer", "key", "raw", "layers"),
    [
        ("ms-swift", "--model", "ZhipuAI/GLM-4.5-Air-Base", 46),
        ("ms-swift", "--mcore_model", "/data/checkpoints/Qwen3-32B-mcore/", 64),
        ("verl", "actor_rollout_ref.model.path", "Qwen/Qwen3-30B-A3B", 48),
        ("nemo-rl", "policy.model_name", "Qwen/Qwen3-30B-A3B-Thinking-2507", 48),
        ("openrlhf", "--pretrain", "meta-llama/Llama-3.1-8B-Instruct", 32),
        ("slime", "--hf-checkpoint", "/root/Qwen3-235B-A22B-FP8", 94),
        ("megatron-bridge", "--model_recipe_name", "llama31_405b", 126),
        ("nemo-automodel", "model.pretrained_model_name_or_path", "deepseek-ai/DeepSeek-V3-0324", 61),
        ("primus", "modules.pre_trainer.model", "deepseek_v3.yaml", 61),
        ("primus", "modules.pre_trainer.model", "glm4_7.yaml", 90),
        ("", "--model_name_or_path", "Qwen/Qwen2.5-72B-Instruct", 80),
    ],
)
def test_a_trainers_key_names_the_model(trainer, key, raw, layers):
    assert facts(trainer, (key, raw)).layers == layers


@pytest.mark.parametrize(
    ("trainer", "key", "raw"),
    [
        ("ms-swift", "--model_name", "qwen3-8b"),
        ("verl", "critic.model.path", "Qwen/Qwen3-8B"),
        ("nemo-automodel", "tokenizer.pretrained_model_name_or_path", "Qwen/Qwen3-8B"),
        ("megatron-lm", "--model", "Qwen/Qwen3-8B"),
        ("slime", "--hf-checkpoint", "./ckpt"),
        ("verl", "actor_rollout_ref.model.path", UNKNOWN),
    ],
)
def test_a_persona_another_model_and_an_unsaid_name_are_no_model(trainer, key, raw):
    assert not facts(trainer, (key, raw)).has("layers")


def test_of_several_names_the_one_of_a_known_model_counts():
    c = facts("ms-swift", ("--model", "Qwen/Qwen3-32B"), ("--load", "./out/checkpoint-100"), ("--model_name", "helper"))
    assert c.layers == 64
    assert facts("ms-swift", ("--model", "Qwen/Qwen3-8B"), ("--model", "Qwen/Qwen3-32B")).layers == 64


@pytest.mark.parametrize(
    "name",
    [
        *(
            "deepseek_v3_debugmodel",
            "qwen3_235B_A22B_4layer",
            "deepseek-v3-5layer",
            "hf_gemma3_2l",
            "tiny-random-llama",
        ),
        *("moe_proxy_single_node", "Qwen3-32B-finetuned-by-me", "Qwen3-Reranker-4B", "checkpoints", "swift-robot"),
    ],
)
def test_a_reduced_or_unknown_model_is_none_that_it_is_named_after(name):
    assert named_model(name) is None
    assert "layers" not in properties_of(name)


def test_a_name_with_another_size_is_another_model():
    assert properties_of("GLM-4.7-355B-A32B")["layers"] == 92
    assert properties_of("GLM-4.7-30B-A3B")["layers"] == 47
    assert named_model("GLM-4.7-9B") is None


def test_a_layout_that_nothing_sets_is_the_even_split_of_the_trainer():
    for trainer, key in (
        ("ms-swift", "--model"),
        ("verl", "actor_rollout_ref.model.path"),
        ("nemo-rl", "policy.model_name"),
    ):
        c = facts(trainer, (key, "Qwen/Qwen3-32B"), ("pipeline_model_parallel_size", "5"))
        assert c.layout is None
        assert c.settings["layout"].assumed
        assert "layers-per-rank" in errors(c), trainer
    part = facts("ms-swift", ("--model", "Qwen/Qwen3-32B"), ("--pipeline_model_parallel_size", "5"), whole=False)
    assert not part.has("layout")


def test_every_default_is_a_value_of_its_setting():
    for trainer in DEFAULTS:
        own = {word.partition("=")[0] for word in DEFAULTS[trainer].values.split()}
        assert own <= SETTINGS.keys(), trainer
        unknown = {name for name, value in defaults_of(trainer).items() if value is UNKNOWN}
        assert unknown <= ({"ep", "etp"} if trainer == "primus" else set()), trainer
        assert trainer == "megatron-core" or trainer_kind(trainer).name == trainer


def test_every_own_key_has_a_setting_and_a_trainer():
    for trainer, keys in OWN_KEYS.items():
        assert trainer_kind(trainer).name == trainer
        assert set(keys.values()) <= {*SETTINGS, ""}
        for key, name in keys.items():
            assert (setting_of(key, trainer) is None) == (not name), key


def test_a_zero_that_a_trainer_does_not_use_is_left_out():
    assert not errors(
        facts("verl", ("data.train_batch_size", "0"), ("actor.megatron.pipeline_model_parallel_size", "2"))
    )
    neox = facts("gpt-neox", ("pipe-parallel-size", 0), ("model-parallel-size", 1))
    assert neox.pp == 1
    assert not errors(neox)
    assert "degree-below-one" in errors(facts("megatron-lm", ("--pipeline-model-parallel-size", "0")))


def test_a_null_that_leaves_the_layout_to_the_scripts_is_unsaid():
    assert not facts("megatron-bridge", ("config.pp_layout", None), ("config.pipeline_model_parallel_size", 4)).has(
        "layout"
    )
    assert facts("megatron-bridge", ("cfg.model.pipeline_model_parallel_layout", None)).layout is None


def test_gpt_neox_and_nanotron_are_judged_by_their_own_keys():
    neox = facts("gpt-neox", ("pipe_parallel_size", 2), ("model_parallel_size", 5), ("num_attention_heads", 48))
    assert "heads-over-tensor" in errors(neox)
    nanotron = facts(
        "nanotron",
        *(("parallelism.dp", 1), ("parallelism.pp", 8), ("parallelism.tp", 1), ("parallelism.pp_engine", "1f1b")),
        ("tokens.batch_accumulation_per_replica", 1),
    )
    assert errors(nanotron) == {"nanotron-too-few-microbatches"}


def test_a_flag_of_a_fork_silences_the_rules_of_its_subject_alone():
    flags = ("--pipe-my-way", "--use-fused-rmsnorm", "--moe-layer-freq", "--rdzv-backend")
    c = facts("megatron-lm", ("--num-layers", "30"), ("--pipeline-model-parallel-size", "4"), others=flags)
    assert [place.key for place in c.unread] == ["--pipe-my-way"]
    silent = {one.rule.id for one in judgement(c, RULES).unjudged if one.unread == c.unread[0]}
    assert {"layers-per-rank", "interleaving-too-few-microbatches"} <= silent
    assert not {"too-few-gpus", "expert-grid"} & silent
    assert not facts("verl", ("pipeline_model_parallel_size", "4"), others=flags).unread


def test_mindspeed_accepts_a_softmax_router_with_an_expert_bias():
    keys = ("--moe-router-enable-expert-bias", True), ("--moe-router-score-function", "softmax")
    assert "expert-bias-score" in errors(facts("megatron-lm", *keys))
    assert "expert-bias-score" not in errors(facts("mindspeed", *keys))


@pytest.mark.parametrize(
    ("trainer", "keys", "rank"),
    [
        ("ms-swift", [("--tuner_type", "lora"), ("--lora_rank", "8")], 8),
        ("ms-swift", [("--tuner_type", "lora"), ("--tensor_model_parallel_size", "2")], 8),
        ("ms-swift", [("--tuner_type", "full"), ("--lora_rank", "8")], None),
        ("megatron-bridge", [("cfg.peft.dim", 32)], 32),
        ("nemo-rl", [("policy.megatron_cfg.peft.dim", 16)], 16),
        ("verl", [("actor_rollout_ref.model.lora_rank", "0")], None),
        ("openrlhf", [("--ds.lora.rank", "64")], 64),
    ],
)
def test_adapters_are_a_rank_above_zero(trainer, keys, rank):
    c = facts(trainer, *keys)
    assert c.get("lora_rank", None) == rank
    assert c.get("phase", "train") == ("train" if rank is None else "peft")


def test_a_record_of_megatron_bridges_benchmarks_says_its_model_gpu_and_number_format_in_its_name():
    keys = {"num_gpus": 8, "pipeline_model_parallel_size": 2, "pp_layout": None}
    entries = tuple(RawEntry(key, raw, SettingPlace("configs.py", 1, key)) for key, raw in keys.items())
    read = ReadSettings(entries=entries, name="LLAMA3_70B_LORA_CONFIG_GB200_FP8_MX_V1", whole=True)
    c = facts_of(read, trainer_kind("megatron-lm"))
    assert (c.trainer.name, c.layers, c.device, c.precision, c.tp) == ("megatron-bridge", 80, "gb200", "fp8_mx", 1)
    # The scripts then take the layout and the edges of the model's recipe.
    assert not c.has("layout")
    assert not c.has("first_stage_layers")


@pytest.mark.parametrize(
    ("file", "gpu"),
    [
        ("examples/configs/MI355X/llama3.yaml", "MI355X"),
        ("qwen/qwen3_moe_30b_te_gb200.yaml", "GB200"),
        ("h100/gb200_and_more.yaml", UNKNOWN),
        ("configs/base.yaml", UNKNOWN),
        ("mi300xl/h1000.yaml", UNKNOWN),
    ],
)
def test_the_folder_or_the_name_of_a_file_says_the_gpu(file, gpu):
    entry = RawEntry("tensor_model_parallel_size", 2, SettingPlace(file, 1, "tensor_model_parallel_size"))
    assert facts_of(ReadSettings(entries=(entry,)), trainer_kind("megatron-lm")).get("device") == gpu


def test_automodel_spreads_experts_over_replicas_by_which_the_batch_is_divided_though_the_gpus_are_unknown():
    keys = (("distributed.tp_size", 1), ("distributed.ep_size", 128), ("step_scheduler.local_batch_size", 1))
    assert errors(facts("nemo-automodel", *keys, ("step_scheduler.global_batch_size", 32))) == {
        "accumulation-not-divisible"
    }
    assert errors(facts("nemo-automodel", *keys, ("step_scheduler.global_batch_size", 256))) == set()


def test_nemo_rl_makes_microbatches_of_tokens_where_it_packs_sequences():
    keys = [
        ("policy.megatron_cfg.tensor_model_parallel_size", 1),
        ("policy.train_global_batch_size", 16),
        ("policy.train_micro_batch_size", 4),
        ("policy.generation.colocated.enabled", "true"),
        ("cluster.gpus_per_node", 8),
        ("cluster.num_nodes", 1),
    ]
    assert "batch-not-divisible" in errors(facts("nemo-rl", *keys))
    assert "batch-not-divisible" not in errors(facts("nemo-rl", *keys, ("policy.sequence_packing.enabled", "true")))
