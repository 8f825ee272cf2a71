"""``pipeplan warm``: what it compiles is all there is to compile, and later processes find it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numba
import numpy as np
import pytest

from pipeplan.answers import warming
from pipeplan.foundation.kernels import Kernel

ALL_COMPILED = """
import gc, shutil, sys
from pathlib import Path
from pipeplan.foundation import numba_internals
from pipeplan.cli import main
from pipeplan.foundation.kernels import Kernel

load = numba_internals._Files.load

def load_or_copy(files, key):
    path = files._path(key)
    ordinary = Path(sys.modules[files._module].__file__).parent / "__pycache__" / path.name
    if ordinary.exists():
        shutil.copy(ordinary, path)
    return load(files, key)

numba_internals._Files.load = load_or_copy
code = main(["warm", "--json"])
waiting = [kernel.function.__name__ for kernel in gc.get_objects() if isinstance(kernel, Kernel) and not kernel.is_compiled]
sys.exit(f"not compiled: {waiting}" if waiting else code)
"""
"""Warms an empty folder, and copies what the package's own folder has: its names tell code, types and processor."""

SEARCHED = """
from pipeplan.cli import main
from pipeplan.foundation.kernels import compiled_at_once

search = "search -p 6 -m 18 --json --workers 1 --evaluations 500"
with compiled_at_once():
    for command in (
        f"{search} --memory-limit 4act",
        f"{search} --decide recompute,offload -c offload.yaml --memory-limit 3act",
        "compare -p 4 -m 8 --json",
    ):
        assert main(command.split()) == 0
"""
"""Needs every kernel that it passes through, as long searches and large comparisons do."""


def count_up(numbers):
    for index in range(len(numbers)):
        numbers[index] += 1


@pytest.fixture
def _one_job(monkeypatch, tmp_path):
    def job() -> None:
        # A copy: what this process has compiled already is not stored again.
        Kernel(FunctionType(count_up.__code__, count_up.__globals__))((), (np.zeros(2, np.int64),), work=1)

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(warming, "jobs", lambda: (("one kernel", job),))


@pytest.mark.usefixtures("_one_job")
def test_it_tells_where_the_machine_code_is(run, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CPU_NAME", "generic")
    code, out, _ = run("warm --json")
    record = json.loads(out)
    assert record["cpu"] == "generic"
    assert (code, record["kernels"], record["warnings"]) == (0, 1, [])
    assert Path(record["folder"]).is_relative_to(tmp_path / "kernels")
    assert [path.suffix for path in Path(record["folder"]).iterdir()] == [".nbc"]
    code, out, _ = run("warm")
    assert code == 0
    assert "1, compiled or found in" in out
    assert "generic" in out


@pytest.mark.usefixtures("_one_job")
def test_where_nothing_can_be_stored_the_answer_is_no(run, monkeypatch):
    def full() -> None:
        logging.getLogger("pipeplan.foundation.kernels").warning("compiled kernels cannot be stored (no space left)")

    jobs = (*warming.jobs(), ("a full disk", full))
    monkeypatch.setattr(warming, "jobs", lambda: jobs)
    code, out, err = run("warm --json")
    assert code == 1
    assert json.loads(out)["warnings"] == ["compiled kernels cannot be stored (no space left)"]
    assert "warning: compiled kernels cannot be stored" in err
    fewer = warming.jobs()[1:]
    monkeypatch.setattr(warming, "jobs", lambda: fewer)
    code, out, _ = run("warm")
    assert code == 1
    assert "none: nothing is stored" in out


@pytest.mark.slow
def test_every_kernel_is_compiled_and_no_later_process_compiles(tmp_path):
    folder = tmp_path / "kernels"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}

    def ran(*words: str) -> str:
        return subprocess.run(
            [sys.executable, *words], env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    warmed = json.loads(ran("-c", ALL_COMPILED))
    stored = set(folder.rglob("*.nbc"))
    assert len(stored) >= warmed["kernels"] > 20
    Path("offload.yaml").write_text("offload_times: 1\n")
    ran("-c", SEARCHED)
    assert set(folder.rglob("*.nbc")) == stored
