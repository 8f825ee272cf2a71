"""A plan on several processes, killed and resumed: the plan that nobody disturbed."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from tests.foundation.sweeps.waiting import WAIT

QUESTION: dict[str, Any] = {
    "global_batch": 16,
    "sequence": 8192,
    "fix": ["pp=4", "tp=2", "schedule=interleaved-1f1b"],
    "seconds": 120,
}
COMMAND = [
    *(sys.executable, "-m", "pipeplan", "plan", "--model", "llama3-8b", "--cluster", "h100-sxm:8x1"),
    *("--global-batch", "16", "--sequence", "8192", "--seconds", "120", "--json"),
    *(word for fixed in QUESTION["fix"] for word in ("--fix", fixed)),
]


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    found: dict[str, Any] = pipeplan.plan("llama3-8b", "h100-sxm:8x1", **QUESTION, workers=1).to_dict()
    return found


def require_same(found: dict[str, Any], undisturbed: dict[str, Any]) -> None:
    """Where the budget is more than enough, nothing depends on who was faster."""
    assert found["complete"]
    for name in ("best", "runners_up", "front", "sensitivity"):
        assert found[name] == json.loads(json.dumps(undisturbed[name])), name
    assert found["counts"]["estimated"] == undisturbed["counts"]["estimated"]


def killed(options: list[str], store: Path) -> None:
    """Begin to plan, and kill it once some estimates are stored."""
    process = subprocess.Popen(
        [*COMMAND, *options, "--store", str(store)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    journal = store.with_name(f"{store.name}-wal")
    end = time.monotonic() + WAIT
    while (
        process.poll() is None and time.monotonic() < end and not (journal.exists() and journal.stat().st_size > 60_000)
    ):
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def stored(store: Path) -> set[str]:
    with closing(sqlite3.connect(store)) as file:
        return {key for (key,) in file.execute("SELECT key FROM finished").fetchall()}


def test_a_plan_on_two_processes_that_is_killed_and_resumed(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    store = tmp_path / "plan.db"
    killed(["--workers", "2"], store)
    before = stored(store)
    resumed = pipeplan.plan("llama3-8b", "h100-sxm:8x1", **QUESTION, workers=2, store=store)
    require_same(json.loads(json.dumps(resumed.to_dict())), undisturbed)
    assert before
    assert before < stored(store)
