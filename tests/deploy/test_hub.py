"""The page for a model hub: its function answers, and it starts."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gradio") is None,
    reason="the hub's page needs a large package: pip install 'gradio>=5,<7'",
)

APP = Path(__file__).parents[2] / "deploy" / "app.py"


@pytest.fixture(scope="module")
def app():
    spec = importlib.util.spec_from_file_location("deploy_app", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_answers_with_the_table_and_the_timeline(app):
    import pipeplan

    rows, frame, said = app.answer(["1f1b", "zbv"], 4, 8, 1, 1, 1, 0.5)
    assert [len(row) for row in rows] == [len(app.HEADINGS)] * 2
    expected = {
        name: pipeplan.simulate(name, ranks=4, microbatches=8, p2p_time=0.5).makespan for name in ("1f1b", "zbv")
    }
    assert {row[0]: row[2] for row in rows} == pytest.approx(expected)
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert re.search(r"srcdoc=\"[^\"<>]+\"", frame)
    assert said == ""


def test_what_cannot_be_is_told(app):
    for asked in (
        (["dualpipe"], 3, 8, 1, 1, 1, 0),
        ([], 64, 256, 1, 1, 1, 0),
        (["1f1b"], 4, 8, float("nan"), 1, 1, 0),
    ):
        rows, frame, said = app.answer(*asked)
        assert (rows, frame) == ([], "")
        assert said.startswith("**")


def test_it_starts():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = os.environ | {
        "GRADIO_SERVER_PORT": port,
        "GRADIO_ANALYTICS_ENABLED": "False",
        "PYTHONUNBUFFERED": "1",
    }
    with subprocess.Popen([sys.executable, APP], stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            address = next(found for line in server.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))[0]
            assert address == f"http://127.0.0.1:{port}"
            with urllib.request.urlopen(address, timeout=60) as page:
                assert b"pipeplan" in page.read()
        finally:
            server.terminate()
            server.wait(timeout=30)
