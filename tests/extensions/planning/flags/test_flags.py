"""What is pasted: the flags of the model and the configuration, what they replace, and that ours gives what was planned."""

import json
import re
import subprocess
from dataclasses import replace

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.extensions.planning import Configuration, estimate
from pipeplan.extensions.planning.flags import read_configuration
from pipeplan.extensions.planning.flags.megatron import offload_modules
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import flags_of, plan_trainer
from pipeplan.extensions.planning.workload import model
from pipeplan.formats import parse_json
from pipeplan.foundation.errors import InputError
from pipeplan.model import Schedule

H100S = cluster("h100-sxm:8x8")
DENSE = Configuration(
    sequence=4096, global_batch=64, tensor=4, pipeline=4, data=4, sequence_parallel=True, layers=(21, 20, 20, 19)
)
MOE = Configuration(
    sequence=4096,
    global_batch=128,
    pipeline=8,
    data=8,
    expert=8,
    chunks=2,
    schedule="interleaved-1f1b",
)


TORCHRUN = "torchrun() { printf '%s\\0' \"$@\" && printf '\\0' && env -0; }\n"


def launch(text, **before):
    """The words of torchrun's command line and the environment, as bash has them when it runs a script."""
    users = {name: name.lower() for name in re.findall(r'^: "\$\{(\w+):\?', text, re.MULTILINE)}
    environment = {"PATH": "/usr/bin:/bin", **users, **before}
    done = subprocess.run(["bash", "-c", TORCHRUN + text], capture_output=True, check=True, text=True, env=environment)
    arguments, _, variables = done.stdout.partition("\0\0")
    return arguments.split("\0"), dict(line.split("=", 1) for line in variables.split("\0") if line)


def words(text):
    """The flags that a script gives the trainer."""
    return launch(text)[0]


def megatron(name, configuration, schedule=None, machines=H100S):
    result = flags_of(model(name), machines, configuration, schedule)["megatron"]
    return result, words(result.text)


def value(flags, name):
    return flags[flags.index(name) + 1]


ONE_CHUNK = replace(MOE, chunks=1, schedule="1f1b", pipeline=4, data=16, expert=4)


@pytest.mark.parametrize(
    ("name", "configuration", "has", "lacks"),
    [
        (
            "llama-3-70b",
            DENSE,
            "--num-query-groups 8 --seq-length 4096 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 "
            "--micro-batch-size 1 --global-batch-size 64 --pipeline-model-parallel-layout Et*21|t*20|t*20|t*19L "
            "--ffn-hidden-size 28672 --sequence-parallel --swiglu --use-distributed-optimizer --bf16",
            "--num-experts --recompute-granularity --context-parallel-size --fp8-format",
        ),
        (
            "llama-3-70b",
            replace(DENSE, replicate=2),
            "--use-distributed-optimizer --num-distributed-optimizer-instances 2",
            "",
        ),
        (
            "deepseek-v3",
            replace(MOE, recompute=("mla_up_proj", "layernorm")),
            "--num-experts 256 --moe-layer-freq ([0]*3+[1]*58) --kv-lora-rank 512 --q-lora-rank 1536 "
            "--expert-model-parallel-size 8 --mtp-num-layers 1 --recompute-granularity selective "
            "--microbatch-group-size-per-virtual-pipeline-stage 8",
            "--group-query-attention",
        ),
        ("gpt-oss-120b", ONE_CHUNK, "", "--moe-router-score-function --moe-router-pre-softmax"),
        ("qwen2-57b-a14b", ONE_CHUNK, "--moe-router-pre-softmax", "--moe-router-score-function"),
        ("glm-4.5-air", ONE_CHUNK, "--moe-router-enable-expert-bias", "--moe-router-topk-scaling-factor"),
    ],
)
def test_a_model_and_its_degrees(name, configuration, has, lacks):
    result, flags = megatron(name, configuration)
    assert not result.warnings
    assert not {*lacks.split()} & {*flags}
    for flag, value in re.findall(r"(--\S+)(?: (?!--)(\S+))?", has):
        assert flag in flags
        assert not value or flags[flags.index(flag) + 1] == value, flag


def test_recomputation_by_stage_is_named_and_replaced_by_one_that_fits():
    by_stage = replace(DENSE, recompute_by_stage=(("full",), ("full",), ("layernorm",), ()))
    result, flags = megatron("llama-3-70b", by_stage)
    assert value(flags, "--recompute-granularity") == "full"
    assert value(flags, "--recompute-num-layers") == "1"
    assert "--recompute-modules" not in flags
    assert "0-1: full; 2: layernorm; 3: nothing" in result.warnings[0]
    assert result.warnings[0] in result.text


@pytest.mark.parametrize(
    ("schedule", "chunks", "runs", "layers"),
    [
        ("zb-h1", 1, "1f1b", (21, 20, 20, 19)),
        ("zbv", 2, "1f1b", None),
        ("interleaved-zb", 2, "interleaved-1f1b", None),
    ],
)
def test_a_schedule_that_megatron_does_not_run_is_replaced_with_a_warning(schedule, chunks, runs, layers):
    result, flags = megatron("llama-3-70b", replace(DENSE, schedule=schedule, chunks=chunks, layers=layers))
    assert f"Megatron-LM does not support {schedule}: these flags run {runs} instead" in result.warnings[0]
    parts = value(flags, "--pipeline-model-parallel-layout").split("|")
    assert len(parts) == 4 * (2 if runs == "interleaved-1f1b" else 1)


@pytest.mark.parametrize(
    ("gpu", "before", "degrees", "connections", "offload"),
    [
        ("h100-sxm", {}, {"pipeline": 4, "data": 16}, None, None),
        ("h100-sxm", {}, {"tensor": 4, "pipeline": 4, "data": 4, "sequence_parallel": True}, "1", None),
        ("b200", {}, {"context": 2, "pipeline": 4, "data": 8}, None, None),
        ("h100-sxm", {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, {"tensor": 4, "data": 16, "zero": 3}, None, None),
        ("h100-sxm", {}, {"context": 4, "data": 16, "offload": 0.5}, "1", "1"),
    ],
)
def test_the_environment_is_what_validate_args_requires(gpu, before, degrees, connections, offload):
    """Its rules: arguments.py of 0.14 to 0.19, at ``CUDA_DEVICE_MAX_CONNECTIONS`` and ``NVTE_CPU_OFFLOAD_V1``."""
    configuration = Configuration(sequence=4096, global_batch=64, **degrees)
    text = flags_of(model("llama-3-70b"), cluster(f"{gpu}:8x8"), configuration)["megatron"].text
    _, variables = launch(text, **before)
    names = ("CUDA_DEVICE_MAX_CONNECTIONS", "NVTE_CPU_OFFLOAD_V1")
    assert [variables.get(name) for name in names] == [connections, offload]


PAIRED = replace(MOE, schedule="interleaved-1f1b-overlap", software="megatron-core-overlapped")


def test_pairs_hide_exchanges_on_connections_of_their_own():
    result, flags = megatron("mixtral-8x7b", PAIRED)
    assert result.warnings == ()
    assert {"--overlap-moe-expert-parallel-comm", "--delay-wgrad-compute"} <= set(flags)
    assert launch(result.text, CUDA_DEVICE_MAX_CONNECTIONS="1")[1]["CUDA_DEVICE_MAX_CONNECTIONS"] == "32"
    _, at_once = megatron("mixtral-8x7b", replace(PAIRED, software="megatron-core-overlapped+weights-at-once"))
    assert set(flags) - set(at_once) == {"--delay-wgrad-compute"}
    _, alone = megatron("mixtral-8x7b", replace(PAIRED, pipeline=1, chunks=1, data=64, schedule="1f1b-overlap"))
    assert {"--overlap-moe-expert-parallel-comm", "--delay-wgrad-compute"} <= set(alone)


@pytest.mark.parametrize("trainer", ["megatron", "bridge"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"expert": 1}, "pairs forwards with backwards only where ep is above 1"),
        ({"recompute": ("moe",)}, "does not recompute moe in pairs"),
        ({"recompute": ("full",)}, "does not combine full recomputation with overlapped"),
    ],
)
def test_what_excludes_pairs_is_the_only_text(trainer, change, sentence):
    result = flags_of(model("mixtral-8x7b"), H100S, replace(PAIRED, **change))[trainer]
    assert sentence in result.warnings[-1]
    assert result.text == f"# {result.warnings[-1]}.\n"


def test_torchtitan_hides_exchanges_in_no_release_that_is_supported():
    planned = replace(MOE, schedule="dualpipev", software="torchtitan+hidden-expert")
    (warning,) = (
        words for words in flags_of(model("mixtral-8x7b"), H100S, planned)["torchtitan"].warnings if "0.2.1" in words
    )
    assert "DualPipeV" in warning
    own = flags_of(model("mixtral-8x7b"), H100S, replace(planned, software="torchtitan"))["torchtitan"]
    assert not any("0.2.1" in words for words in own.warnings)


def test_an_order_of_another_name_is_not_taken_for_its_strategy_and_comes_as_a_file(steps):
    schedule = parse_json(str(pipeplan.export("gpipe", to="json", ranks=4, microbatches=16).text))
    assert isinstance(schedule, Schedule)
    result, _ = megatron("llama-3-70b", DENSE, schedule.renamed("1f1b"))
    assert "does not support 1f1b" in result.warnings[0]
    own = flags_of(model("llama-3-70b"), H100S, DENSE, schedule)["pipeplan"]
    assert len(own.files) == 2
    planned = estimate(model("llama-3-70b"), H100S, DENSE, schedule=schedule, with_error_bar=False)
    assert steps(own)["with_barrier"] == pytest.approx(planned.step_time, rel=1e-6)


def test_torchtitan_shards_over_the_ranks_that_do_not_replicate():
    sharded = replace(DENSE, zero=3)
    for configuration, degrees in (
        (sharded, (1, 4)),
        (replace(sharded, replicate=2), (2, 2)),
        (replace(DENSE, zero=0), (4, 1)),
    ):
        text = flags_of(model("llama-3-70b"), H100S, configuration)["torchtitan"].text
        matches = [re.search(rf"data_parallel_{name}_degree (\d+)", text) for name in ("replicate", "shard")]
        assert tuple(int(match[1]) if match else 1 for match in matches) == degrees


def test_what_megatron_refuses_is_the_only_text():
    few = replace(DENSE, schedule="interleaved-1f1b", chunks=2, layers=None, global_batch=8)
    result = flags_of(model("llama-3-70b"), H100S, few)["megatron"]
    assert "too few" in result.warnings[-1]
    assert result.text == f"# {result.warnings[-1]}.\n"


def test_shards_beside_a_pipeline():
    result, flags = megatron("llama-3-70b", replace(DENSE, zero=3))
    assert "does not support the plan's ZeRO-3 with a pipeline" in " ".join(result.warnings)
    assert "--use-megatron-fsdp" not in flags
    alone = replace(DENSE, pipeline=1, data=16, zero=3, layers=None)
    _, flags = megatron("llama-3-70b", alone)
    assert value(flags, "--ckpt-format") == "fsdp_dtensor"
    assert value(flags, "--data-parallel-sharding-strategy") == "optim_grads_params"
    assert value(flags, "--num-layers") == "80"
    assert "--pipeline-model-parallel-layout" not in flags


def test_a_share_on_the_host_becomes_modules_that_hold_it():
    result, flags = megatron("llama-3-70b", replace(DENSE, offload=0.2))
    assert "--fine-grained-activation-offloading" in flags
    assert "the modules named here hold about that fraction" in result.warnings[0]
    dense, moe = model("llama-3-70b"), model("deepseek-v3")
    assert set(offload_modules(dense, 1.0)) == {"attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm"}
    assert {"expert_fc1", "moe_act"} <= set(offload_modules(moe, 1.0))
    shares = [0.05, 0.1, 0.2, 0.3]
    assert sorted(shares, key=lambda share: len(offload_modules(dense, share))) == shares
    for share in shares:
        chosen = offload_modules(dense, share)
        assert "attn_proj" not in chosen or "core_attn" in chosen


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recompute_by_stage": (("full",), (), (), ())}, "one policy for all stages: activation-checkpoint:full"),
        ({"recompute": ("layernorm",)}, "cannot recompute only layernorm"),
        ({"offload": 0.5}, "no flag for the plan's offload"),
        ({"precision": "fp8"}, "no flag for fp8"),
    ],
)
def test_what_torchtitan_cannot_express(change, message):
    result = flags_of(model("llama-3-70b"), H100S, replace(DENSE, zero=3, **change))["torchtitan"]
    assert message in result.warnings[0]
    assert result.warnings[0] in result.text


def test_what_torchtitan_s_settings_warn_of_stands_once_in_its_flags():
    configuration = replace(DENSE, schedule="zb-h1", recompute=("full",))
    result = flags_of(model("llama-3-70b"), H100S, configuration)["torchtitan"]
    (warning,) = [item for item in result.warnings if "default loss" in item]
    assert result.text.count(warning) == 1


@pytest.mark.parametrize(
    ("name", "release", "message"),
    [
        ("gpt-oss-120b", "0.14", "it has no --quick-geglu, which needs 0.15 or later"),
        ("qwen2-57b-a14b", "0.15", "it has no --moe-shared-expert-gate, which needs 0.16 or later"),
        ("qwen2.5-3b", "0.15", "does not split 2 heads of keys and values over 4 tensor ranks"),
    ],
)
def test_what_a_release_cannot_build_is_refused(name, release, message):
    configuration = replace(DENSE, layers=None)
    result = flags_of(model(name), H100S, configuration, versions={"megatron": release})["megatron"]
    assert message in result.warnings[-1]
    assert result.text == f"# {result.warnings[-1]}.\n"
    assert "torchrun" in flags_of(model(name), H100S, configuration)["megatron"].text


@pytest.mark.parametrize(("trainer", "title"), [("megatron", "Megatron-LM"), ("bridge", "Megatron-Bridge")])
def test_experts_under_tensor_parallelism_need_sequence_parallelism(trainer, title):
    """Megatron-core starts, and raises in the first forward of a layer with experts (``MoELayer.forward``)."""
    configuration = replace(MOE, tensor=2, pipeline=4)
    result = flags_of(model("qwen3-235b-a22b"), H100S, configuration)[trainer]
    assert f"{title} trains experts with tensor parallelism only with sequence parallelism" in result.warnings[-1]
    assert result.text == f"# {result.warnings[-1]}.\n"
    together = replace(configuration, sequence_parallel=True, expert=4, expert_tensor=2)
    text = flags_of(model("qwen3-235b-a22b"), H100S, together)[trainer].text
    assert "torchrun" in text
    assert re.search(r"expert.tensor.parallel.size (?:= )?2\b", text)


@pytest.mark.parametrize(("trainer", "release"), [("megatron", "0.7"), ("torchtitan", "0.2"), ("pipeplan", "0.1")])
def test_an_unknown_release_is_refused(trainer, release):
    with pytest.raises(InputError, match=trainer.replace("megatron", "Megatron")):
        plan_trainer(trainer).release(release)


@pytest.fixture
def steps(tmp_path, monkeypatch, capsys):
    """Run pipeplan's own command of flags beside their files, and return the step that it prints."""
    monkeypatch.chdir(tmp_path)

    def printed(flags):
        for name, text in flags.files.items():
            (tmp_path / name).write_text(text)
        (line,) = [line for line in flags.text.splitlines() if line.startswith("pipeplan simulate")]
        assert main([*line.split()[1:], "--json"]) == 0
        return json.loads(capsys.readouterr().out)["step"]

    return printed


@pytest.mark.parametrize(
    ("schedule", "chunks", "software"),
    [
        ("1f1b", 1, "megatron-core"),
        ("zb-h1", 1, "zero-bubble"),
        ("zbv", 2, "torchtitan"),
    ],
)
def test_our_own_command_gives_the_step_time_that_was_planned(schedule, chunks, software, steps):
    configuration = replace(DENSE, schedule=schedule, chunks=chunks, layers=None, software=software)
    result = flags_of(model("llama-3-70b"), H100S, configuration)["pipeplan"]
    step = steps(result)["without_barrier" if software == "zero-bubble" else "with_barrier"]
    planned = estimate(model("llama-3-70b"), H100S, configuration, with_error_bar=False)
    assert step == pytest.approx(planned.step_time, rel=1e-6)
    (shown,) = re.findall(r"step ([0-9.]+) s", result.text)
    assert float(shown) == pytest.approx(planned.step_time, rel=1e-5)


def test_settings_that_a_configuration_leaves_out_follow_from_others():
    document = {
        "model": "llama3-70b",
        "cluster": "h100-sxm:8x8",
        "global_batch": 64,
        "sequence": 4096,
        "tp": 4,
        "pp": 4,
    }
    for changes, expected in (
        ({}, (True, 1, "1f1b", 4)),
        ({"tp": 1}, (False, 1, "1f1b", 16)),
        ({"vp": 2}, (True, 2, "interleaved-1f1b", 4)),
        ({"layers": [10] * 8}, (True, 2, "interleaved-1f1b", 4)),
    ):
        _, _, result = read_configuration({**document, **changes})
        assert (result.sequence_parallel, result.chunks, result.schedule, result.data) == expected
