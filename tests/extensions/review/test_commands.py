# ruff: noqa: E501
"""``pipeplan review``: what it prints, what it exits with, and the patch that it writes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.extensions.review import RULES

pytestmark = pytest.mark.usefixtures("empty_folder")

SCRIPT = """torchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py \\
  --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8 \\
  --tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout {layout} \\
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 32 --bf16 --use-distributed-optimizer
"""
BALANCED, UNEVEN, STALE = "'Et*20|t*20|t*20|t*20L'", "'Et*26|t*18|t*18|t*18L'", "'Et*20|t*20|t*20|t*16L'"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(layout: str, name: str = "run.sh") -> str:
        (tmp_path / name).write_text(SCRIPT.format(layout=layout))
        return name

    return write


def answer(capsys, *arguments: str, code: int) -> Any:
    assert main(["review", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_clean_configuration_exits_with_0(write, capsys):
    result = answer(capsys, write(BALANCED), "--model", "llama3-70b", "--cluster", "b200-sxm:4x8", code=0)
    assert all(finding["severity"] == "advice" for finding in result["findings"])
    assert result["patch"] == ""
    assert result["step_time_s"] > 0
    assert result["configurations"][0]["peak_memory_by_rank_gib"][0] > 0


def test_an_error_exits_with_1_and_is_at_its_line(write, capsys):
    result = answer(capsys, write(STALE), code=1)
    finding = result["findings"][0]
    assert {"rule", "severity", "where", "message", "remedy"} <= finding.keys()
    assert (finding["rule"], finding["severity"], finding["line"]) == ("layout-layers", "error", 3)
    assert finding["where"] == "run.sh:3 --pipeline-model-parallel-layout"
    assert finding["message"] == "the layout has 76 transformer layers, and the model 80"


def test_a_patch_is_written_and_applies(write, capsys, tmp_path):
    name = write(STALE)
    assert main(["review", name, "-o", "fix.patch"]) == 1
    capsys.readouterr()
    subprocess.run(["patch", "-s", name, "fix.patch"], check=True)
    assert "--pipeline-model-parallel-layout 'Et*20|t*20|t*20|t*20L'" in (tmp_path / name).read_text()
    assert main(["review", name]) == 0


def test_an_uneven_layout_is_a_warning_with_its_figures_and_a_verified_change(write, capsys):
    result = answer(capsys, write(UNEVEN), "--model", "llama3-70b", "--cluster", "b200-sxm:4x8", code=1)
    (finding,) = [finding for finding in result["findings"] if finding["severity"] != "advice"]
    assert finding["rule"] == "stages-unbalanced"
    (change,) = result["configurations"][0]["changes"]
    assert change["removes"] == ["stages-unbalanced"]
    assert change["gain"] == pytest.approx(1 - change["step_time_s"] / result["step_time_s"])
    assert change["gain"] > 0.1


def test_findings_of_several_files_stand_under_their_file(write, capsys):
    files = write(STALE), write(BALANCED, "other.sh")
    assert main(["review", *files]) == 1
    text = capsys.readouterr().out
    assert text.count("[layout-layers]") == 1
    assert text.startswith("run.sh: Megatron-LM")
    assert "without findings: other.sh" in text


def test_a_file_that_cannot_be_read_exits_with_2(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big.log").write_bytes(b"x" * (17 << 20))
    (tmp_path / "bomb.yaml").write_text("a: &a [x, x]\n" + "".join(f"k{n}: &k{n} [*a, *a]\n" for n in range(2)))
    (tmp_path / "evil.py").write_text("__import__('os').system('touch hacked')\n")
    for name in ("big.log", "bomb.yaml", "evil.py", "missing.sh"):
        assert main(["review", name]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1, message
    assert not (tmp_path / "hacked").exists()


def test_the_table_answers_four_questions_in_their_order(write, capsys):
    assert main(["review", write(STALE)]) == 1
    text = capsys.readouterr().out
    places = [
        text.index(part) for part in ("does it start", "is it right", "where it loses", "what to change", "--- a/")
    ]
    assert places == sorted(places)


def test_rules_are_listed(capsys):
    assert main(["list", "rules", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert len(rules) == len(RULES) == len(pipeplan.review_rules())
    assert {"id", "trainer", "releases", "message", "remedy", "source"} <= rules[0].keys()
    assert main(["review", "--rules"]) == 0
    assert "layers-per-rank" in capsys.readouterr().out


@pytest.mark.needs("training")
def test_traces_of_a_run_are_reviewed_with_the_configuration(tmp_path, monkeypatch, capsys, write):
    from tests.extensions.training.traces.traces import traces

    name = write(BALANCED)
    timeline = pipeplan.simulate(
        "1f1b", ranks=4, microbatches=8, forward_times=[1, 1, 1, 2], backward_times=[2, 2, 2, 4], time_unit="ms"
    ).timeline
    folder = tmp_path / "run"
    folder.mkdir()
    for file, text in traces(timeline).items():
        (folder / file).write_text(text)
    result = answer(capsys, name, "--trace", "run", code=1)
    (finding,) = [finding for finding in result["findings"] if finding["severity"] == "warning"]
    assert finding["rule"] == "measured-unbalanced"
    assert "rank 3" in finding["message"]
    assert result["run"]["step_time_s"] == pytest.approx(timeline.makespan / 1000, rel=0.05)


def test_a_review_without_an_estimate_says_what_it_did_not_judge_and_which_options_it_needs(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)  # lines break within long paths
    sizes = {"hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 24, "intermediate_size": 8192}
    config = {"model_type": "llama", "vocab_size": 100_000, "num_key_value_heads": 8, **sizes}
    Path("config.json").write_text(json.dumps(config))
    plan = ["plan", "--model", "config.json", "--cluster", "h100-sxm:8x1", "--global-batch", "16"]
    plan += ["--sequence", "4096", "--seconds", "1", "--workers", "1", "--flags", "torchtitan"]
    flags = "torchtitan.sh"
    assert main([*plan, "-o", flags]) == 0
    capsys.readouterr()
    assert main(["review", flags]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "where it loses: nothing found; step time and memory not judged (no estimate)" in said
    assert "does not name a model that pipeplan knows: review it with --model config.json" in said
    assert main(["review", flags, "--model", "config.json"]) == 0
    assert "where it loses: nothing found step" in " ".join(capsys.readouterr().out.split())
    assert main(["review", flags, flags]) == 0
    assert "torchtitan.sh (no estimate), torchtitan.sh (no estimate)" in " ".join(capsys.readouterr().out.split())
