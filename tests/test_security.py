"""What SECURITY.md promises, and that what it says holds a promise is there."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pipeplan.formats import read_file
from pipeplan.foundation import files
from pipeplan.foundation.errors import FormatError, PipeplanError

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text()


def test_files_are_data_and_nothing_leaves_the_machine(tmp_path):
    """In a process of its own: who watches an interpreter does so until its end."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.watched", tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    watched = json.loads(ran.stdout)
    assert watched["done"] > 40
    assert [each for each in watched["seen"] if each[0] != "planted"] == []
    assert {event for name, event, _ in watched["seen"] if name == "planted"} == {"compile", "exec"}


def test_a_pickle_is_no_file_of_ours(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"cposix\nsystem\n(S'true'\ntR.")
    with pytest.raises(FormatError):
        read_file(path)


def test_what_unpickles_reads_no_file_that_a_user_names():
    """What a launcher and its own processes hand each other in a folder of theirs."""
    sources = (ROOT / "src" / "pipeplan").rglob("*.py")
    pattern = r"\b(?:(?:c?pickle|np|torch|marshal|joblib)\.loads?|shelve|eval|exec|yaml\.(?:unsafe_)?load)\("
    result = {
        (path.name, name[0])
        for path in sources
        for name in re.finditer(pattern, path.read_text())
        if name[0] != "eval(" or path.name not in ("feeds.py", "pipeline.py")  # the method of a pipeline
    }
    assert result == {
        *((name, "pickle.loads(") for name in ("worker.py", "launch.py")),
        ("documents.py", "yaml.load("),
    }


def test_machine_code_is_loaded_at_one_place():
    """From the package's own folder, and from the cache of the user after its owner was checked.

    A worker of a training run also calls the C library that its process has loaded.
    """
    loads = {
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"\b(?:CDLL|PyDLL|LoadLibrary)\(", path.read_text())
    }
    calls = {path.name for path in (ROOT / "src").rglob("*.py") if re.search(r"\bopen_library\(", path.read_text())}
    assert loads == {"library.py", "worker.py"}
    assert calls == {"library.py", "functions.py"}


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX systems")
def test_temporary_files_are_the_users_alone(tmp_path):
    mask = os.umask(0)
    try:
        with files._temporary(".png", tmp_path) as path:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not path.exists()
    finally:
        os.umask(mask)


def test_what_is_said_to_hold_a_promise_is_there():
    named = re.findall(r"`(tests/[\w/.]+)`", TEXT)
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_reports_are_private_and_no_address_is_invented():
    assert "Report a vulnerability" in TEXT
    assert re.search(r"[\w.]+@[\w.]+|https?://", TEXT) is None


def test_a_refusal_is_pipeplans_own(tmp_path):
    for content in (b"\x00", b"\xff\xfe", b"{" * 5000, b"- " * 5000):
        for name in ("x.json", "x.csv", "x.rows.txt"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(PipeplanError):
                read_file(tmp_path / name)
