"""The server of the Model Context Protocol, asked by the package's own client."""

import asyncio
import base64
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mcp
import pytest

from pipeplan.cli import main, tool_calls
from pipeplan.cli.tool_server import create_server
from pipeplan.cli.tools import PICTURE, tools
from pipeplan.errors import InputError

TOOLS = tools()
SMALL = {"ranks": 2, "microbatches": 4}


@pytest.fixture
def in_process(monkeypatch):
    """Run commands here instead of in processes of their own, which take half a second to start."""

    async def ran(words, _):
        output, messages = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(messages):
            code = main(words)
        return tool_calls.EndedProcess(False, code, output.getvalue(), messages.getvalue())

    monkeypatch.setattr(tool_calls, "_ran", ran)


def answers(*calls, seconds=60.0):
    """The answers to calls, each a tool and its arguments."""

    async def ask():
        async with mcp.Client(create_server(TOOLS, seconds=seconds)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(ask())


def printed(capsys, line):
    main(line.split())
    return json.loads(capsys.readouterr().out)


def test_it_lists_the_tools_with_their_schemas():
    async def ask():
        async with mcp.Client(create_server(TOOLS, seconds=1)) as client:
            return client.instructions, (await client.list_tools()).tools

    instructions, listed = asyncio.run(ask())
    assert {tool.name: tool.input_schema for tool in listed} == {name: tool.schema for name, tool in TOOLS.items()}
    assert all(tool.description for tool in listed)
    named = {name for name in TOOLS if name in instructions}
    assert {"plan", "compare", "simulate", "explain", "search", "check"} <= named


@pytest.mark.usefixtures("in_process")
def test_an_answer_is_the_json_of_the_command(capsys):
    simulated, compared = answers(
        ("simulate", {"name": "zb-h1", **SMALL, "memory_limit": "3act"}),
        ("compare", {"names": ["1f1b", "zbv"], **SMALL, "fields": ["results.schedule", "results.makespan"]}),
    )
    assert simulated.structured_content == printed(capsys, "simulate zb-h1 -p 2 -m 4 --memory-limit 3act --json")
    assert json.loads(simulated.content[0].text) == simulated.structured_content
    assert not simulated.is_error
    whole = printed(capsys, "compare 1f1b zbv -p 2 -m 4 --json")
    assert compared.structured_content == {
        "results": [{name: result[name] for name in ("schedule", "makespan")} for result in whole["results"]]
    }


@pytest.mark.usefixtures("in_process")
def test_a_negative_answer_is_an_answer():
    (checked,) = answers(("check", {"file": {"name": "mine.csv", "text": "0F0,0B0\n1B0,1F0\n"}}))
    assert not checked.is_error
    assert checked.structured_content["valid"] is False


@pytest.mark.usefixtures("in_process")
def test_a_picture_is_an_image_and_no_file():
    (answer,) = answers(("simulate", {"name": "1f1b", **SMALL, "picture": True}))
    picture = answer.content[-1]
    assert (picture.type, picture.mime_type) == ("image", "image/png")
    assert base64.b64decode(picture.data).startswith(b"\x89PNG")
    assert [content.type for content in answer.content] == ["text", "image"]
    assert os.listdir() == []


PICTURES: dict[str, dict[str, Any]] = {
    "simulate": SMALL,
    "compare": SMALL,
    "explain": SMALL,
    "search": {**SMALL, "evaluations": 50},
    "pareto": {**SMALL, "evaluations": 50, "points": 2},
    "diff": {"planned": "1f1b", "measured": "run.json", **SMALL},
    "plan": {
        "model": "llama3-8b",
        "cluster": "h100-sxm:8",
        "global_batch": 8,
        "sequence": 8192,
        "seconds": 1,
        "workers": 1,
    },
}


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("tool", [name for name, tool in TOOLS.items() if PICTURE in tool.own and name != "run"])
def test_every_tool_that_offers_a_picture_has_one(tool):
    assert main(["simulate", "1f1b", "-p", "2", "-m", "4", "--no-visualization", "-o", "run.json"]) == 0
    (answer,) = answers((tool, {**PICTURES[tool], "picture": True}))
    assert answer.content[-1].type == "image", answer.content


@pytest.mark.usefixtures("in_process")
def test_files_are_in_the_working_directory_and_named():
    written, read, text = answers(
        ("simulate", {"name": "zbv", **SMALL, "output": ["zbv.csv"]}),
        ("check", {"file": "zbv.csv"}),
        ("export", {"name": "zbv.csv", "to": "torch-csv"}),
    )
    assert written.content[1].text == "wrote zbv.csv"
    assert read.structured_content["valid"] is True
    assert text.structured_content is None
    assert text.content[0].text.replace(" ", "") == Path("zbv.csv").read_text().replace(" ", "")


@pytest.mark.usefixtures("in_process")
def test_an_input_is_never_overwritten():
    Path("mine.csv").write_text("0F0,0B0\n1F0,1B0\n")
    answer, same = answers(
        ("simulate", {"name": "mine.csv", "output": ["mine.csv"]}),
        ("export", {"name": "mine.csv", "output": "./mine.csv"}),
    )
    assert answer.is_error
    assert same.is_error
    assert "mine.csv" in answer.content[0].text
    assert Path("mine.csv").read_text() == "0F0,0B0\n1F0,1B0\n"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("simulate", {"name": "zbw"}, "unknown schedule 'zbw'; did you mean 'zbv'?"),
        ("simulate", {"ranks": "four"}, "ranks: invalid integer 'four'"),
        ("simulate", {"forward_times": [1, 2]}, "2 values for 4 stages; set one number, or 4 values"),
        ("search", {**SMALL, "memory_limit": "0act"}, "memory limit"),
        ("simulate", {**SMALL, "fields": ["makespn"]}, "unknown field 'makespn'; did you mean 'makespan'?"),
        ("simulat", {}, "unknown tool 'simulat'; did you mean 'simulate'?"),
        ("check", {"file": {"name": "mine.csv", "text": "0X0"}}, "mine.csv"),
        ("plan", {}, "missing: model"),
    ],
)
def test_an_error_is_one_sentence_in_the_words_of_the_tool(tool, arguments, message):
    (answer,) = answers((tool, arguments))
    assert answer.is_error
    assert answer.structured_content is None
    (content,) = answer.content
    assert message in content.text
    assert "--" not in content.text
    assert "\n" not in content.text
    assert "/tmp" not in content.text


def test_a_long_answer_is_refused_with_a_remedy(in_process, monkeypatch):
    monkeypatch.setattr(tool_calls, "LARGEST", 100)
    whole, part = answers(("simulate", SMALL), ("simulate", {**SMALL, "fields": ["makespan"]}))
    assert "more than 100: select parts of it with fields" in whole.content[0].text
    assert part.structured_content == {"makespan": 15.0}


def test_a_call_ends_at_its_time_limit():
    """The command is a process of its own, and ends with the call."""
    others, before = children(), time.monotonic()
    (answer,) = answers(("compare", {"ranks": 64, "microbatches": 4096}), seconds=0.1)
    assert time.monotonic() - before < tool_calls.GRACE
    assert answer.content[0].text.startswith("no answer within 0.1 s")
    assert children() <= others


def children(parent=None):
    """The processes that a process has started and that still run; this one's may be those of other tests, too."""
    own = str(parent or os.getpid())
    return {path.parent.name for path in Path("/proc").glob("[0-9]*/stat") if running(path)[1:] == [own]}


def running(stat):
    """The state and the parent of a process that runs, as its file in /proc has them; nothing for one that has ended."""
    with contextlib.suppress(OSError):
        state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        return [state, parent] if state != "Z" else []
    return []


def test_a_cancelled_call_ends_its_process():
    async def ask():
        others = children()
        call = asyncio.create_task(tool_calls.called(TOOLS["compare"], {"ranks": 64, "microbatches": 4096}, seconds=60))
        while children() <= others:
            await asyncio.sleep(0.05)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        deadline = time.monotonic() + 10
        while not children() <= others and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        return children() <= others

    assert asyncio.run(ask())


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["taken", "ignored"])
def interrupts(request):
    """How the server takes interrupts, which a background job of a shell ignores."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interrupts")
def test_a_search_that_reaches_the_limit_answers_with_its_best():
    call = {
        "ranks": 16,
        "microbatches": 64,
        "placement": "v",
        "memory_limit": "5act",
        "slow_rank": 0.2,
        "seconds": 500,
        "workers": 1,
    }
    (answer,) = answers(("search", call), seconds=4)
    assert answer.structured_content["interrupted"] is True
    assert answer.structured_content["makespan"] > 0
    assert answer.content[1].text == "ended after 4 s"


def test_arguments_that_no_process_takes_are_refused():
    long = asyncio.run(_failed(TOOLS["simulate"], {"name": "x" * 3_000_000}))
    assert "put long ones into a file" in long
    assert "cannot be passed" in asyncio.run(_failed(TOOLS["simulate"], {"name": "\ud800"}))


async def _failed(tool, call):
    with pytest.raises(InputError) as error:
        await tool_calls.called(tool, call, seconds=60)
    return str(error.value)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_command_serves_on_its_standard_streams(mode):
    """As a client starts it, with the protocol of today and that of before."""
    Path("costs.yaml").write_text("forward_times: 3\n")
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "pipeplan", "mcp", "--tools", "simulate"], env=environment
    )

    async def ask():
        async with mcp.Client(server, mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            arguments = {"config": "costs.yaml", **SMALL, "fields": ["makespan"]}
            return names, await client.call_tool("simulate", arguments)

    names, answer = asyncio.run(ask())
    assert names == ["simulate"]
    assert answer.structured_content == {"makespan": 45.0}


def test_without_the_package_the_command_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "pipeplan.cli.tool_server")
    assert run("mcp") == (
        2,
        "",
        "pipeplan: this needs the package 'mcp': pip install '.[mcp]' in a checkout of pipeplan\n",
    )


def test_an_unknown_tool_is_refused_at_the_start(run):
    code, _, message = run("mcp --tools simulat")
    assert code == 2
    assert "unknown tool 'simulat'; did you mean 'simulate'?" in message


def call(server, name, arguments):
    """Start a session with a server on pipes, and call a tool of it without waiting for the answer."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

    def send(message):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()

    send({"id": 1, "method": "initialize", "params": about})
    assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "pipeplan"
    send({"method": "notifications/initialized"})
    send({"id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}})


@pytest.mark.slow
def test_a_signal_ends_the_server_and_its_calls():
    """Although a thread waits for standard input, which the client keeps open."""
    command = [sys.executable, "-m", "pipeplan", "mcp", "--tools", "compare"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        call(server, "compare", {"ranks": 64, "microbatches": 4096})
        while not (started := children(server.pid)):
            time.sleep(0.05)
        server.terminate()
        assert server.wait(20) == 143
    assert not any(running(Path("/proc", number, "stat")) for number in started)


def test_a_signal_while_a_call_starts_its_process_ends_the_server():
    """Raised there, it would end a task of the server, whose others wait for the client."""
    script = """
import os, signal, sys, tempfile
from pipeplan.cli import tool_calls
from pipeplan.cli.process import main

class InTheMiddle(tempfile.TemporaryDirectory):
    def __enter__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return super().__enter__()

tool_calls.TemporaryDirectory = InTheMiddle
sys.exit(main(["mcp", "--tools", "list"]))
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        call(server, "list", {})
        try:
            assert server.wait(20) == 143
        finally:
            server.kill()
