"""Tools of agents: their schemas, and the answer of each to a call."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.costs import SETTINGS
from pipeplan.extensions.web.mcp.tools import TOOLS, answer_of

pytestmark = pytest.mark.usefixtures("empty_folder")

SMALL = {"ranks": 2, "microbatches": 4}
PLAN = {"model": "llama3-8b", "cluster": "h100-sxm:8", "global_batch": 8, "sequence": 8192, "seconds": 1}
ARGUMENTS = {"num_layers": 46, "pipeline_model_parallel_size": 4, "bf16": True}


def answered(tool, call, seconds=60.0):
    """The answer of a tool, as a client receives it."""
    answer = answer_of(tool, call, seconds)
    assert isinstance(answer, dict), answer
    return json.loads(json.dumps(answer))


def printed(capsys, line):
    main(line.split())
    return json.loads(capsys.readouterr().out)


def test_there_are_six_tools_with_short_schemas():
    assert list(TOOLS) == ["compare", "simulate", "explain", "search", "plan", "review"]
    for name, tool in TOOLS.items():
        jsonschema.Draft202012Validator.check_schema(tool.schema)
        assert "$defs" not in tool.schema, name
        assert all(part["description"] for part in tool.schema["properties"].values()), name
        assert {"output", "detail"} <= set(tool.schema["properties"]) <= {*tool.arguments, "settings"}, name
        assert re.fullmatch(r"[^.]+(\.(csv|yaml|sh|json|patch)[^.]*)+\.", tool.description), tool.description
    assert TOOLS["plan"].schema["required"] == ["model", "cluster", "global_batch", "sequence"]
    assert TOOLS["compare"].schema["required"] == []
    ranks = TOOLS["simulate"].schema["properties"]["ranks"]
    assert ranks == {"type": "integer", "description": SETTINGS["ranks"].full_help.removesuffix(".")}


def test_every_setting_is_listed_or_named_among_the_others():
    schema = TOOLS["simulate"].schema["properties"]
    others = schema["settings"]["description"].removeprefix("Further options by name: ").removesuffix(".").split(", ")
    assert {*schema, *others} >= SETTINGS.keys()
    assert "evaluations" in TOOLS["search"].schema["properties"]["settings"]["description"]


@pytest.mark.parametrize(
    ("tool", "call", "line"),
    [
        ("simulate", {"schedule": "zb-h1", "memory_limit": "3act"}, "zb-h1 --memory-limit 3act"),
        ("compare", {"schedules": ["1f1b", "zbv"]}, "1f1b zbv"),
        ("explain", {"settings": {"p2p_time": 0.5}}, "--p2p-time 0.5"),
    ],
)
def test_the_detail_is_the_json_of_the_command(tool, call, line, capsys):
    whole = printed(capsys, f"{tool} {line} -p 2 -m 4 --json")
    answer = answered(tool, {**SMALL, **call, "detail": True})
    assert answer == whole
    assert next(iter(answer)) == "headline"
    short = answered(tool, {**SMALL, **call})
    assert next(iter(short)) == "headline"
    assert len(json.dumps(short)) < 0.7 * len(json.dumps(answer))
    assert short["headline"] == answer["headline"]
    assert "detail=true returns all" in short["not_shown"]


RECIPE = """
torchrun --nproc-per-node 8 --nnodes 16 pretrain_gpt.py \\
  --num-layers 94 --hidden-size 4096 --ffn-hidden-size 12288 --num-attention-heads 64 --swiglu \\
  --group-query-attention --num-query-groups 4 --kv-channels 128 --vocab-size 151936 \\
  --num-experts 128 --moe-ffn-hidden-size 1536 --moe-router-topk 8 --seq-length 4096 --max-position-embeddings 40960 \\
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 8 --expert-model-parallel-size 32 --sequence-parallel \\
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --transformer-impl local \\
  --micro-batch-size 1 --global-batch-size 256 --use-distributed-optimizer --bf16
"""
GPT = {"config": "gpt-6.2b-24", "ranks": 8, "microbatches": 32, "memory_limit": "20GiB"}
BYTES_PER_TOKEN = 2.8
"""Bytes of a short answer that make a token of o200k_base: at least 2.87 in a measurement of fourteen answers."""


@pytest.mark.parametrize(
    ("tool", "call"),
    [
        *((tool, {"ranks": 4, "microbatches": 8}) for tool in ("compare", "simulate", "explain")),
        *((tool, GPT) for tool in ("compare", "simulate", "explain")),
        ("search", GPT | {"placement": "v", "settings": {"evaluations": 100}}),
        *((tool, {"ranks": 64, "microbatches": 512}) for tool in ("simulate", "explain")),
        (
            "plan",
            {"model": "llama3-70b", "cluster": "h100-sxm:8x8", "global_batch": 128, "sequence": 8192, "seconds": 1},
        ),
        ("review", {"files": ["pretrain.sh"], "cluster": "h100-sxm:16x8"}),
    ],
)
def test_a_short_answer_has_at_most_1500_tokens(tool, call):
    Path("pretrain.sh").write_text(RECIPE)
    answer = answered(tool, call)
    assert next(iter(answer)) == "headline"
    assert len(json.dumps(answer, separators=(",", ":"))) / BYTES_PER_TOKEN < 1_500


def test_a_comparison_lists_ten_schedules_and_says_how_many_more_there_are():
    answer = answered("compare", {"ranks": 4, "microbatches": 8})
    table = pipeplan.compare(ranks=4, microbatches=8)
    assert [row["schedule"] for row in answer["results"]] == [result.name for result in table][:10]
    assert answer["not_shown"].startswith(f"{len(table) - 10} of {len(table)} results")


def test_a_short_answer_has_the_largest_value_of_all_ranks():
    result = pipeplan.simulate("1f1b", ranks=4, microbatches=8)
    short = answered("simulate", {"ranks": 4, "microbatches": 8})
    assert short["peak_activation"] == max(result.peak_activation) == 4
    assert short["makespan"] == result.makespan
    assert not any(isinstance(part, list) for name, part in short.items() if name != "notes")
    assert {"placement", "spans", "work", "idle"} <= set(short["not_shown"].split("; ")[0].split(", "))


def test_a_search_a_plan_and_a_review_answer():
    found = answered("search", {**SMALL, "memory_limit": "2act", "settings": {"evaluations": 50}})
    assert found["makespan"] >= found["lower_bound"]
    plan = answered("plan", PLAN | {"fix": {"tp": 1}, "settings": {"workers": 1}})
    assert plan["best"]["step_time_s"] > 0
    assert f"{plan['best']['peak_memory_gib']:.1f} of " in plan["headline"]
    review = answered("review", {"files": [ARGUMENTS], "trainer": "megatron-lm"})
    assert [finding["rule"] for finding in review["findings"]] == ["layers-per-rank"]
    assert "does not start: 1 error (layers-per-rank)" in review["headline"]


def test_files_are_written_and_named():
    assert answered("simulate", {"schedule": "zbv", **SMALL, "output": ["zbv.csv"]})["written"] == ["zbv.csv"]
    assert (
        answered("simulate", {"schedule": "zbv.csv"})["makespan"]
        == answered("simulate", SMALL | {"schedule": "zbv"})["makespan"]
    )
    (message,) = answered("plan", PLAN | {"settings": {"workers": 1}, "output": ["plan.xyz"]})["written"]
    assert message.startswith("not written: unknown suffix")


@pytest.mark.parametrize(
    ("source", "output"),
    [("mine.csv", "mine.csv"), ("mine.csv", "./mine.csv"), ("mine.megatron.csv", "mine.megatron.sh")],
)
def test_an_input_is_never_overwritten(source, output):
    text = "0F0,0B0\n1F0,1B0\n"
    Path(source).write_text(text)
    answer = answer_of("simulate", {"schedule": source, "output": [output]}, 60)
    assert isinstance(answer, str)
    assert source in answer
    assert Path(source).read_text() == text


@pytest.mark.parametrize(
    ("tool", "call", "message"),
    [
        ("simulate", {"schedule": "zbw"}, "unknown schedule 'zbw'; did you mean 'zbv'?"),
        ("simulate", {"ranks": "four"}, "ranks: invalid integer 'four': expected a whole number such as 4"),
        ("simulate", {"forward_times": [1, 2]}, "2 values for 4 stages; set one number, or 4 values"),
        ("simulate", {"memory_limits": 3}, "unknown argument 'memory_limits'; did you mean 'memory_limit'?"),
        (
            "search",
            {"settings": {"memory_limits": 3}},
            "unknown argument 'memory_limits'; did you mean 'memory_limit'?",
        ),
        ("compare", {"rank": 3}, "unknown argument 'rank'; did you mean 'ranks'?"),
        ("simulate", {"schedul": "zbv"}, "unknown argument 'schedul'; did you mean 'schedule'?"),
        ("simulate", {"strategy": "zbv"}, "unknown argument 'strategy'; did you mean"),
        ("compare", {"schedule": "zbv"}, "unknown argument 'schedule'; did you mean 'schedules'?"),
        ("simulate", {"details": True}, "unknown argument 'details'; did you mean 'detail'?"),
        ("plan", PLAN | {"globalbatch": 8}, "unknown argument 'globalbatch'; did you mean 'global_batch'?"),
        ("review", {"file": "train.sh"}, "unknown argument 'file'; did you mean 'files'?"),
        ("simulate", {"settings": 3}, "settings must be an object"),
        ("simulate", {"settings": {"settings": {}}}, "unknown argument 'settings'"),
        (
            "simulate",
            {"ranks": 2, "settings": {"ranks": 4}},
            "ranks has two values, one of them in settings: set it once",
        ),
        ("simulate", {"schedule": ["zbv", "1f1b"]}, "schedule takes one name or file, not 2; compare takes several"),
        ("simulate", {"detail": "no"}, "detail must be true or false, not 'no'"),
        ("search", {**SMALL, "memory_limit": "0act"}, "memory limit"),
        ("search", {"settings": {"evaluation": 3}}, "unknown argument 'evaluation'; did you mean 'evaluations'?"),
        ("simulate", {"output": ["x.xyz"]}, "unknown suffix of an output"),
        ("plan", {}, "missing: model, cluster, global_batch, sequence"),
        ("review", {}, "a review needs a file"),
        ("review", {"files": ["missing.sh"]}, "missing.sh"),
    ],
)
def test_an_error_is_one_sentence_in_the_words_of_the_tool(tool, call, message):
    answer = answer_of(tool, call, 60)
    assert isinstance(answer, str)
    assert message in answer
    assert "--" not in answer
    assert "\n" not in answer


def test_a_further_option_may_stand_in_settings_or_beside_the_others():
    beside = answered("simulate", {**SMALL, "op_gap": 0.5})
    assert beside == answered("simulate", {**SMALL, "settings": {"op_gap": 0.5}})
    assert beside["makespan"] > answered("simulate", SMALL)["makespan"]


def test_nothing_is_written_unless_output_names_a_file():
    Path("pretrain.sh").write_text(RECIPE)
    for tool, call in (("simulate", SMALL), ("compare", SMALL), ("review", {"files": ["pretrain.sh"]})):
        answered(tool, call)
    assert [path.name for path in Path().iterdir()] == ["pretrain.sh"]


def test_what_is_null_is_not_set():
    assert answered("simulate", {**SMALL, "schedule": None, "chunks": None, "settings": None}) == answered(
        "simulate", SMALL
    )


def test_a_call_without_an_answer_in_time_names_the_limit():
    answer = answer_of("compare", {"ranks": 64, "microbatches": 4096}, 0.1)
    assert answer == "no answer within 0.1 s: try a smaller request, or a longer limit: pipeplan mcp --seconds"


def test_only_the_server_needs_the_package():
    code = "import sys; import pipeplan.extensions.web.mcp.tools; print({*sys.modules} & {'mcp', 'mcp_types'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
