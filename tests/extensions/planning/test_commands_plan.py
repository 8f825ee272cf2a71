"""``plan`` and ``estimate`` in the shell: answers, files, exit codes, and a sentence for whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeplan.costs import table_of
from pipeplan.extensions.planning.answers.options import PlanOptions
from tests.plans import CONFIG

ASKED = "plan --model llama3-8b --cluster h100-sxm:8x1 --global-batch 16 --sequence 4096 --workers 1"
QUICK = f"{ASKED} --seconds 3 --fix tp=2 dp=4"


def test_help_lists_every_setting(run):
    code, text, _ = run("plan --help-all")
    assert code == 0
    for setting in table_of(PlanOptions).values():
        assert setting.options[0] in text
    assert "--flags" in text


def test_the_answer_as_a_table_and_as_files(run):
    code, out, err = run(f"{QUICK} -o plan.json -o plan.svg -o best.yaml -o train.sh -o order.csv")
    assert code == 0
    assert "llama3-8b on 8 h100-sxm (1 node of 8), 16 sequences of 4,096 tokens" in out
    assert "tp2 dp4" in out
    assert err.count("wrote ") == 5
    record = json.loads(Path("plan.json").read_text())
    assert record["best"]["configuration"]["tensor"] == 2
    code, out, _ = run("estimate best.yaml --json")
    assert code == 0
    (row,) = json.loads(out)["rows"]
    assert row["step_time_s"] == pytest.approx(record["best"]["step_time_s"])
    assert row["refused"] is None
    assert "seconds per step" in Path("plan.svg").read_text()
    assert "--tensor-model-parallel-size 2" in Path("train.sh").read_text()


@pytest.mark.parametrize("trainer", ["megatron", "bridge", "torchtitan", "pipeplan"])
def test_the_flags_of_one_trainer_with_figures_and_notes_on_stderr(run, trainer):
    code, out, err = run(f"{QUICK} --flags {trainer} -o train.sh -o plan.json")
    assert code == 0
    record = json.loads(Path("plan.json").read_text())
    assert err.partition(": ")[2].startswith(record["headline"])
    assert ("note: the budget ended" in err) != record["complete"]
    assert out.rstrip("\n") == Path("train.sh").read_text().rstrip("\n")
    assert "llama3-8b on 8" not in out


def test_an_order_that_flags_name_and_nothing_wrote_is_told(run):
    line = f"{ASKED} --seconds 2 --fix pp=2 --fix schedule=zbv --flags torchtitan"
    name = "llama3-8b.zbv.csv"
    code, out, err = run(line)
    assert code == 0
    assert f"--parallelism.pipeline_parallel_schedule_csv {name}" in out
    assert f"warning: the flags name {name}, which is not written: add -o NAME.sh to write both" in err
    _, _, err = run(f"{line} -o train.sh")
    assert f"wrote {name}, which train.sh names" in err
    assert "not written" not in err


def test_flags_are_for_the_release_that_is_asked_for(run):
    code, out, _ = run(f"{QUICK} --flags torchtitan --trainer-version main -o train.sh")
    assert code == 0
    assert "num_tokens_per_train_step" in out
    assert out.rstrip("\n") == Path("train.sh").read_text().rstrip("\n")


def test_where_nothing_fits_the_answer_is_no(run):
    code, out, _ = run(f"{ASKED} --seconds 2 --memory-limit 2GiB")
    assert code == 1
    assert out.startswith("No configuration fits in 2.0 GiB per GPU: ")
    code, out, err = run(f"{ASKED} --seconds 2 --memory-limit 2GiB --json -o best.yaml")
    assert code == 1
    record = json.loads(out)
    assert record["best"] is None
    assert record["closest_miss"]["change"]
    assert "no configuration fits" in err
    assert not Path("best.yaml").exists()


def test_a_store_is_gone_on_from(run):
    assert run(f"{QUICK} --store plan.db --json")[0] == 0
    assert Path("plan.db").exists()
    assert run(f"{QUICK} --store plan.db --json")[0] == 0


def test_models_and_gpus_are_listed(run):
    for kind, name in {"models": "llama3-70b", "gpus": "h100-sxm"}.items():
        code, out, _ = run(f"list {kind}")
        assert (code, name in out) == (0, True)
        assert max(map(len, out.splitlines())) <= 80
        assert run(f"plan --{kind}") == run(f"catalogue {kind}") == (0, out, "")
        assert name in {entry["name"] for entry in json.loads(run(f"list {kind} --json")[1])[kind]}


def test_a_deadline_of_days_is_met_with_totals_in_days_and_dollars(run):
    whole = "--objective gpus --deadline 40d --tokens 1e11 --price 2 --allow schedules --seconds 0.001"
    code, out, _ = run(f"{ASKED.replace('8x1', '8x2')} {whole} --json")
    assert code == 0
    record = json.loads(out)
    best, totals = record["best"], record["totals"]
    assert totals["days"] <= 40
    assert totals["tokens"] == 1e11
    assert totals["dollars"] == pytest.approx(2 * totals["gpu_hours"])
    assert best["configuration"]["gpus"] < 16
    code, out, _ = run(f"{ASKED.replace('8x1', '8x2')} {whole}")
    assert "100 billion tokens: " in out
    assert " days, " in out
    assert ", $" in out


@pytest.mark.needs("review")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("plan", "a plan needs --model, --cluster, --global-batch, --sequence: "),
        (f"{ASKED} --model llama3-8x", "--model is given twice, the second time as 'llama3-8x': keep one of them"),
        (ASKED.replace("llama3-8b", "llama3-8x"), "did you mean 'llama3-8b'"),
        (ASKED.replace("llama3-8b", "none.json"), "no such file"),
        (ASKED.replace("llama3-8b", "broken.json"), "hidden_size"),
        (ASKED.replace("h100-sxm:8x1", "h101-sxm:8x1"), "did you mean 'h100-sxm'"),
        (ASKED.replace("--global-batch 16", "--global-batch 0"), "global batch must be at least 1, not 0"),
        (f"{ASKED} --fix tp=3", "tp must divide the 32 attention heads"),
        (f"{ASKED} --fix tp", "NAME=VALUE"),
        (f"{ASKED} --fix tp=2 tp=4", "tp is fixed twice"),
        (f"{ASKED} --fix tpp=2", "did you mean 'tp'"),
        (f"{ASKED} --memory-limit 8act", "in bytes, such as 72GiB"),
        (f"{ASKED} --objective speed", "step-time"),
        (f"{ASKED} --objective gpus", "needs a deadline"),
        (f"{ASKED} --deadline soon", "invalid duration 'soon': expected seconds, or a unit such as 12h or 30d"),
        (f"{ASKED} --deadline 0d", "deadline must be more than 0"),
        (f"{ASKED} --allow ofload", "did you mean 'offload'"),
        (f"{ASKED.replace('16', '13')} --fix tp=1 pp=1 cp=1", "dp x microbatch size must divide the global batch 13"),
        (
            ASKED.replace("h100-sxm:8x1", "links.yaml"),
            "has no link speed inside nodes: set inside: {bandwidth: 300 GB/s}",
        ),
        (f"{ASKED} --flags megatorn", "did you mean 'megatron'"),
        (f"{ASKED} --flags megatron --json", "exclude each other"),
        (f"{ASKED} --flags megatron --trainer-version 0.7", "unsupported Megatron-core 0.7"),
        (f"{ASKED} --trainer-version 0.19", "needs --flags"),
        (f"{ASKED} --calibration none.yaml", "no such file"),
        (f"{ASKED} -o plan.abc", "unknown suffix"),
        (f"{ASKED} -o nowhere/plan.json", "there is no folder"),
        (ASKED.replace("llama3-8b", "config.json") + " -o config.json", "inputs are never overwritten"),
        ("estimate none.yaml", "no such file"),
        ("estimate empty.json", "is empty"),
        ("estimate config.json", "does not name the GPU and the degrees"),
        ("estimate many.json", "invalid global_batch 'many'"),
        ("estimate rows.json -o rows.png", "choose one of"),
        ("estimate rows.json -o rows.json", "inputs are never overwritten"),
    ],
)
def test_what_is_wrong_is_one_sentence(run, line, words):
    Path("config.json").write_text(json.dumps(CONFIG))
    Path("broken.json").write_text(json.dumps(CONFIG | {"hidden_size": -1}))
    gpu = {"name": "own", "peak": {"bf16": 1e14}, "memory_bytes": 80e9, "memory_bandwidth": 2e12}
    Path("links.yaml").write_text(json.dumps({"gpu": gpu, "per_node": 8}))
    Path("rows.json").write_text(json.dumps({"rows": [{}]}))
    asked = {"model": "llama3-8b", "cluster": "h100-sxm:8x1", "sequence": 8192}
    Path("many.json").write_text(json.dumps(asked | {"global_batch": "many"}))
    Path("empty.json").touch()
    before = Path("config.json").read_text()
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("pipeplan: ")
    assert len(err.splitlines()) == 1
    assert Path("config.json").read_text() == before


def test_rows_that_cannot_be_estimated_are_the_answer_no(run):
    Path("rows.json").write_text(json.dumps({"rows": [{"id": "one"}]}))
    code, out, _ = run("estimate rows.json --json")
    assert code == 1
    (row,) = json.loads(out)["rows"]
    assert row["id"] == "one"
    assert row["refused"]
    assert row["step_time_s"] is None
