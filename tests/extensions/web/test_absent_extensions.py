"""The app shows what is there: without an extension it starts, answers, and has neither its page nor its routes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pipeplan
from pipeplan.foundation.extensions import NAMES, extensions

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")
pytest.importorskip("httpx", reason="the web app is tested with the package 'httpx'")

SHOWN = {
    "search": {"/api/search", "/api/front"},
    "planning": {"/plan", "/api/plan/settings", "/api/plan", "/api/plan/chosen"},
    "review": {"/review", "/api/review/settings", "/api/review"},
}
"""Pages and routes of each extension."""

TOOLS = {"search": {"search"}, "planning": {"plan"}, "review": {"review"}}
"""An agent's tools of each extension."""

APP = """
import json, re
from fastapi.testclient import TestClient
from pipeplan.extensions.web.app import create_api
from pipeplan.extensions.web.workers import Workers

class InProcess(Workers):
    async def ask(self, work, argument):
        return work(argument)

client = TestClient(create_api(InProcess()))
page = client.get("/").text
compared = client.post("/api/compare", json={"settings": {"ranks": 2, "microbatches": 4}, "schedules": ["zbv"]})
answers = {path: client.get(path).status_code for path in ("/plan", "/review")}
try:
    from pipeplan.extensions.web.mcp.tools import TOOLS
except ImportError:
    TOOLS = {}
print(json.dumps({
    "links": re.findall('<a href="(/[^"]*)"', page),
    "extensions": re.search('data-extensions="([^"]*)"', page)[1].split(),
    "routes": list(client.get("/api/openapi.json").json()["paths"]),
    "answers": answers,
    "fields": len(client.get("/api/settings").json()["fields"]),
    "presets": len(client.get("/api/presets").json()),
    "schedules": [result["schedule"] for result in compared.json()["results"]],
    "tools": list(TOOLS),
}))
"""


@pytest.mark.parametrize("absent", ["search", "planning", "review", "training"])
def test_the_app_shows_the_extensions_that_are_installed(tmp_path, absent):
    gone = {absent} | {present.name for present in extensions() if absent in present.needs}
    shutil.copytree(
        Path(pipeplan.__file__).parent, tmp_path / "pipeplan",
        ignore=lambda folder, names: {"__pycache__"} | (gone if Path(folder).name == "extensions" else set()),
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", APP], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    left = SHOWN.keys() - gone
    pages = {path for name in left for path in SHOWN[name] if not path.startswith("/api")}
    routes = {path for name in left for path in SHOWN[name] if path.startswith("/api")}
    every_route = {path for paths in SHOWN.values() for path in paths}
    assert set(shown["links"]) == {"/", "/api/openapi.json", *pages}
    assert shown["answers"] == {path: 200 if path in pages else 404 for path in ("/plan", "/review")}
    assert set(shown["routes"]) & every_route == routes
    assert shown["extensions"] == [name for name in NAMES if name not in gone]
    assert shown["fields"] > 0
    assert shown["presets"] > 0
    assert shown["schedules"] == ["zbv"]
    assert set(shown["tools"]) == {"compare", "simulate", "explain"}.union(*(TOOLS[name] for name in left))
