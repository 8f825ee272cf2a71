"""A plan, the estimate and the review of what it writes are one configuration with one answer, for every trainer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from benchmarks.planning import QUESTIONS
from pipeplan.extensions.planning import Configuration, Estimate, estimate
from pipeplan.extensions.planning.answers.plans import Plan
from pipeplan.extensions.planning.choice.request import software_of_plans
from pipeplan.extensions.planning.flags import cluster_of
from pipeplan.extensions.planning.flags.bridge import _recipe
from pipeplan.extensions.planning.flags.torchtitan import _config
from pipeplan.extensions.planning.hardware import Cluster, cluster
from pipeplan.extensions.planning.trainers import flags_of, plan_trainers
from pipeplan.extensions.planning.workload import from_dict, model, model_names, read_config
from pipeplan.extensions.review import RULES, NotSet, configured, judged, read_text_of
from pipeplan.extensions.review.estimating import estimated
from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.recipe_names import model_of_recipe
from pipeplan.extensions.review.stated import ReadSettings, facts_of
from pipeplan.formats import TrainerSettings
from pipeplan.trainers import OTHER
from tests.extensions.planning.workload.test_config_json import CONFIGS

H100S, B200S, GB200S, MI300XS = (cluster(name) for name in ("h100-sxm:8x4", "b200:8x4", "gb200:4x8", "mi300x:8x4"))

OWN = {
    "name": "mine", "layers": 30, "hidden": 2048, "heads": 16, "kv_heads": 4, "head_dim": 128, "ffn": 8192, "vocab": 99000,
    "experts": 64, "topk": 6, "moe_ffn": 1408, "shared_ffn": 2816, "dense_layers": 1, "qk_norm": True,
}  # fmt: skip
"""Model that is not published."""

STEP: dict[str, Any] = {"sequence": 4096, "global_batch": 128, "sequence_parallel": True}
PLAIN = Configuration(**STEP, tensor=2, pipeline=4, data=4, chunks=2, schedule="interleaved-1f1b", layers=(10,) * 8)
EXPERTS = Configuration(**STEP | {"sequence_parallel": False}, data=32, expert=8, recompute=("layernorm", "moe_act"))
SHARDED = Configuration(sequence=4096, global_batch=128, data=32, zero=3)
PAIRS = replace(
    EXPERTS, pipeline=4, data=8, chunks=2, schedule="interleaved-1f1b-overlap", recompute=(), layers=(8,) * 5 + (7,) * 3
)

OF_MEGATRON: tuple[tuple[str | dict[str, Any], Cluster, Configuration], ...] = (
    ("llama3-70b", H100S, PLAIN),
    ("llama3-70b", H100S, replace(PLAIN, group_size=8, recompute=("full",))),
    ("llama3-70b", H100S, replace(PLAIN, chunks=1, schedule="1f1b", layers=(19, 21, 21, 19), context=2, data=2)),
    ("llama3-70b", H100S, replace(PLAIN, zero=0, recompute=("core_attn", "mlp"))),
    ("llama3-70b", H100S, replace(PLAIN, sequence_parallel=False)),
    ("llama3-70b", B200S, replace(PLAIN, precision="fp8")),
    ("llama3-70b", B200S, replace(PLAIN, precision="mxfp8")),
    ("llama3-70b", B200S, replace(PLAIN, precision="nvfp4")),
    ("gpt-neox-20b", H100S, replace(PLAIN, precision="fp16", layers=(5, 6, 6, 6, 6, 6, 5, 4))),
    ("llama3-70b", GB200S, replace(PLAIN, offload=0.5)),
    ("llama3-8b", H100S, replace(SHARDED, zero=2)),
    ("llama3-8b", H100S, replace(SHARDED, recompute=("layernorm",))),
    ("qwen3-30b-a3b", H100S, EXPERTS),
    ("qwen3-30b-a3b", H100S, replace(EXPERTS, tensor=2, data=16, sequence_parallel=True, expert_tensor=2, expert=4)),
    ("gpt-oss-120b", GB200S, replace(EXPERTS, recompute=())),
    ("deepseek-v3", B200S, replace(EXPERTS, pipeline=4, data=8, layers=(16, 16, 16, 13), recompute=("mla_up_proj",))),
    (OWN, H100S, replace(EXPERTS, pipeline=2, data=16, layers=(16, 14))),
    ("qwen3-30b-a3b", H100S, replace(EXPERTS, schedule="1f1b-overlap")),
    ("deepseek-v3", B200S, replace(PAIRS, software="megatron-core-overlapped+weights-at-once")),
)
"""Models, clusters and configurations that Megatron-LM and Megatron-Bridge run."""

OF_TORCHTITAN: tuple[tuple[str, Cluster, Configuration], ...] = (
    ("llama3-8b", H100S, SHARDED),
    ("llama3-8b", H100S, replace(SHARDED, replicate=4, microbatch_size=2, recompute=("full",))),
    ("llama3-8b", H100S, replace(SHARDED, zero=2, recompute=("selective-op",))),
    ("llama3-8b", H100S, replace(SHARDED, zero=0)),
    ("llama3-8b", H100S, replace(SHARDED, precision="fp8", tensor=2, data=16)),
    ("llama3-70b", H100S, replace(PLAIN, zero=3)),
    ("llama3-70b", H100S, replace(PLAIN, zero=3, schedule="zbv")),
    ("llama3-70b", H100S, replace(PLAIN, zero=3, schedule="interleaved-zb", microbatch_size=2)),
    ("llama3-70b", H100S, replace(PLAIN, zero=3, chunks=1, schedule="gpipe", layers=(20,) * 4, recompute=("full",))),
    ("mixtral-8x22b", H100S, replace(SHARDED, expert=8)),
    ("deepseek-v3", H100S, replace(SHARDED, expert=32, context=2, data=16)),
)  # fmt: skip


def require_read(text: str, there: Estimate) -> None:
    """Assert that a text is read with the step time and memory of an estimate, and without a fault that stops a run."""
    (reading,) = read_text_of(text, "x.sh")
    assert not [fault.rule.id for fault in judged(reading.facts, RULES) if fault.rule.severity == "error"], text
    made = estimated(reading.facts).estimate
    assert made.step_time == pytest.approx(there.step_time, rel=0.01), text
    assert made.peak_memory_gib == pytest.approx(there.peak_memory_gib, abs=0.5), text


def require_same(text: str, there: Estimate, machines: Cluster | None, folder: Path, name: str = "x.sh") -> None:
    """Assert that the review of a text has the step time and memory of an estimate, and no fault that stops a run."""
    (folder / name).write_text(text)
    review = pipeplan.review(folder / name, cluster=machines)
    assert not [finding.rule for finding in review.findings if finding.severity == "error"], text
    assert review.step_time_s is not None, (review.configurations[0].not_estimated, text)
    assert review.step_time_s == pytest.approx(there.step_time, rel=0.01), text
    assert review.peak_memory_gib == pytest.approx(there.peak_memory_gib, abs=0.5), text


def is_refused(flags: TrainerSettings) -> bool:
    """Return True for a trainer that cannot run the configuration: its text is only the reason."""
    return all(line.startswith("#") for line in flags.text.splitlines())


def test_review_reads_the_flags_of_every_trainer_as_the_configuration_that_they_are_of():
    softwares = {
        "megatron": (
            "megatron-core-overlapped",
            "megatron-bridge-26.04",
            "megatron-core-plain",
            "megatron-core+unfused-loss",
        ),
        "bridge": ("megatron-bridge-26.04", "megatron-bridge-26.04+tokens-by-expert"),
        "torchtitan": ("torchtitan",),
    }
    for trainer, names in softwares.items():
        rows = OF_TORCHTITAN if trainer == "torchtitan" else OF_MEGATRON
        for place, (source, machines, configuration) in enumerate(rows):
            shape = model(source) if isinstance(source, str) else from_dict(source)
            # The software changes a few flags alone: that of the trainer on every row, the others on every third one.
            for software in names if place % 3 == 0 else names[:1]:
                planned = replace(configuration, software=software)
                flags = flags_of(shape, machines, planned)[trainer]
                require_read(flags.text, estimate(shape, machines, planned, with_error_bar=False))


def test_review_assumes_the_software_of_a_plan_on_gpus_of_amd():
    for name, configuration in (("llama3-70b", PLAIN), ("qwen3-30b-a3b", EXPERTS)):
        planned = replace(configuration, software=software_of_plans(plan_trainers()["megatron"], MI300XS.gpu))
        assert planned.software.startswith("primus")
        flags = flags_of(model(name), MI300XS, planned)["megatron"]
        require_read(flags.text, estimate(model(name), MI300XS, planned, with_error_bar=False))


def test_review_reads_the_flags_of_other_releases():
    experts = tuple(row for row in OF_MEGATRON if row[0] == "qwen3-30b-a3b")
    releases: dict[str, tuple[str, Any]] = {"torchtitan": ("main", OF_TORCHTITAN), "megatron": ("0.14", experts)}
    for trainer, (release, rows) in releases.items():
        for name, machines, configuration in rows:
            planned = replace(configuration, software=plan_trainers()[trainer].software)
            flags = flags_of(model(str(name)), machines, planned, versions={trainer: release})[trainer]
            require_read(flags.text, estimate(model(str(name)), machines, planned, with_error_bar=False))


def test_review_reads_pipeplans_own_commands_whatever_the_configuration():
    for source, machines, configuration in OF_MEGATRON:
        shape = model(source) if isinstance(source, str) else from_dict(source)
        flags = flags_of(shape, machines, configuration)["pipeplan"]
        require_read(flags.text, estimate(shape, machines, configuration, with_error_bar=False))


def test_review_reads_megatrons_flags_of_hybrids_that_are_not_published():
    step = Configuration(
        **STEP, tensor=2, data=16, software="megatron-core-overlapped", recompute=("full",), layers=None
    )
    pipeline = replace(step, pipeline=2, data=8, recompute=())
    for name in ("Bamba-9B-v1", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "Qwen3-Next-80B-A3B-Instruct", "Olmo-Hybrid-7B"):
        shape = read_config(CONFIGS / f"{name}.json")
        shape = replace(shape, name="mine", vocabulary=shape.vocabulary + 1024)
        for planned in (step, pipeline):
            flags = flags_of(shape, H100S, planned)["megatron"]
            require_read(flags.text, estimate(shape, H100S, planned, with_error_bar=False))


def test_parts_of_a_model_without_flags_are_named_where_they_are_not_counted():
    """OLMo 2 norms all heads of queries and keys together: no flag says so, and it moves memory by 3 %."""
    shape = read_config(CONFIGS / "OLMo-2-1124-7B.json")
    planned = Configuration(**STEP, tensor=1, data=32, software="megatron-core-overlapped")
    planned = replace(planned, sequence_parallel=False)
    flags = flags_of(shape, H100S, planned)["megatron"]
    assert "a review of these flags counts them only with --model" in flags.warnings[0]
    own = flags.text.replace("    --swiglu\n", "    --swiglu\n    --spec mine.layers olmo\n")
    facts = read_text_of(own, "x.sh")[0].facts
    assert "not those of --spec mine.layers olmo" in " ".join(configured(facts).assumed)
    assert configured(replace(facts, shape=shape)).assumed == ()
    there = estimate(shape, H100S, planned, with_error_bar=False)
    assert estimated(replace(facts, shape=shape)).peak_gib == pytest.approx(there.peak_memory_gib, abs=0.1)


def test_names_of_functions_that_configure_a_model_name_it():
    step = Configuration(sequence=1, global_batch=1)
    for name in model_names():
        shape = model(name)
        for function in (_recipe(shape), _config(shape, step)["CONFIG"][0]):
            facts = facts_of(ReadSettings(entries=(*model_of_recipe(function, SettingPlace(), planned=True),)), OTHER)
            read = {key: facts.get(key) for key in ("layers", "heads", "hidden")}
            assert read == {"layers": shape.layers, "heads": shape.heads, "hidden": shape.hidden}, function
    changed = replace(model("llama3-70b"), layers=40)
    assert not [*model_of_recipe(_recipe(changed), SettingPlace(), planned=True)]


def test_megatrons_sizes_are_those_of_the_published_model():
    machines = cluster("h100-sxm:8x2")
    step = Configuration(sequence=2048, global_batch=16, data=16)
    for name in ("llama3-8b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3", "gemma2-27b", "gpt-oss-20b", "qwen3.5-9b"):
        text = flags_of(model(name), machines, step)["megatron"].text
        assert configured(read_text_of(text, "x.sh")[0].facts).model == model(name)


def plans_of(question: dict[str, Any], fix: dict[str, Any], seconds: float) -> dict[str | None, Plan]:
    """Return the plan of a question, and that of each other trainer with schedules of its own."""

    def planned(**trainer: str) -> Plan:
        return pipeplan.plan(**question, fix=fix | trainer, seconds=seconds, workers=1)

    free = planned()
    others = [name for name, trainer in plan_trainers().items() if trainer.schedules is not None]
    return {None: free} | {name: planned(trainer=name) for name in others if name != free.trainer}


def require_around(question: dict[str, Any], fix: dict[str, Any], folder: Path, seconds: float) -> None:
    """Assert that everything that plans write comes back: flags by trainer, commands, and the configuration's file."""
    machines = cluster_of(question["cluster"])
    for trainer, plan in plans_of(question, fix, seconds).items():
        if plan.best is None:
            continue
        for name in {trainer or plan.trainer, "pipeplan"}:
            if not is_refused(plan.flags[name]):
                require_same(plan.flags[name].text, plan.best, machines, folder)
        require_same(plan.configuration_yaml(), plan.best, None, folder, "x.yaml")
        path = folder / "x.yaml"
        assert pipeplan.estimate(path).rows[0].step_time_s == pytest.approx(plan.best.step_time, rel=1e-6)


def test_plans_estimates_and_reviews_of_a_question_are_one(tmp_path):
    question = {"model": "llama3-70b", "cluster": "h100-sxm:8x8", "global_batch": 128, "sequence": 8192}
    require_around(question, {"tp": 8, "pp": 4}, tmp_path, seconds=1.0)


DEGREES = ((1, 2), (8, 1), (8, 8), (1, 4), (1, 16), (2, 8), (1, 1), (8, 1), (1, 4), (8, 2), (2, 4), (2, 4))
"""Tensor and pipeline ranks of each question: planning chooses the rest in a tenth of the time that it takes for all."""


@pytest.mark.slow
def test_plans_estimates_and_reviews_of_all_questions_are_one(tmp_path):
    for question, (tensor, pipeline) in zip(QUESTIONS, DEGREES, strict=True):
        words = {name: getattr(question, name) for name in ("model", "cluster", "global_batch", "sequence")}
        fix = {"tp": tensor, "pp": pipeline} | dict(question.fix)
        require_around(words | {"cluster": cluster_of(question.cluster)}, fix, tmp_path, seconds=0.5)


SCRIPT = """torchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py --num-layers 80 --hidden-size 8192 \\
    --ffn-hidden-size 28672 \\
    --num-attention-heads 64 --group-query-attention --num-query-groups 8 --vocab-size 128256 --swiglu \\
    --untie-embeddings-and-output-weights --disable-bias-linear --seq-length 8192 --micro-batch-size 1 \\
    --global-batch-size 128 --tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 2 --bf16 \\
    --use-distributed-optimizer --attention-dropout 0 --hidden-dropout 0 """


def test_each_flag_of_the_software_changes_the_estimate():
    def read(*flags: str) -> Estimate:
        facts = read_text_of(SCRIPT + " ".join(flags), "x.sh")[0].facts
        return estimated(replace(facts, cluster=H100S)).estimate

    plain = read()
    assert plain.configuration.software == "megatron-core-plain+unfused-loss+ring-attention"
    for flag in ("--grad-reduce-in-bf16", "--use-precision-aware-optimizer --exp-avg-dtype bf16"):
        assert read(flag).peak_memory_gib < plain.peak_memory_gib - 0.5, flag
    for flag in ("--overlap-grad-reduce", "--overlap-param-gather", "--tp-comm-overlap", "--cross-entropy-loss-fusion"):
        assert read(flag).step_time < plain.step_time, flag
    assert read("--no-gradient-accumulation-fusion").step_time > plain.step_time
    assert read("--attention-dropout 0.1").step_time > plain.step_time


def test_review_takes_no_zero_stage_of_a_single_data_rank():
    alone = replace(PLAIN, tensor=8, data=1, zero=1, schedule="zbv", software="torchtitan")
    flags = flags_of(model("llama3-70b"), H100S, alone)["torchtitan"]
    require_read(flags.text, estimate(model("llama3-70b"), H100S, alone, with_error_bar=False))


def test_review_reads_the_flags_of_a_published_models_config_json():
    for name, planned in (("Moonlight-16B-A3B", EXPERTS), ("gpt-oss-20b", EXPERTS), ("Qwen2.5-0.5B", SHARDED)):
        shape = read_config(CONFIGS / f"{name}.json")
        for trainer, software in (("bridge", "megatron-bridge-26.04"), ("torchtitan", "torchtitan")):
            row = replace(planned, software=software, recompute=(), zero=3 if trainer == "torchtitan" else 1)
            flags = flags_of(shape, H100S, row)[trainer]
            require_read(flags.text, estimate(shape, H100S, row, with_error_bar=False))


def test_review_takes_no_hybrid_for_a_published_model_of_the_same_sizes():
    shape = read_config(CONFIGS / "Bamba-9B-v1.json")
    flags = flags_of(shape, H100S, replace(SHARDED, zero=1, software="megatron-core-overlapped"))["megatron"]
    (reading,) = read_text_of(flags.text, "x.sh")
    read = configured(reading.facts).model
    assert (read.forms, read.mixers) == (shape.forms, shape.mixers)
    (reading,) = read_text_of(flags.text.replace("'M-", "'K-"), "x.sh")
    with pytest.raises(NotSet):
        configured(reading.facts)


def test_estimate_takes_the_scripts_that_a_review_reads(tmp_path):
    planned = replace(SHARDED, software="megatron-bridge-26.04")
    for name, settings in flags_of(model("llama3-8b"), H100S, planned).items():
        path = tmp_path / f"{name}.sh"
        path.write_text(settings.text)
        (row,) = pipeplan.estimate(path).rows
        assert row.step_time_s == pytest.approx(pipeplan.review(path).step_time_s, rel=1e-9), name


def test_a_script_whose_comment_names_another_trainer_is_of_its_own():
    (reading,) = read_text_of(f"# Warning: torchtitan with its CSV supports the planned order.\n{SCRIPT}", "x.sh")
    assert reading.facts.trainer.name == "megatron-lm"


@pytest.mark.parametrize("gpu", ["a100-40gb:8x2", "a100:8x2", "v100:8x2", "rtx4090:8x2", "a100-pcie:8x2"])
def test_review_reads_the_gpus_of_a_plan_with_their_memory(gpu: str):
    machines = cluster(gpu)
    flags = flags_of(model("llama3-8b"), machines, replace(SHARDED, data=16))["megatron"]
    assert configured(read_text_of(flags.text, "x.sh")[0].facts).cluster == machines


def test_review_takes_no_gpu_for_one_with_more_memory():
    (reading,) = read_text_of(f"export GPU_TYPE=v100-16gb\n{SCRIPT}", "x.sh")
    with pytest.raises(NotSet, match="device"):
        configured(reading.facts)
