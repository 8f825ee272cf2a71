"""The server of the Model Context Protocol, called by the package's own client."""

import asyncio
import contextlib
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

from pipeplan.extensions.web.mcp.tool_server import GRACE, create_server
from pipeplan.extensions.web.mcp.tools import TOOLS

pytestmark = pytest.mark.usefixtures("empty_folder")

BYTES_PER_TOKEN = 3.6
"""Bytes of a schema that make a token; they are 4.0 with o200k_base."""

SMALL = {"ranks": 2, "microbatches": 4}
LONG = {"ranks": 64, "microbatches": 4096}


def answers(*calls, seconds=60.0):
    """The answers to calls, each a tool and its arguments."""

    async def ask():
        async with mcp.Client(create_server(seconds=seconds)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(ask())


def document(result):
    """The answer in a result, which is one text."""
    (content,) = result.content
    return json.loads(content.text)


def test_the_server_lists_the_tools_in_4000_tokens():
    async def ask():
        async with mcp.Client(create_server(seconds=1)) as client:
            return await client.list_tools()

    listed = asyncio.run(ask())
    assert {tool.name: tool.input_schema for tool in listed.tools} == {
        name: tool.schema for name, tool in TOOLS.items()
    }
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True).encode()) / BYTES_PER_TOKEN < 4_000


def test_an_answer_begins_with_its_headline_and_an_error_is_marked():
    simulated, wrong, unknown = answers(("simulate", SMALL), ("simulate", {"schedule": "zbw"}), ("simulat", {}))
    assert not simulated.is_error
    assert simulated.content[0].text.startswith('{"headline":"')
    assert simulated.structured_content is None  # some clients would pass on both
    assert wrong.is_error
    assert unknown.is_error
    assert wrong.content[0].text == "unknown schedule 'zbw'; did you mean 'zbv'?"
    assert unknown.content[0].text == "unknown tool 'simulat'; did you mean 'simulate'?"


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
        async with mcp.Client(create_server(seconds=60)) as client:
            await client.call_tool("simulate", SMALL)
            (process,) = children() - others
            idle = worked(process)
            call = asyncio.create_task(client.call_tool("compare", LONG))
            while worked(process) < idle + 10:
                await asyncio.sleep(0.05)
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            return await asyncio.to_thread(ended, process)

    assert asyncio.run(ask())


def worked(process):
    """The ticks that a process has computed."""
    return sum(map(int, Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[11:13]))


def ended(process):
    """Wait up to 10 seconds for a process to end; return whether it has."""
    deadline = time.monotonic() + 10
    while running(Path("/proc", process, "stat")) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not running(Path("/proc", process, "stat"))


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["taken", "ignored"])
def interrupts(request):
    """How the server takes interrupts, which a background job of a shell ignores."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interrupts")
def test_a_search_that_reaches_the_limit_answers_with_its_best():
    call = {**SMALL, "ranks": 16, "microbatches": 64, "placement": "v", "memory_limit": "5act", "seconds": 500}
    before = time.monotonic()
    searched, compared = answers(("search", call), ("compare", LONG), seconds=4)
    assert document(searched)["interrupted"] is True
    assert document(searched)["makespan"] > 0
    assert compared.content[0].text.startswith("no answer within 4 s")
    assert time.monotonic() - before < 30 + GRACE  # the search alone would take 500 s


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_command_serves_on_its_standard_streams(mode):
    """As a client starts it, with the protocol of today and that of before; a module in the folder changes nothing."""
    Path("costs.yaml").write_text("forward_times: 3\n")
    Path("pickle.py").write_text("raise SystemExit\n")
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    server = mcp.StdioServerParameters(command=sys.executable, args=["-P", "-m", "pipeplan", "mcp"], env=environment)

    async def ask():
        async with mcp.Client(server, mode=mode) as client:
            return await client.call_tool("simulate", {"config": "costs.yaml", **SMALL})

    assert document(asyncio.run(ask()))["makespan"] == 45.0


def test_a_client_calls_all_six_tools():
    Path("train.sh").write_text("torchrun pretrain_gpt.py --num-layers 46 --pipeline-model-parallel-size 4 --bf16\n")
    plan = {"model": "llama3-8b", "cluster": "h100-sxm:8", "global_batch": 8, "sequence": 8192, "seconds": 1}
    calls: dict[str, Any] = {
        "compare": {"schedules": ["1f1b", "zbv"], **SMALL},
        "simulate": SMALL,
        "explain": SMALL,
        "search": {**SMALL, "placement": "v", "memory_limit": "2act", "evaluations": 50, "output": ["best.csv"]},
        "plan": plan | {"fix": {"tp": 1}, "workers": 1},
        "review": {"files": ["train.sh"], "trainer": "megatron-lm"},
    }
    assert [*calls] == [*TOOLS]
    results = dict(zip(calls, answers(*calls.items()), strict=True))
    assert not any(result.is_error for result in results.values()), results
    assert all(next(iter(document(result))) == "headline" for result in results.values())
    assert document(results["search"])["written"] == ["best.csv"]
    assert Path("best.csv").exists()


def test_a_search_reports_its_progress_to_a_client_that_asks():
    call = {"ranks": 16, "microbatches": 64, "placement": "v", "memory_limit": "5act", "seconds": 4}
    told = []

    async def tell(share, total, message):
        told.append((share, total, message))

    async def ask():
        async with mcp.Client(create_server(seconds=60)) as client:
            return await client.call_tool("search", call, progress_callback=tell)

    assert not asyncio.run(ask()).is_error
    assert told
    assert [share for share, _, _ in told] == sorted({share for share, _, _ in told})
    assert all(0 < share <= total == 1 for share, total, _ in told)
    assert all("best " in message and "bound " in message for _, _, message in told)


def test_without_the_package_the_command_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "pipeplan.extensions.web.mcp.tool_server")
    assert run("mcp") == (
        2,
        "",
        "pipeplan: this needs the package 'mcp': pip install '.[mcp]' in a checkout of pipeplan\n",
    )


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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_its_calls(number):
    """Although a thread waits for standard input, which the client keeps open."""
    command = [sys.executable, "-m", "pipeplan", "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        call(server, "compare", LONG)
        while not (started := children(server.pid)):
            time.sleep(0.05)
        server.send_signal(number)
        assert server.wait(20) == 130
    assert all(ended(process) for process in started)
