# ruff: noqa: E501
"""``pipeplan review``: what it prints, what it exits with, and the patch that it writes."""

import json
import os
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import pipeplan
from pipeplan.answers.parts import figure
from pipeplan.cli import main
from pipeplan.extensions.review import RULES
from pipeplan.extensions.review.answers.sources import SUFFIXES
from pipeplan.foundation.errors import InputError
from pipeplan.model import counted

pytestmark = pytest.mark.usefixtures("empty_folder")

SCRIPT = """torchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py \\
  --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8 \\
  --tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout {layout} \\
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 32 --bf16 --use-distributed-optimizer
"""
CLUSTER = ("--model", "llama3-70b", "--cluster", "b200-sxm:4x8")
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
    assert main(["review", "--hook", *files]) == 1
    text = capsys.readouterr().out
    assert text.count("[layout-layers]") == 1
    words = " ".join(text.split())
    assert words.startswith("1 of 2 configurations does not start, or does not train right: 1 error (layout-layers); ")
    assert "\nrun.sh: Megatron-LM\n" in text
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
    questions = ("does it start", "is it right", "where it loses", "does it fit")
    for options, parts in (((), questions), (("--verbose",), (*questions, "what to change"))):
        assert main(["review", write(STALE), *options]) == 1
        text = capsys.readouterr().out
        places = [text.index(part) for part in (*parts, "--- a/")]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("layouts", "options", "code", "headline"),
    [
        (
            [BALANCED],
            CLUSTER,
            0,
            "{0} starts and is right as far as {judged} of {rules} rules could judge; it takes {step}",
        ),
        ([STALE], (), 1, "{0} starts but trains wrongly: 1 error (layout-layers); the patch removes it"),
        (
            [UNEVEN],
            CLUSTER,
            1,
            "{0} starts and is right as far as {judged} of {rules} rules could judge; it takes {step}; 1 warning "
            "(stages-unbalanced); a change gains {gain}: {after}",
        ),
        (
            [STALE, BALANCED],
            (),
            1,
            "{1} differs from {0} in 1 setting; gone: layout-layers; no times, because {0} has errors",
        ),
    ],
)
def test_a_review_is_one_sentence_first_in_the_shell_and_in_json(write, capsys, layouts, options, code, headline):
    files = [write(layout, f"run-{number}.sh") for number, layout in enumerate(layouts)]
    result = answer(capsys, *files, *options, code=code)
    assert next(iter(result)) == "headline"
    assert main(["review", *files, *options]) == code
    assert " ".join(capsys.readouterr().out.split()).startswith(result["headline"])
    own = result["configurations"][0]
    values: dict[str, Any] = {
        "judged": sum(question["judged"] for question in result["questions"]),
        "rules": sum(question["judged"] + question["not_judged"] for question in result["questions"]),
    }
    if own["step_time_s"] is not None:
        values["step"] = f"{figure(own['step_time_s'])} s a step and {own['peak_memory_gib']:.1f} GiB"
    if own["changes"] and own["changes"][-1]["step_time_s"] is not None:
        last = own["changes"][-1]
        values["after"] = f"{figure(last['step_time_s'])} s a step and {last['peak_memory_gib']:.1f} GiB"
        values["gain"] = f"{1 - last['step_time_s'] / own['step_time_s']:.1%}"
    assert result["headline"] == headline.format(*files, **values)


def test_the_script_of_the_readme_is_reviewed_in_45_lines_with_its_patch(tmp_path, capsys):
    (tmp_path / "pretrain.sh").write_text((Path(__file__).parents[3] / "examples" / "pretrain.sh").read_text())
    assert main(["review", "pretrain.sh", "--cluster", "h100-sxm:16x8"]) == 1
    text = capsys.readouterr().out
    words = " ".join(text.split())
    assert len(text.splitlines()) <= 45
    assert max(map(len, text.partition("--- a/")[0].splitlines())) <= 80
    assert words.startswith(
        "pretrain.sh does not start: 3 errors (expert-grid, expert-bias-over-tensor, layers-per-rank); "
    )
    assert re.search(r"with the patch it takes \d\.\d+ s a step and \d+\.\d GiB", words)
    assert "experts with bias need etp 1, not 4 -> removed by the same change" in words
    assert "is it right: 1 remark where it loses: 1 warning, 3 remarks" in words
    assert "router-precision" not in words
    assert main(["review", "pretrain.sh", "--cluster", "h100-sxm:16x8", "--verbose"]) == 1
    assert "advice [router-precision]" in capsys.readouterr().out


def test_findings_beyond_ten_are_listed_with_all(tmp_path, capsys):
    recipe = "\ndef number_{}_config():\n    cfg = ConfigContainer()\n    cfg.model.num_layers = 46\n"
    recipe += "    cfg.model.pipeline_model_parallel_size = 4\n    cfg.model.pipeline_model_parallel_layout = None\n"
    text = "from megatron.bridge.training.config import ConfigContainer\n"
    recipes = (f"{recipe.format(number)}    return cfg\n" for number in range(12))
    (tmp_path / "recipes.py").write_text(text + "".join(recipes))
    assert main(["review", "recipes.py"]) == 1
    words = " ".join(capsys.readouterr().out.split())
    assert words.startswith("12 of 12 configurations do not start, or do not train right: 12 errors (layers-per-rank)")
    assert words.count("[layers-per-rank]") == 10
    assert "2 configurations not listed: --all" in words
    assert main(["review", "recipes.py", "--all"]) == 1
    assert capsys.readouterr().out.count("[layers-per-rank]") == 12


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


MODEL_LEFT_OUT = """torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py --hidden-size 8192 --num-attention-heads 64 \\
  --tensor-model-parallel-size 4 --sequence-parallel --pipeline-model-parallel-size 4 --micro-batch-size 1 --bf16
"""


@pytest.fixture
def without_layers(tmp_path):
    (tmp_path / "run.sh").write_text(MODEL_LEFT_OUT)
    return "run.sh"


def test_what_is_unknown_is_never_called_right(without_layers, capsys):
    headline = answer(capsys, without_layers, code=3)["headline"]
    assert headline.startswith("Whether run.sh starts is not known, because the number of layers is unknown; ")
    assert re.search(r"\d+ of \d+ rules could judge it: no error$", headline)


def test_what_was_not_judged_is_counted_with_the_option_that_says_it(without_layers, capsys):
    result = answer(capsys, without_layers, code=3)
    for question in result["questions"]:
        assert sum(fact["rules"] for fact in question["missing"]) == question["not_judged"]
    missing = [fact for question in result["questions"] for fact in question["missing"]]
    layers = [fact for fact in missing if fact["what"] == "the number of layers"]
    assert {fact["give"] for fact in layers} == {"--model"}
    assert result["configurations"][0]["unknown"] == ["the number of layers"]
    assert main(["review", without_layers, "--verbose"]) == 3
    text = " ".join(capsys.readouterr().out.split())
    assert main(["review", without_layers]) == 3
    short = capsys.readouterr().out.partition("missing: ")[2]
    assert "settings such as " in short
    assert "other settings" not in short
    assert f"not judged: {counted(layers[0]['rules'], 'rule')}, because the number of layers is not stated" in text
    assert "is not stated: give --model" in text
    assert "does it start: nothing found" not in text
    more = answer(capsys, without_layers, "--model", "llama3-70b", code=0)
    assert more["questions"][0]["judged"] > result["questions"][0]["judged"]
    assert "the number of layers" not in {fact["what"] for one in more["questions"] for fact in one["missing"]}


def test_nothing_found_is_said_where_every_rule_was_judged(write, capsys):
    arguments = (write(BALANCED), "--model", "llama3-70b", "--cluster", "b200-sxm:4x8")
    result = answer(capsys, *arguments, code=0)
    main(["review", *arguments])
    text = capsys.readouterr().out
    findings = {finding["question"] for finding in result["findings"]}
    whole = [
        question["question"]
        for question in result["questions"]
        if not question["not_judged"] and question["judged"] and question["question"] not in findings
    ]
    assert whole
    assert text.count("nothing found") == len(whole)


def test_strict_makes_what_is_unknown_a_failure_and_a_hook_lets_it_pass(without_layers, capsys):
    assert main(["review", without_layers, "--strict"]) == 1
    assert main(["review", without_layers, "--hook"]) == 0
    assert main(["review", without_layers, "--hook", "--strict"]) == 1


def test_an_unknown_trainer_is_said_and_is_not_clean(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("parallelism: {pp_size: 2, tp_size: 1}\nmodel: {num_layers: 24}\n")
    result = answer(capsys, "c.yaml", code=3)
    assert result["configurations"][0]["unknown"] == ["the trainer"]
    main(["review", "c.yaml"])
    assert "unknown trainer: only rules for every trainer were judged; --trainer names it" in capsys.readouterr().out


def test_rules_that_keys_of_a_fork_silence_are_not_judged(write, capsys):
    assert "layout-layers" in {finding["rule"] for finding in answer(capsys, write(STALE), code=1)["findings"]}
    result = answer(capsys, write(f"{STALE.rstrip()} --pipe-my-way 2\n"), code=3)
    assert result["findings"] == []
    assert result["configurations"][0]["unknown"] == ["the split of the layers"]
    assert result["configurations"][0]["not_read"] == ["--pipe-my-way"]
    main(["review", "run.sh"])
    assert capsys.readouterr().out.count("not read: --pipe-my-way") == 1


def test_one_unreadable_file_does_not_hide_the_others(write, capsys, tmp_path):
    (tmp_path / "broken.yaml").write_text("pipeline_model_parallel_size: [4\n")
    (tmp_path / "values.yaml").write_text("image: {{ name }}\n")
    (tmp_path / "empty.py").write_text("")
    result = answer(capsys, write(STALE), "broken.yaml", "values.yaml", "empty.py", "missing.sh", code=2)
    assert result["findings"][0]["rule"] == "layout-layers"
    assert [file["file"] for file in result["files"]["unreadable"]] == ["broken.yaml", "missing.sh"]
    assert result["files"]["skipped"] == 2
    assert answer(capsys, "empty.py", "--hook", code=0)["files"]["skipped"] == 1
    assert pipeplan.review("run.sh", "missing.sh").verdict == "unreadable"
    with pytest.raises(InputError):
        pipeplan.review("missing.sh")


def test_a_folder_is_walked_and_summed_up_on_a_page(write, capsys, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.sh").write_text(SCRIPT.format(layout=STALE))
    repository = tmp_path / "repository"
    for place in ("jobs", "more/jobs", ".hidden", "node_modules"):
        (repository / place).mkdir(parents=True)
        (repository / place / "run.sh").write_text(SCRIPT.format(layout=STALE))
    (repository / "jobs" / "good.sh").write_text(SCRIPT.format(layout=BALANCED))
    (repository / "jobs" / "link.sh").symlink_to(outside / "run.sh")
    (repository / "linked").symlink_to(outside)
    os.mkfifo(repository / "jobs" / "pipe.sh")
    (repository / "config.json").write_text('{"num_hidden_layers": 4}')
    (repository / "broken.yaml").write_text("pipeline_model_parallel_size: [4\n")
    result = answer(capsys, "repository", code=1)
    assert sorted(finding["file"] for finding in result["findings"] if finding["severity"] == "error") == [
        "repository/jobs/run.sh",
        "repository/more/jobs/run.sh",
    ]
    assert len(result["configurations"]) == 3
    assert result["patch"] == ""
    files = result["files"]
    assert files["looked_at"] == 7
    assert files["skipped"] == 3
    assert [file["file"] for file in files["unreadable"]] == ["repository/broken.yaml"]
    assert main(["review", "repository", "-o", "fix.patch"]) == 1
    text = capsys.readouterr().out
    assert "2 [layout-layers] jobs/run.sh:3, more/jobs/run.sh:3" in text
    assert len(text.splitlines()) < 60
    assert "cannot be read: invalid YAML in broken.yaml: line 1" in " ".join(text.split())
    assert "--verbose (in Python: verbose=True) adds each configuration with its findings" in text
    assert main(["review", "repository", "--verbose"]) == 1
    assert "error [layout-layers] repository/jobs/run.sh:3" in capsys.readouterr().out
    assert (tmp_path / "fix.patch").read_text().count("+++ ") == 2


def test_two_files_are_compared_with_what_the_change_costs(write, capsys):
    files = write(UNEVEN), write(BALANCED, "after.sh")
    cluster = ("--model", "llama3-70b", "--cluster", "b200-sxm:4x8")
    comparison = answer(capsys, *files, *cluster, code=1)["comparison"]
    assert [each["setting"] for each in comparison["settings"]] == ["pipeline_model_parallel_layout"]
    assert "stages-unbalanced" in {finding["rule"] for finding in comparison["gone"]}
    before, after = comparison["step_time_s"]
    assert after < 0.9 * before
    assert main(["review", *files, *cluster]) == 1
    text = capsys.readouterr().out
    assert text.startswith(f"after.sh is {1 - after / before:.1%} faster than run.sh: ")
    assert "\nrun.sh -> after.sh\n" in text
    assert "gone: warning [stages-unbalanced]" in text
    assert answer(capsys, *files, *cluster, "--hook", code=1)["comparison"] is None


def test_findings_as_sarif_are_at_their_lines_and_columns(write, capsys, tmp_path):
    (tmp_path / "with space").mkdir()
    name = write(STALE, "with space/run.sh")
    assert main(["review", name, "missing.sh", "-o", "review.sarif"]) == 2
    log = json.loads((tmp_path / "review.sarif").read_text())
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    first = run["results"][0]
    assert rules[first["ruleIndex"]]["id"] == first["ruleId"] == "layout-layers"
    assert rules[first["ruleIndex"]]["help"]["text"]
    assert first["level"] == "error"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "with%20space/run.sh"
    region = place["region"]
    line = Path(name).read_text().split("\n")[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == STALE.strip("'")
    assert run["invocations"][0]["executionSuccessful"] is False


def test_annotations_of_a_workflow_are_escaped(write, capsys):
    name = write(STALE, "50%,a:b.sh")
    main(["review", name, "--annotate"])
    (error,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error ")]
    assert error.startswith("::error file=50%25%2Ca%3Ab.sh,line=3,col=")
    assert ",title=pipeplan layout-layers::the layout has 76 transformer layers, and the model 80%0A" in error


def test_a_file_cannot_give_commands_to_the_workflow_that_reviews_it(write, capsys):
    name = write(UNEVEN)
    Path(name).write_text("::stop-commands::quiet\n" + Path(name).read_text())
    main(["review", name, "--annotate"])
    lines = capsys.readouterr().out.splitlines()
    (token,) = [line.removeprefix("::stop-commands::") for line in lines if line.startswith("::stop-commands::")]
    end = lines.index(f"::{token}::")
    assert lines[0] == f"::stop-commands::{token}"
    assert " ::stop-commands::quiet" in lines[:end]
    assert any(line.startswith("::warning ") for line in lines[end:])


def test_a_file_whose_name_ends_a_line_cannot_name_another_one_in_the_patch(write):
    name = write(UNEVEN, "a\n+++ b.sh")
    patch = pipeplan.review(name).patch
    assert patch.startswith('--- "a/a\\012+++ b.sh"\n+++ "b/a\\012+++ b.sh"\n@@ ')


def test_the_gpus_that_a_file_names_count_before_those_of_the_options(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sft.sh").write_text(
        "NPROC_PER_NODE=1 NNODES=1 megatron sft --model Qwen/Qwen3-8B --tuner_type full --micro_batch_size 1 --max_length 2048"
    )
    result = answer(capsys, "sft.sh", "--cluster", "h100-sxm:8x16", code=1)
    assert [finding["rule"] for finding in result["findings"] if finding["severity"] == "warning"] == [
        "memory-does-not-fit"
    ]
    assert "the 1 GPU of the configuration, not the 128 of the options" in result["configurations"][0]["assumed"]


def test_a_folder_without_a_configuration_is_not_clean(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    assert main(["review", str(tmp_path / "folder")]) == 2
    assert "no configuration in" in capsys.readouterr().err
    assert main(["review", "--hook", str(tmp_path / "folder")]) == 0


ROOT = Path(__file__).parents[3]


def test_the_hook_and_the_action_take_the_files_that_a_folder_holds():
    suffixes = {suffix.removeprefix(".") for suffix in SUFFIXES}
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    action = (ROOT / "action.yml").read_text()
    assert hook["files"] in action
    assert {suffix for suffix in suffixes if re.search(hook["files"], f"a/b.{suffix}")} == suffixes
    assert not re.search(hook["files"], "README.md")


def test_the_action_reviews_what_a_pull_request_changes(tmp_path, monkeypatch):
    step: Any
    (step,) = [
        step
        for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
        if step.get("name") == "Review"
    ]
    folder = tmp_path / "venv" / "pipeplan" / "bin"
    folder.mkdir(parents=True)
    (folder / "pipeplan").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$RUNNER_TEMP/words"\nexit 1\n')
    (folder / "pipeplan").chmod(0o755)
    git: Any = partial(subprocess.run, check=True, capture_output=True, text=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    git(["git", "init", "-q", "origin"])
    for name in ("old.sh", "kept.sh", "notes.md"):
        (tmp_path / "origin" / name).write_text("1\n")
    for command in (["add", "."], [*who, "commit", "-qm", "base"]):
        git(["git", "-C", "origin", *command])
    git(["git", "clone", "-q", "origin", "checkout"])
    base = git(["git", "-C", "checkout", "rev-parse", "HEAD"]).stdout.strip()
    (tmp_path / "checkout" / "new $(touch hacked).yaml").write_text("1\n")
    (tmp_path / "checkout" / "notes.md").write_text("2\n")
    (tmp_path / "checkout" / "old.sh").unlink()
    for command in (["add", "-A"], [*who, "commit", "-qm", "change"]):
        git(["git", "-C", "checkout", *command])

    def words(code: int, **inputs: str) -> list[str]:
        environment = {"PATHS": "", "STRICT": "false", "ARGUMENTS": "", "SARIF": "r.sarif", "BASE": base} | inputs
        assert environment.keys() == step["env"].keys()
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path / "checkout",
            env=os.environ | environment | {"RUNNER_TEMP": str(tmp_path / "venv")},
            check=False,
        )
        assert done.returncode == code
        lines: list[str] = (tmp_path / "venv" / "words").read_text().splitlines()
        return lines

    start = ["review", "--hook", "--annotate", "-o", "r.sarif"]
    assert words(1) == [*start, "--", "new $(touch hacked).yaml"]
    assert words(1, BASE="") == [*start, "--", "."]
    inputs = {"PATHS": "a b\nc\n", "ARGUMENTS": "--cluster 'h100-sxm:8x4'", "STRICT": "true"}
    assert words(1, **inputs) == [*start, "--cluster", "h100-sxm:8x4", "--strict", "--", "a b", "c"]
    (tmp_path / "venv" / "words").write_text("")
    head = git(["git", "-C", "checkout", "rev-parse", "HEAD"]).stdout.strip()
    git(["git", "-C", "origin", "config", "uploadpack.allowAnySHA1InWant", "true"])
    git(["git", "-C", "origin", "fetch", "-q", "../checkout", "HEAD"])
    assert words(0, BASE=head) == []
    assert not (tmp_path / "checkout" / "hacked").exists()


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
    assert main(["review", flags]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "does it fit: not judged" in said
    assert "does not name a model that pipeplan knows: review it with --model config.json" in said
    assert main(["review", flags, "--model", "config.json"]) in (0, 3)
    assert "the number of layers" not in capsys.readouterr().out
    assert main(["review", "--hook", flags, flags]) == 0
    assert "torchtitan.sh (unknown: the number of layers" in " ".join(capsys.readouterr().out.split())


def test_a_file_of_several_configurations_has_one_patch(tmp_path, capsys):
    recipe = """def {name}_config():
    cfg = ConfigContainer()
    cfg.model.num_layers = {layers}
    cfg.model.pipeline_model_parallel_size = 4
    cfg.model.tensor_model_parallel_size = 1
    cfg.model.pipeline_model_parallel_layout = None
    return cfg


"""
    text = "from megatron.bridge.training.config import ConfigContainer\n\n\n"
    recipes = (recipe.format(name="first", layers=46), recipe.format(name="second", layers=58))
    (tmp_path / "recipes.py").write_text("".join((text, *recipes)))
    result = answer(capsys, "recipes.py", code=1)
    assert result["patch"].count("--- ") == 1
    assert [each["patch"] for each in result["configurations"]] == [result["patch"]] * 2
    assert main(["review", "recipes.py"]) == 1
    assert capsys.readouterr().out.count("--- a/recipes.py") == 1


def test_a_pipeline_whose_split_is_unknown_is_not_clean(tmp_path, capsys):
    (tmp_path / "recipe.py").write_text(
        "from megatron.bridge.recipes.common import elsewhere\n\n\n"
        "def some_config():\n    cfg = elsewhere()\n    cfg.model.num_layers = 46\n"
        "    cfg.model.tensor_model_parallel_size = 1\n    cfg.model.pipeline_model_parallel_size = 4\n    return cfg\n"
    )
    assert answer(capsys, "recipe.py", code=3)["configurations"][0]["unknown"] == ["the split of the layers"]
