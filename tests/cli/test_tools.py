"""Commands as tools: every argument is in a schema, and the words of a call mean what the call says."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pipeplan.cli.app import _COMMANDS, command_line
from pipeplan.cli.tools import FIELDS, PICTURE, parts_of, tools, words_of
from pipeplan.costs import SETTINGS
from pipeplan.errors import InputError, UnknownNameError

TOOLS = tools()
APP = command_line("all")


def parsed(tool, call, folder=Path("unused")):
    """What the command line makes of a call: its arguments by name."""
    words = words_of(TOOLS[tool], call, folder)
    _, bound, ignored = APP.parse_args(words, exit_on_error=False, print_error=False)
    assert not ignored
    return {**bound.kwargs, "": bound.args}


def test_every_command_that_ends_is_a_tool():
    assert list(TOOLS) == [name for name in _COMMANDS if name not in {"serve", "mcp", "warm"}]


def test_a_tool_has_the_arguments_of_its_command_and_a_valid_schema():
    for name in TOOLS:
        tool = TOOLS[name]
        command = {part.field_info.name for part in APP[name].assemble_argument_collection() if part.show}
        assert {argument.name for argument in tool.arguments} == command - {"json", "debug", "no_visualization"}, name
        assert (FIELDS in tool.own) == ("json" in command), name
        jsonschema.Draft202012Validator.check_schema(tool.schema)
        assert all(part["description"] for part in tool.schema["properties"].values()), name
        assert set(tool.schema["required"]) <= set(tool.schema["properties"]), name


def test_a_schema_says_what_a_setting_declares():
    properties = TOOLS["simulate"].schema["properties"]
    assert SETTINGS.keys() <= properties.keys()
    assert properties["ranks"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 65536,
        "description": SETTINGS["ranks"].full_help,
    }
    assert properties["communication"]["enum"] == list(SETTINGS["communication"].choices)
    assert properties["forward_times"]["anyOf"][0] == {"type": "number", "exclusiveMinimum": 0}
    assert {"type": "string"} in properties["activation_bytes"]["anyOf"]
    assert TOOLS["plan"].schema["required"] == ["model", "cluster", "global_batch", "sequence"]
    assert TOOLS["diff"].schema["required"] == ["planned", "measured"]
    assert {name for name, tool in TOOLS.items() if PICTURE in tool.own} >= {"simulate", "compare", "plan", "pareto"}


def test_rare_settings_are_listed_once_because_an_agent_reads_every_schema():
    listed = [name for name in TOOLS if "recompute_bytes" in TOOLS[name].schema["properties"]]
    assert listed == ["simulate"]
    assert parsed("search", {"recompute_bytes": 2})["recompute_bytes"] == (2,)
    assert "tool `simulate` lists" in TOOLS["search"].description
    assert "recompute_bytes" in tools(["search", "compare"])["compare"].schema["properties"]
    assert "with `memory_limit` the memory of every rank" in TOOLS["check"].description
    assert sum(len(json.dumps(tool.schema)) + len(tool.description) for tool in TOOLS.values()) < 80_000


CALLS: dict[str, dict[str, Any]] = {
    "simulate": {
        "": ({"name": "zbv"}, ("zbv",)),
        "ranks": (4.0, 4),
        "forward_times": ([1, 2.5], (1.0, 2.5)),
        "backward_times": (2.5, (2.5,)),
        "pad_times": (True, True),
        "communication": ("blocking", "blocking"),
        "p2p_bytes": ("64MiB", 64 * 2**20),
        "activation_bytes": (["1GiB", 5], (float(2**30), 5.0)),
        "memory_limit": ([12, "8act"], ("12", "8act")),
        "recompute": ([0, 2], "0,2"),
        "layers_per_stage": ([3, 4], (3, 4)),
        "time_unit": ("-=, x", "-=, x"),
        "config": ("a,b c.yaml", Path("a,b c.yaml")),
        "output": (["a b.csv", "c.svg"], (Path("a b.csv"), Path("c.svg"))),
    },
    "compare": {"": ({"names": ["-x.csv", "a,b=.csv"]}, ("-x.csv", "a,b=.csv")), "leads": (True, True)},
    "plan": {
        "model": ("llama3-8b", "llama3-8b"),
        "cluster": ("h100-sxm:8x2", "h100-sxm:8x2"),
        "global_batch": (64, 64),
        "sequence": (8192, 8192),
        "fix": ({"tp": 8, "pp": [4, 8]}, ("tp=8", "pp=4,8")),
        "allow": (["offload", "precision"], ("offload", "precision")),
        "memory_limit": (5e9, "5000000000"),
        "tokens": (1.5e13, 1.5e13),
    },
    "search": {"start": (["zbv", "a.csv"], ("zbv", "a.csv")), "placement": ("0,1,1,0", "0,1,1,0")},
    "export": {"to": ("torch-csv", "torch-csv"), "output": ("x.csv", Path("x.csv"))},
}


@pytest.mark.parametrize("tool", CALLS)
def test_a_call_reaches_the_command_as_it_is(tool):
    call = {name: value for name, (value, _) in CALLS[tool].items() if name} | CALLS[tool].get("", ({},))[0]
    assert parsed(tool, call) == {"": ()} | {name: expected for name, (_, expected) in CALLS[tool].items()}


def test_what_is_null_or_false_is_not_set():
    assert words_of(TOOLS["simulate"], {"name": None, "ranks": None, "pad_times": False}, Path()) == ["simulate"]


def test_an_object_is_the_content_of_a_file(tmp_path):
    text = "0F0,0B0\n1F0,1B0\n"
    words = words_of(TOOLS["check"], {"file": {"name": "mine.csv", "text": text}, "config": {"p2p_time": 2}}, tmp_path)
    assert words == ["check", f"--config={tmp_path / 'config.json'}", "--", str(tmp_path / "mine.csv")]
    assert (tmp_path / "mine.csv").read_text() == text
    assert json.loads((tmp_path / "config.json").read_text()) == {"p2p_time": 2}


@pytest.mark.parametrize("name", ["../x.csv", "/x.csv", "", ".", "..", "a\nb"])
def test_a_file_of_a_call_stays_in_its_folder(name, tmp_path):
    with pytest.raises(InputError, match="file's name has no folder"):
        words_of(TOOLS["check"], {"file": {"name": name, "text": ""}}, tmp_path)


@pytest.mark.parametrize(
    ("tool", "call", "message"),
    [
        ("simulate", {"memory_limits": 3}, "unknown argument 'memory_limits'; did you mean 'memory_limit'"),
        ("list", {"picture": True}, "unknown argument 'picture'"),
        ("plan", {"model": "llama3-8b"}, "missing: cluster"),
        ("simulate", {"forward_times": [[1]]}, "forward_times: a list within a list"),
        ("simulate", {"name": "a\0b"}, "null character"),
        ("compare", {"chunks": [2, 4]}, "chunks takes one value, not a list of 2"),
        ("compare", {"names": [{"name": "a.csv", "text": ""}] * 2}, "two files have the name a.csv"),
    ],
)
def test_a_call_that_cannot_be_is_refused_in_a_sentence(tool, call, message, tmp_path):
    with pytest.raises(InputError, match=message):
        words_of(TOOLS[tool], call, tmp_path)


DOCUMENT = {"a": 1, "b": {"c": 2, "d": 3}, "rows": [{"n": 1, "m": {"x": 5}}, {"n": 2, "m": None}], "none": None}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], DOCUMENT),
        (["a", "b.d"], {"a": 1, "b": {"d": 3}}),
        (["b", "b.c"], {"b": {"c": 2, "d": 3}}),
        (["rows.n", "rows.m.x"], {"rows": [{"n": 1, "m": {"x": 5}}, {"n": 2, "m": None}]}),
        (["none.x"], {"none": None}),
    ],
)
def test_parts_of_an_answer(paths, expected):
    assert parts_of(DOCUMENT, paths) == expected


@pytest.mark.parametrize("path", ["c", "b.e", "rows.0", "rows.m.y", "a.b", ""])
def test_a_part_that_is_not_there_is_named(path):
    with pytest.raises(UnknownNameError, match="unknown field"):
        parts_of(DOCUMENT, ["a", path])


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("bb.c", "known: a, b, none, rows"),
        ("b.cc", "did you mean 'b.c'?"),
        ("a.y", "did you mean 'a'?"),
        ("m.x", "known: rows.m"),
        ("b.x", "known: rows.m.x"),
    ],
)
def test_the_error_of_a_part_says_where_it_is(path, remedy):
    with pytest.raises(UnknownNameError, match=re.escape(f"unknown field '{path}'; {remedy}")):
        parts_of(DOCUMENT, [path])


def test_an_unknown_tool_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'simulate'"):
        tools(["simulat"])


def test_only_the_server_needs_the_package():
    code = "import sys; from pipeplan.cli.tools import tools; tools(); print({*sys.modules} & {'mcp', 'mcp_types'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
