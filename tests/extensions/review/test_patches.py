"""Patches of files: one diff for all configurations, which applies, and leaves nothing worse when it is read again."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeplan.extensions.review import RULES, ReviewFacts, improvements, judged, read_text_of
from pipeplan.extensions.review.edits import edits_of
from pipeplan.extensions.review.estimating import estimated
from pipeplan.extensions.review.facts import Entry
from pipeplan.extensions.review.missing import missing_facts
from pipeplan.extensions.review.patches import Patches, patches_of
from pipeplan.extensions.review.text_edits import NoPatch, TextEdit
from pipeplan.trainers import trainer_kind

RECIPES = """from megatron.bridge.training.config import ConfigContainer


def _common(layers):
    cfg = ConfigContainer()
    cfg.model.num_layers = layers
    cfg.model.pipeline_model_parallel_size = 4
    cfg.model.pipeline_model_parallel_layout = None
    cfg.model.virtual_pipeline_model_parallel_size = None
    cfg.model.num_layers_in_first_pipeline_stage = None
    cfg.model.num_layers_in_last_pipeline_stage = None
    cfg.model.tensor_model_parallel_size = 1
    cfg.model.context_parallel_size = 1
    return cfg


def first_config():
    cfg = _common({first})
    cfg.train.micro_batch_size = 1
    return cfg


def second_config():
    cfg = _common({second})
    cfg.train.micro_batch_size = 1
    return cfg


def third_config():
    cfg = _common({third})
    cfg.train.micro_batch_size = 1
    return cfg
"""


def patches(text: str, file: str, trainer: str | None = None) -> Patches:
    """Patches of a text for all changes that a review proposes."""
    readings = read_text_of(text, file, trainer=trainer)
    return patches_of(readings, [list(improvements(reading.facts, RULES)) for reading in readings], RULES)


def applied(diff: str, text: str, file: str, folder: Path) -> str:
    """Text with a diff that ``patch`` and ``git apply`` apply at its exact lines."""
    (folder / file).write_bytes(text.encode())
    (folder / "fix.patch").write_bytes(diff.encode())
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "apply", "--check", "fix.patch"], cwd=folder, check=True)
    output = subprocess.run(
        ["patch", "-p1", "--dry-run", "-i", "fix.patch"], cwd=folder, check=True, capture_output=True
    )
    assert b"offset" not in output.stdout
    subprocess.run(["git", "apply", "fix.patch"], cwd=folder, check=True)
    return (folder / file).read_bytes().decode()


def faults(text: str, file: str) -> dict[str, set[str]]:
    """Errors and warnings of each configuration of a text."""
    return {
        reading.facts.name: {fault.rule.id for fault in judged(reading.facts, RULES) if fault.rule.severity != "advice"}
        for reading in read_text_of(text, file)
    }


def test_recipes_that_share_a_helper_are_patched_in_their_own_functions_and_a_correct_one_stays(tmp_path):
    text = RECIPES.format(first=46, second=58, third=48)
    result = patches(text, "recipes.py")
    assert result.reasons == ("", "", "")
    after = applied(result.diffs["recipes.py"], text, "recipes.py", tmp_path)
    assert not any("layers-per-rank" in rules for rules in faults(after, "recipes.py").values())
    helper, third = text.index("def first_config"), text.index("def third_config")
    assert after.startswith(text[:helper])
    assert after.endswith(text[third:])


def test_two_recipes_that_need_other_values_of_a_line_are_not_patched_and_say_so():
    # Each returns what the helper made, so that it cannot override it.
    text = RECIPES.format(first=46, second=58, third=48).replace("cfg = _common", "return _common")
    text = text.replace("    cfg.train.micro_batch_size = 1\n    return cfg\n", "")
    result = patches(text, "recipes.py")
    assert result.diffs == {}
    first, second, third = result.reasons
    assert "in line 11 is shared with second_config, which needs another value" in first
    assert "in line 11 is shared with first_config, which needs another value" in second
    assert third == ""


def test_a_line_that_all_its_recipes_need_changed_is_changed_once(tmp_path):
    text = RECIPES.format(first=46, second=46, third=46)
    result = patches(text, "recipes.py")
    assert [line for line in result.diffs["recipes.py"].splitlines()[2:] if line[0] in "+-"] == [
        "-    cfg.model.num_layers_in_last_pipeline_stage = None",
        "+    cfg.model.num_layers_in_last_pipeline_stage = 10",
    ]
    after = applied(result.diffs["recipes.py"], text, "recipes.py", tmp_path)
    assert "layers-per-rank" not in set().union(*faults(after, "recipes.py").values())


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_patch_applies_whatever_ends_the_lines(tmp_path, end):
    lines = ["trainer: megatron", "num_layers: 46", "tensor_model_parallel_size: 1", "pipeline_model_parallel_size: 4"]
    text = (end or "\n").join(lines) + end
    after = applied(patches(text, "my run.yaml").diffs["my run.yaml"], text, "my run.yaml", tmp_path)
    assert after.count("\r\n") == after.count("\n") * (end == "\r\n")
    assert "layers-per-rank" not in faults(after, "my run.yaml")[""]


def test_a_directive_of_slurm_agrees_with_the_launcher(tmp_path):
    text = (
        "#!/bin/bash\n#SBATCH --nodes=1\ntorchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 32 \\\n"
        "  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --bf16\n"
    )
    after = applied(patches(text, "run.sh").diffs["run.sh"], text, "run.sh", tmp_path)
    assert "#SBATCH --nodes=2" in after
    assert "--nnodes 2 --nproc_per_node 8" in after


@pytest.mark.parametrize(
    ("trainer", "flag"),
    [("slime", "--decoder-last-pipeline-num-layers 10"), ("megatron-lm", "--decoder-last-pipeline-num-layers 10")],
)
def test_a_script_gets_the_flag_that_its_trainer_has(trainer, flag):
    text = "python3 train.py --num-layers 46 \\\n  --pipeline-model-parallel-size 4 --tensor-model-parallel-size 1\n"
    assert flag in patches(text, "run.sh", trainer).diffs["run.sh"]


def test_a_setting_is_written_into_the_group_that_holds_it():
    # The batch belongs to the trainer's steps, not to the mesh, and the file has no line of theirs.
    text = "distributed:\n  tp_size: 1\n  pp_size: 4\n  pipeline:\n    pp_schedule: 1f1b\n"
    (reading,) = read_text_of(text, "a.yaml", trainer="nemo-automodel")
    with pytest.raises(NoPatch, match="no setting beside which local_batch_size belongs"):
        edits_of(reading, {"local_batch": 8})
    (edit,) = edits_of(reading, {"micro_batch": 2})
    assert edit == TextEdit(4, new="    pp_microbatch_size: 2")


def test_a_variable_of_a_script_is_changed_where_it_gets_its_value(tmp_path):
    text = (
        "NODES=1\nGPUS=$((8 * NODES))\ntorchrun --nnodes $NODES --nproc_per_node 8 pretrain_gpt.py \\\n"
        "  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --num-layers 32 --bf16\n"
    )
    after = applied(patches(text, "run.sh").diffs["run.sh"], text, "run.sh", tmp_path)
    assert after == text.replace("NODES=1", "NODES=2")


@pytest.mark.parametrize(
    ("machines", "changes"),
    [
        ({"nodes": 1, "gpus_per_node": 8}, {"nodes": 2}),
        ({"gpus_per_node": 8, "nodes": 1, "gpus": 8}, {"gpus": 16, "nodes": 2}),
        ({"gpus": 8}, {"gpus": 16}),
        ({"gpus": 4, "nodes": 8}, {"pp": 1}),
    ],
)
def test_too_few_gpus_are_repaired_by_nodes_as_the_launcher_counts_them(machines, changes):
    settings = {"tp": 4, "pp": 4, "cp": 1, **machines}
    facts = ReviewFacts(trainer_kind("deepspeed"), {key: Entry(value) for key, value in settings.items()})
    (step, *_) = improvements(facts, [rule for rule in RULES if rule.id == "too-few-gpus"])
    assert step.changes == changes


def adapters(**settings: Any) -> ReviewFacts:
    """LoRA of Qwen3-8B on one H100."""
    values = {"model_name": "qwen3-8b", "tp": 1, "pp": 1, "cp": 1, "gpus": 1, "device": "H100", "phase": "peft"}
    values |= {"seq_length": 2048, "global_batch": 32, "micro_batch": 1, "lora_rank": 8, **settings}
    return ReviewFacts(trainer_kind("megatron-bridge"), {key: Entry(value) for key, value in values.items()})


def test_adapters_need_no_states_of_the_frozen_model():
    assert estimated(adapters()).fit == "fits"
    assert estimated(adapters(phase="sft", lora_rank=None)).fit == "does not fit"


@pytest.mark.parametrize(("gpus", "cluster"), [(64, "h100-sxm:8x8"), (4, "h100-sxm:4x1"), (24, "h100-sxm:8x3")])
def test_the_example_of_a_cluster_has_the_size_of_the_configuration(gpus, cluster):
    facts = ReviewFacts(
        trainer_kind("megatron-lm"), {"model_name": Entry("llama3-8b"), "tp": Entry(1), "gpus": Entry(gpus)}
    )
    assert missing_facts(facts) == f"the configuration does not name the GPU: review it with --cluster {cluster}"


def dense(**settings: Any) -> ReviewFacts:
    """Llama-3-70B on 64 H100."""
    values = {
        "model_name": "llama3-70b",
        "tp": 8,
        "pp": 4,
        "cp": 1,
        "gpus": 64,
        "device": "H100",
        "layout": None,
        "vpp": None,
    }
    values |= {"first_stage_layers": None, "last_stage_layers": None, "seq_length": 8192, "micro_batch": 1}
    values |= {"global_batch": 64, "sequence_parallel": True, "distributed_optimizer": True, "bf16": True, **settings}
    return ReviewFacts(trainer_kind("megatron-lm"), {key: Entry(value) for key, value in values.items()})


def test_each_recomputed_layer_lowers_the_memory_and_takes_time():
    block = [
        estimated(dense(recompute_granularity="full", recompute_method="block", recompute_num_layers=layers))
        for layers in (5, 10, 20)
    ]
    uniform = estimated(dense(recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1))
    assert block[0].peak_gib > block[1].peak_gib > block[2].peak_gib == uniform.peak_gib
    assert block[0].estimate.step_time < block[1].estimate.step_time < block[2].estimate.step_time


def test_states_of_the_optimizer_on_the_host_take_no_memory_of_the_gpu():
    gpu, host = estimated(dense()), estimated(dense(optimizer_cpu_offload=True))
    assert gpu.peak_gib - host.peak_gib == pytest.approx(max(rank.optimizer for rank in gpu.estimate.memory), rel=0.05)
    assert "an update of the weights on the host that takes no time" in host.assumed


def test_a_layout_that_code_of_another_file_sets_is_estimated_as_balanced():
    facts = dense(model_name="deepseek-v3", pp=16, gpus=256, ep=8, etp=1)
    unsaid = {name: entry for name, entry in facts.settings.items() if name != "layout"}
    made = estimated(replace(facts, settings=unsaid))
    assert made.guessed
    assert "a balanced split of the layers" in made.assumed
