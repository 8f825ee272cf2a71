"""Tools of agents: their schemas, and the answer of each to a call."""

import json
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
        assert all(part["description"] for part in tool.schema["properties"].values()), name
        assert {"settings", "output", "details"} <= set(tool.schema["properties"]), name
    assert TOOLS["plan"].schema["required"] == ["model", "cluster", "global_batch", "sequence"]
    assert TOOLS["compare"].schema["required"] == []
    ranks = TOOLS["simulate"].schema["properties"]["ranks"]
    assert ranks == {"type": "integer", "description": SETTINGS["ranks"].full_help}
    assert sum(len(json.dumps(tool.schema)) + len(tool.about) for tool in TOOLS.values()) < 4 * 4_000


def test_every_setting_is_listed_or_named_among_the_others():
    schema = TOOLS["simulate"].schema["properties"]
    others = schema["settings"]["description"].removeprefix("Other options by name: ").removesuffix(".").split(", ")
    assert {*schema, *others} >= SETTINGS.keys()
    assert "evaluations" in TOOLS["search"].schema["properties"]["settings"]["description"]


@pytest.mark.parametrize(
    ("tool", "call", "line", "headline"),
    [
        (
            "simulate",
            {"schedule": "zb-h1", "memory_limit": "3act"},
            "zb-h1 --memory-limit 3act",
            "Result zb-h1: makespan",
        ),
        ("compare", {"schedules": ["1f1b", "zbv"]}, "1f1b zbv", "zbv is the fastest"),
        ("explain", {"settings": {"p2p_time": 0.5}}, "--p2p-time 0.5", "1f1b: "),
    ],
)
def test_the_details_are_the_json_of_the_command(tool, call, line, headline, capsys):
    whole = printed(capsys, f"{tool} {line} -p 2 -m 4 --json")
    answer = answered(tool, {**SMALL, **call, "details": True})
    assert answer["headline"].startswith(headline)
    assert answer == {"headline": answer["headline"], **whole}
    short = answered(tool, {**SMALL, **call})
    assert next(iter(short)) == "headline"
    assert len(json.dumps(short)) < 0.7 * len(json.dumps(answer))
    assert short["headline"] == answer["headline"]


def test_a_short_answer_has_the_largest_value_of_all_ranks():
    result = pipeplan.simulate("1f1b", ranks=4, microbatches=8)
    short = answered("simulate", {"ranks": 4, "microbatches": 8})
    assert short["peak_activation"] == max(result.peak_activation) == 4
    assert short["makespan"] == result.makespan
    assert not any(isinstance(part, list) for name, part in short.items() if name != "notes")


def test_a_search_a_plan_and_a_review_answer():
    found = answered("search", {**SMALL, "memory_limit": "2act", "settings": {"evaluations": 50}})
    assert found["makespan"] >= found["lower_bound"]
    plan = answered("plan", PLAN | {"fix": {"tp": 1}, "settings": {"workers": 1}})
    assert plan["best"]["step_time_s"] > 0
    assert f"{plan['best']['peak_memory_gib']:.1f} of " in plan["headline"]
    review = answered("review", {"files": [ARGUMENTS], "trainer": "megatron-lm"})
    assert [finding["rule"] for finding in review["findings"]] == ["layers-per-rank"]
    assert review["headline"] == "Review: 1 error, 0 warnings"


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
        ("simulate", {"memory_limits": 3}, "unknown setting 'memory_limits'; did you mean 'memory_limit'?"),
        (
            "simulate",
            {"settings": {"memory_limits": 3}},
            "unknown setting 'memory_limits'; did you mean 'memory_limit'?",
        ),
        ("simulate", {"settings": 3}, "settings must be an object"),
        ("search", {**SMALL, "memory_limit": "0act"}, "memory limit"),
        ("search", {"settings": {"evaluation": 3}}, "unknown option 'evaluation'; did you mean 'evaluations'?"),
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
