"""What extensions register can be loaded, and an absent extension is named."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeplan.foundation import extensions
from pipeplan.foundation.extensions import MissingExtensionError, extension, loaded, required_service, service

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", extensions.NAMES)
def test_every_address_leads_to_something(name):
    registered = extension(name)
    if registered is None:
        pytest.skip("it is not installed")
    assert registered.name == name
    assert set(registered.needs) < set(extensions.NAMES)
    if name == "training":
        pytest.importorskip("torch", reason="its runtime needs PyTorch")
    addresses = (
        *registered.formats,
        *registered.registries,
        *registered.answers.values(),
        *registered.services.values(),
        *registered.lists.values(),
    )
    for address in (*addresses, *(command.function for command in registered.commands)):
        assert loaded(address) is not None
    assert [page for page in registered.pages if not (ROOT / "docs" / page).exists()] == []


def test_an_absent_extension_is_named(monkeypatch):
    monkeypatch.setattr(extensions, "extension", lambda name: None)
    assert service("search", "reorderer") is None
    with pytest.raises(MissingExtensionError, match="needs the extension 'search' of pipeplan, which is not installed"):
        required_service("search", "reorderer")


def test_the_core_works_without_extensions(tmp_path):
    """Commands of the core answer; a name of an extension is an error that names it."""
    shutil.copytree(ROOT / "src" / "pipeplan", tmp_path / "pipeplan", ignore=shutil.ignore_patterns("__pycache__"))
    for name in extensions.NAMES:
        shutil.rmtree(tmp_path / "pipeplan" / "extensions" / name, ignore_errors=True)
    (tmp_path / "pipeplan" / "runtime.py").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", CORE], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    absent = ", ".join(f"'{name}'" for name in extensions.NAMES)
    message = f"module 'pipeplan' has no attribute 'search'; extensions that are not installed: {absent}"
    assert done.stdout.splitlines()[-1] == message


CORE = """
import pipeplan
from pipeplan.cli import main

for line in ("simulate zbv", "compare", "explain 1f1b", "check 1f1b", "export zbv --to torch-csv", "list"):
    shape = "" if line == "list" else "-p 2 -m 4"
    assert main(f"{line} {shape}".split() + (["--no-visualization"] if line in ("simulate zbv", "compare") else [])) == 0
assert not hasattr(pipeplan, "plan")
try:
    pipeplan.search(ranks=2, microbatches=2)
except pipeplan.PipeplanError as error:
    print(error)
"""
