# ruff: noqa: E501
"""Every form of a configuration is read with its lines, and its patch is applied in its form."""

import json
import os
from pathlib import Path

import pytest

import pipeplan
from pipeplan.extensions.review import RULES, combined, improvements, judged, read_configurations, read_text_of
from pipeplan.extensions.review.edits import edits_of
from pipeplan.extensions.review.readers.shell import read_in_shell
from pipeplan.extensions.review.text_edits import NoPatch, diff_of, edited_text
from pipeplan.foundation.errors import InputError, PipeplanError
from tests.extensions.review.configurations import CASES

PATCHED = [case for case in CASES if not case.file.endswith((".log", "layout.txt"))]


def read(text: str, file: str = "run.sh"):
    (reading,) = read_text_of(text, file)
    return reading


def patched(reading, changes: dict[str, object]) -> str:
    return edited_text(reading.source.text, edits_of(reading, changes))


def values(text: str, file: str = "run.sh") -> dict[str, object]:
    settings = read(text, file).facts.settings
    return {name: entry.value for name, entry in settings.items() if not entry.assumed}


def test_a_form_is_read_with_its_trainer_and_its_fault():
    for case in CASES:
        facts = read(case.text, case.file).facts
        assert facts.trainer.name == case.trainer, case
        assert {name: facts.get(name, "unset") for name in case.settings} == case.settings, case
        faults = {fault.rule.id: fault for fault in judged(facts, RULES)}
        place = faults[case.fault].place
        assert place.file == case.file, case
        line = case.text.split("\n")[place.line - 1]
        assert place.key.lstrip("-").rpartition(".")[2] in line or case.file == "layout.txt", case


def test_a_patch_is_in_the_form_of_the_file_and_leaves_it_clean():
    for case in PATCHED:
        reading = read(case.text, case.file)
        changes = combined(list(improvements(reading.facts, RULES)))
        text = patched(reading, changes)
        diff = diff_of(case.file, case.text, text)
        assert diff.startswith(f"--- a/{case.file}\n+++ b/{case.file}\n@@"), case
        again = read(text, case.file).facts
        assert {name: again.get(name, None) or None for name in changes} == {
            name: value or None for name, value in changes.items()
        }
        assert [fault.rule.id for fault in judged(again, RULES) if fault.rule.severity != "advice"] == [], case
        changed = sum(line[:1] in "+-" for line in diff.splitlines()[2:])
        assert changed <= 2 * len(changes), case


def test_a_log_is_not_patched():
    (case,) = (case for case in CASES if case.file == "train.log")
    with pytest.raises(NoPatch, match="the file is a log"):
        patched(read(case.text, case.file), {"first_stage_layers": 12, "last_stage_layers": 10})


def test_a_layout_is_patched_as_a_whole():
    reading = read("Et*4|t*4|t*4L|\n", "layout.txt")
    assert patched(reading, {"layout": "Et*4|t*4|t*4L"}) == "Et*4|t*4|t*4L\n"


def test_several_configurations_of_a_file_are_read_by_name():
    recipes = (
        "def one():\n    cfg.model.pipeline_model_parallel_size = 2\n    cfg.model.tensor_model_parallel_size = 1\n    return cfg\n"
        "def two():\n    cfg = one()\n    cfg.model.pipeline_model_parallel_size = 4\n    return cfg\n"
    )
    assert [(r.facts.name, r.facts.pp, r.facts.tp) for r in read_text_of(recipes, "r.py")] == [
        ("one", 2, 1),
        ("two", 4, 1),
    ]


@pytest.mark.parametrize(("option", "value"), [("trainer", "torchtitan"), ("trainer_version", "0.16")])
def test_pipeplans_own_configuration_has_no_trainer(option, value):
    """Its rules are those of all trainers, so a trainer or a release would be ignored."""
    own = {"model": "llama3-8b", "cluster": "h100-sxm:8x1", "global_batch": 8, "sequence": 4096, "tensor": 8}
    assert pipeplan.review(own).step_time_s is not None
    with pytest.raises(InputError, match="pipeplan's own configuration") as refused:
        pipeplan.review(own, **{option: value})
    assert refused.value.field == option


def test_helpers_of_a_recipe_are_followed():
    text = """
LAST = ["loss"]
def _layout(pp, vp, *, small=False):
    if small:
        return None
    table = {(2, 1): [["embedding"] + ["decoder"] * 4, ["decoder"] * 3 + LAST]}
    if (pp, vp or 1) not in table:
        raise ValueError(f"no layout for {pp}")
    return table[(pp, vp or 1)]
def set_layout(model_cfg, layout=None):
    if layout is not None:
        model_cfg.pipeline_model_parallel_layout = layout
        return
    try:
        model_cfg.pipeline_model_parallel_layout = _layout(
            model_cfg.pipeline_model_parallel_size, model_cfg.virtual_pipeline_model_parallel_size, small=False
        )
    except ValueError:
        pass
def recipe(pp=2, num_layers=8):
    cfg = _common()
    cfg.model.pipeline_model_parallel_size = pp
    cfg.model.num_layers = num_layers
    set_layout(cfg.model)
    return cfg
"""
    reading = next(r for r in read_text_of(text, "recipe.py", trainer="megatron-bridge") if r.facts.name == "recipe")
    assert reading.facts.letters == ("Etttt", "tttL")
    (fault,) = [fault for fault in judged(reading.facts, RULES) if fault.rule.id == "layout-layers"]
    assert text.split("\n")[fault.place.line - 1] == "    set_layout(cfg.model)"
    patch = patched(reading, combined(list(improvements(reading.facts, RULES))))
    assert '\n    cfg.model.pipeline_model_parallel_layout = "Et*4|t*4L"\n' in patch


def test_settings_of_a_branch_that_the_recipe_does_not_decide_are_unknown():
    text = (
        "def recipe(peft=None):\n    cfg.model.tensor_model_parallel_size = 1\n    cfg.model.pipeline_model_parallel_size = 4\n"
        "    if os.environ.get('WIDE'):\n        cfg.model.tensor_model_parallel_size = 8\n    return cfg\n"
    )
    facts = read(text, "r.py").facts
    assert facts.pp == 4
    assert not facts.has("tp")


def test_a_script_is_followed_as_a_shell_would():
    for script, expected in [
        ("torchrun x.py --tensor-model-parallel-size 4 --bf16", {"tp": 4, "bf16": True}),
        (
            "TP=2 PP=4\ntorchrun x.py --tensor-model-parallel-size=$TP --pipeline-model-parallel-size ${PP}",
            {"tp": 2, "pp": 4},
        ),
        ("TP=${TP:-2}\ntorchrun x.py --tensor-model-parallel-size $TP", {"tp": 2}),
        ("TP=$1\ntorchrun x.py --tensor-model-parallel-size $TP --bf16", {"bf16": True}),
        ("TP=${1:-8}\ntorchrun x.py --tensor-model-parallel-size $TP", {"tp": 8}),
        ("A=3\nB=$((A * (2 + 2) - 8 / 2))\ntorchrun x.py --tensor-model-parallel-size $B", {"tp": 8}),
        (
            'ARGS=(\n --tensor-model-parallel-size 4 # four\n)\nARGS+=(--bf16)\ntorchrun x.py "${ARGS[@]}"',
            {"tp": 4, "bf16": True},
        ),
        ("A='--tensor-model-parallel-size 4'\nA=\"$A --bf16\"\ntorchrun x.py $A", {"tp": 4, "bf16": True}),
        (
            "TP=1 PP=2\nif [ $N -gt 1 ]; then TP=4; PP=2; else TP=8; fi\n"
            "torchrun x.py --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP",
            {"pp": 2},
        ),
        (
            "TP=2\ncase $S in\n 70b) TP=8 ;;\n 8b|7b) F=--bf16 ;;\nesac\nx.py $F --tensor-model-parallel-size $TP --fp16",
            {"fp16": True},
        ),
        ("A=(--fp16)\n[[ -n $Q && $Q ]] && A+=(--bf16)\ntorchrun x.py ${A[@]} --swiglu", {"fp16": True, "gated": True}),
        ("for L in 1 2; do\ntorchrun x.py --lr $L --tensor-model-parallel-size 4\ndone", {"tp": 4}),
        (
            'X=$(cat <<EOM\ntorchrun it\'s.py \\\n  --tensor-model-parallel-size 4\nEOM\n)\necho "$X" > run.sh',
            {"tp": 4},
        ),
        (
            "read -r -d '' X <<-EOM\n\t--bf16 \\\n\t--tensor-model-parallel-size 4\nEOM\ntorchrun x.py $X",
            {"bf16": True, "tp": 4},
        ),
        (
            'D=$(cd "$(dirname "$0")" && pwd)\nX=${Y//a/b}\ntorchrun x.py --load $D --seq-length $X --bf16',
            {"bf16": True},
        ),
        (
            "TP=4\nwhile [ $# -gt 0 ]; do\n case $1 in --tp) TP=$2; shift;; esac\n shift\ndone\n"
            "torchrun x.py --tensor-model-parallel-size $TP",
            {"tp": 4},
        ),
        (
            "python prepare.py --seq-length 128\ntorchrun x.py --tensor-model-parallel-size 4 --seq-length 4096",
            {"tp": 4, "seq_length": 4096},
        ),
        (
            "A=(--tensor-model-parallel-size 1)\nB=(--tensor-model-parallel-size 8)\ntorchrun x.py ${B[@]} --bf16",
            {"tp": 8, "bf16": True},
        ),
        ('bash -c "torchrun x.py --tensor-model-parallel-size 4 \\\n --bf16"', {"tp": 4, "bf16": True}),
        ("sbatch <<EOF\nsrun it's.py --tensor-model-parallel-size 4\nEOF\n", {"tp": 4}),
        ("# it's --tensor-model-parallel-size 8\ntorchrun x.py --tensor-model-parallel-size 4 # 'quoted", {"tp": 4}),
        ("python x.py ++model.tensor_model_parallel_size=4 actor.ref.tensor_model_parallel_size=8", {"tp": 4}),
        ("torchrun x.py --tensor-model-parallel-size 4 --disable-bias-linear", {"tp": 4, "add_bias_linear": False}),
        (
            "A='--tensor-model-parallel-size 4'\nif [ $N -gt 1 ]; then A=\"$A --seq-length 64 --fp16\"; fi\nx.py $A --bf16",
            {"tp": 4, "bf16": True},
        ),
        ("case $1 in\n --fp16|-h) shift;;\nesac\nx.py --tensor-model-parallel-size 4", {"tp": 4}),
        ('D="$(cd "$(dirname "$0")"; echo ")")"\nx.py --tensor-model-parallel-size "4" --load "$D"', {"tp": 4}),
    ]:
        assert values(script) == expected, script


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("torchrun --nproc-per-node 8 x.py --bf16", {"nodes": 1, "gpus_per_node": 8}),
        ("torchrun --nproc-per-node=8 --nnodes=$N x.py --bf16", {"gpus_per_node": 8}),
        ("NNODES=${NNODES:-1}\ntorchrun --nproc_per_node 8 x.py --bf16", {"gpus_per_node": 8}),
        ("#SBATCH -N 4\n#SBATCH --ntasks-per-node=1\nsrun torchrun --nproc_per_node 8 x.py --bf16", {"nodes": 4, "gpus_per_node": 8}),
        ("#SBATCH --gres=gpu:h100:4\n#SBATCH --nodes=2\nsrun x.py --bf16", {"nodes": 2, "gpus_per_node": 4}),
        ("srun -n 16 -N2 python x.py --bf16", {"gpus": 16, "nodes": 2}),
        ("mpirun -np 32 python x.py --bf16", {"gpus": 32}),
        ("deepspeed --num_nodes 2 --num_gpus 8 x.py --bf16", {"nodes": 2, "gpus_per_node": 8}),
        ("accelerate launch --num_processes 16 --num_machines 2 x.py --bf16", {"gpus": 16, "nodes": 2}),
        ("ray start --num-gpus 4\npython x.py --bf16", {"gpus_per_node": 4}),
        ("python scripts/performance/run_script.py --num_gpus 24 --gpus_per_node 8 --bf16", {"gpus": 24, "gpus_per_node": 8}),
        ("NNODES=1 NPROC_PER_NODE=8 megatron sft --bf16", {"nodes": 1, "gpus_per_node": 8}),
        ("A=1; GPUS_PER_NODE=8; NNODES=$A\npython x.py --bf16", {"nodes": 1, "gpus_per_node": 8}),
        ("NNODES=${WORLD_SIZE:-1}\nGPUS_PER_NODE=$1\npython x.py --bf16", {}),
        ("torchrun --nproc_per_node 1 convert.py\npython x.py --bf16 --num-gpus 64", {"gpus": 64}),
    ],
)  # fmt: skip
def test_every_launcher_has_its_own_meaning_of_gpus(script, expected):
    found = values(script)
    assert {name: found[name] for name in ("gpus", "nodes", "gpus_per_node") if name in found} == expected


def test_the_gpus_of_a_launcher_are_patched_where_they_stand():
    script = "deepspeed --num_nodes 1 --num_gpus=8 x.py --tensor-model-parallel-size ${TP:-4} # four\n"
    lines = script.split("\n")
    places = {name: entry.place for name, entry in read(script).facts.settings.items() if not entry.assumed}
    text = {name: (one.key, lines[one.line - 1][one.start : one.end]) for name, one in places.items()}
    assert text == {
        "nodes": ("--num_nodes", "1"),
        "gpus_per_node": ("--num_gpus", "8"),
        "tp": ("--tensor-model-parallel-size", "${TP:-4}"),
    }


def test_a_value_in_quotes_is_patched_with_them():
    script = 'TP=4\npython x.py model.tensor_model_parallel_size="${TP}" model.pipeline_model_parallel_size=2\n'
    place = read(script).facts.settings["tp"].place
    assert script.split("\n")[place.line - 1][place.start : place.end] == '"${TP}"'


def test_json_that_is_no_yaml_has_the_places_of_its_values():
    place = (
        read('{"name": "\\ud83d\\ude00",\n\t"tensor_model_parallel_size": 4\n}\n', "args.json")
        .facts.settings["tp"]
        .place
    )
    assert (place.line, place.start, place.end) == (2, 31, 32)


def test_arguments_in_a_python_file_are_not_guessed():
    with pytest.raises(InputError, match="no setting"):
        read_text_of('parser.add_argument("--position-embedding-type", type=str)\nrun(["--seq-length", "8"])\n', "x.py")


def test_the_one_node_of_torchrun_is_patched_behind_its_gpus():
    reading = read("torchrun --nproc_per_node=8 x.py --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4\n")
    assert "torchrun --nproc_per_node=8 --nnodes 4 x.py" in patched(reading, {"nodes": 4})


def files(folder, **texts: str):
    """Write files, with ``__`` for a folder and ``_`` before the suffix, and return the readings of the first."""
    paths = [folder / name.replace("__", "/").replace("_", ".") for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (reading,) = read_configurations(paths[0])
    return reading


def test_a_sourced_file_is_read_with_its_own_places(tmp_path):
    reading = files(
        tmp_path,
        scripts__run_sh='H="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"\nsource "${H}/models/m.sh"\n'
        "source /root/repository/common/c.sh\nsource run.sh\ntorchrun x.py ${MODEL[@]} --bf16 --seq-length $LENGTH",
        scripts__models__m_sh="MODEL=(\n  --num-layers 62\n)\n",
        common__c_sh="LENGTH=4096\n",
    )
    facts = reading.facts
    assert (facts.layers, facts.seq_length, facts.bf16) == (62, 4096, True)
    assert facts.settings["layers"].place.file == str(tmp_path / "scripts/models/m.sh")
    assert facts.settings["layers"].place.line == 2
    assert len(reading.others) == 2


def test_files_that_a_script_names_are_not_read_without_a_folder(tmp_path):
    (tmp_path / "m.sh").write_text("A=--fp16")
    script = f"source {tmp_path}/m.sh\ntorchrun x.py $A --bf16"
    assert values(script, str(tmp_path / "run.sh")) == {"bf16": True}


def test_base_configurations_are_merged_below(tmp_path):
    reading = files(
        tmp_path,
        recipes__own_yaml="defaults: ../base.yaml\npolicy:\n  megatron_cfg:\n    enabled: true\n"
        "    pipeline_model_parallel_size: 4 # four\n    context_parallel_size: ${policy.ranks}\n",
        base_yaml="policy:\n  ranks: 2\n  dtensor_cfg: {enabled: false, tensor_parallel_size: 8}\n  megatron_cfg:\n"
        "    enabled: false\n    tensor_model_parallel_size: 2\n    pipeline_model_parallel_size: 1\n"
        "  generation:\n    vllm_cfg: {tensor_parallel_size: 4}\n",
    )
    facts = reading.facts
    assert (facts.tp, facts.pp, facts.cp) == (2, 4, 2)
    assert facts.settings["tp"].place.file == str(tmp_path / "base.yaml")
    place = facts.settings["pp"].place
    assert (place.line, place.start, place.end) == (5, 34, 35)


def test_the_configuration_that_a_command_names_is_below_its_overrides(tmp_path):
    reading = files(
        tmp_path,
        examples__grpo_sh="python3 -m verl.trainer.main_ppo --config-name=ppo.yaml \\\n"
        "  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 trainer.nnodes=2\n",
        verl__trainer__config__ppo_yaml="defaults:\n  - actor@actor_rollout_ref.actor: megatron\n  - _self_\n"
        "trainer: {nnodes: 1, n_gpus_per_node: 8}\n",
        verl__trainer__config__actor__megatron_yaml="megatron:\n  tensor_model_parallel_size: 1\n"
        "  pipeline_model_parallel_size: 1\n",
    )
    facts = reading.facts
    assert (facts.trainer.name, facts.tp, facts.pp, facts.world) == ("verl", 2, 1, 16)
    assert [Path(source.file).name for source in reading.others] == ["ppo.yaml", "megatron.yaml"]


def test_the_model_of_a_tokenizer_is_not_the_one_that_trains():
    text = (
        "model: {pretrained_model_name_or_path: Qwen/Qwen3-32B}\n"
        "dataset: {tokenizer: {pretrained_model_name_or_path: Qwen/Qwen3-8B}}\ndistributed: {pp_size: 5}\n"
    )
    assert read_text_of(text, "c.yaml", trainer="nemo-automodel")[0].facts.layers == 64


def test_flags_that_no_setting_spells_are_listed():
    read_settings = read_in_shell("torchrun x.py --num-layers 4 --num-layer-lists 1,3 --bf16", "run.sh").read
    assert [place.key for place in read_settings.others] == ["--num-layer-lists"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "c.yaml"),
        ("[" * 100_000, "deep.json"),
        ("__import__('os').system('touch hacked')\n" * 3, "import.py"),
        ("def f(:\n", "broken.py"),
        ("nothing here\n", "empty.txt"),
        ("x = " + "(" * 5000 + "1" + ")" * 5000, "nested.py"),
        ("echo hello; " * 60_000, "long.sh"),
        ("A='" + "x" * 2_000_000 + "'\n", "line.sh"),
        ("$(" * 200_000, "commands.sh"),
        ("cat <<EOF\n" * 20_000, "documents.sh"),
        ("if true; then A=$B\n" * 5_000, "branches.sh"),
        ('{"a":' * 500 + "1" + "}" * 500, "groups.json"),
    ],
)  # fmt: skip
def test_hostile_files_get_one_sentence(text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipeplanError) as raised:
        read_text_of(text, words)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
    assert list(tmp_path.iterdir()) == []


def test_files_that_name_themselves_or_never_end_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.sh")
    with pytest.raises(InputError, match="named pipe"):
        read_configurations(tmp_path / "pipe.sh")
    text = "source own.sh\nsource pipe.sh\nsource /dev/zero\nx.py --tensor-model-parallel-size 4 --lr 'open"
    assert files(tmp_path, own_sh=text).facts.tp == 4
    assert files(tmp_path, own_yaml="defaults: [own, own]\npipeline_model_parallel_size: 2").facts.pp == 2


@pytest.mark.parametrize(
    "document",
    [
        {"num_layers": [1], "pipeline_model_parallel_size": {}, "tensor_model_parallel_size": 2},
        {"pipeline_model_parallel_layout": {"a": 1}, "pipeline_model_parallel_size": 2},
        {"pipeline_model_parallel_size": 2, "tensor_model_parallel_size": 10**400, "num_layers": float("nan")},
        {"pipeline_model_parallel_size": 2, "virtual_pipeline_model_parallel_size": -5, "world_size": "9" * 5000},
        {"pipeline_model_parallel_size": 2, "pipeline_model_parallel_layout": "E" + "A" * 5000},
    ],
)
def test_values_of_any_type_and_length_are_read(document):
    facts = read(json.dumps(document), "document.json").facts
    assert all(len(fault.message) < 500 for fault in judged(facts, RULES))


def test_a_layout_of_a_billion_layers_is_a_fault_and_not_built():
    facts = read(
        "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*999999999|L' --tensor-model-parallel-size 1"
    ).facts
    assert "layout-letters" in {fault.rule.id for fault in judged(facts, RULES)}


def test_variables_that_double_each_other_end():
    script = (
        "A0='--bf16 --swiglu'\n"
        + "".join(f'A{n}="$A{n - 1} $A{n - 1}"\n' for n in range(1, 60))
        + "torchrun x.py $A59\n"
    )
    assert values(script) == {"bf16": True, "gated": True}
    assert values("A=xxxxxxxx\n" + "A=$A$A\n" * 60 + "torchrun x.py --load $A$((A + A)) --bf16") == {"bf16": True}


@pytest.mark.parametrize(
    ("text", "file", "phase"),
    [
        ("megatron export --model Qwen/Qwen3-8B --tensor_model_parallel_size 2 --fp8_param_gather true", "quant.sh", "export"),
        ("vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 2", "serve.sh", "inference"),
        ("python -m sglang.launch_server --model-path x --tp-size 4 --tensor-model-parallel-size 4", "s.sh", "inference"),
        ("python tools/run_text_generation_server.py --tensor-model-parallel-size 2", "s.sh", "inference"),
        ("swift rlhf --infer_backend vllm --tensor_model_parallel_size 2 --micro_batch_size 1", "s.sh", "train"),
        ("MODE: inference\nMODEL_ARGS:\n  --num-tokens-to-generate: 16\n  --tensor-model-parallel-size: 2\n", "m.yaml", "inference"),
        ("MODEL_ARGS:\n  --train-iters: 9\n  --num-tokens-to-generate: 16\n  --tensor-model-parallel-size: 2\n", "m.yaml", "train"),
    ],
)  # fmt: skip
def test_jobs_that_do_not_train_are_told_apart(text, file, phase):
    facts = read(text, file).facts
    assert facts.get("phase", "train") == phase
    assert facts.trains == (phase == "train")


def test_the_nodes_of_a_job_on_ray_are_those_of_its_actors():
    script = (
        'ray start --head --num-gpus 8\nssh w "ray start --num-gpus 8"\nray job submit -- python train.py --actor-num-nodes 4 \\\n'
        "  --actor-num-gpus-per-node 8 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4\n"
    )
    assert read(script).facts.world == 32


def test_a_layout_that_passes_through_a_shell_keeps_its_bars():
    text = "--pipeline-model-parallel-size: 2\n--pipeline-model-parallel-layout: Et*2\\\\|\\(tt\\\\|\\)*2tL\n"
    assert read(text, "m.yaml").facts.letters == ("Ett", "tt", "tt", "tL")


def test_a_recipe_of_another_size_is_not_the_model_of_its_family():
    recipe = "def llama4_e128_recipe():\n    cfg.model.tensor_model_parallel_size = 1\n    cfg.model.pipeline_model_parallel_size = 2\n"
    assert not read(recipe, "r.py").facts.has("experts")
