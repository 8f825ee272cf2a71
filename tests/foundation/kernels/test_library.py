"""The library of kernels: which one is loaded, and what happens where there is none that fits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeplan.foundation.compiling import compiler
from pipeplan.foundation.compiling.writer import KernelError
from pipeplan.foundation.kernels import Kernel, is_native, library
from tests.foundation.kernels.building import ROOT, compiler_at_hand

NAME = compiler.file_name()

UNCACHED: Callable[[], Any] = library._library.__wrapped__


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The libraries of an installation, which is no checkout."""
    if not is_native():
        pytest.skip("kernels run as Python")
    folder = tmp_path / "libraries"
    folder.mkdir()
    for name in (NAME, "built.txt"):
        shutil.copy(library.FOLDER / name, folder)
    monkeypatch.setattr(library, "FOLDER", folder)
    monkeypatch.setattr(library, "SOURCE", tmp_path)
    return folder


def test_the_library_of_the_same_version_is_loaded(installed):
    assert UNCACHED() is not None


@pytest.mark.parametrize(("value", "is_python"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_a_variable_of_the_environment_runs_kernels_as_python(installed, monkeypatch, value, is_python):
    monkeypatch.setenv("PIPEPLAN_PURE_PYTHON", value)
    assert (UNCACHED() is None) == is_python


def foreign(folder: Path) -> None:
    compiler.compile_library("int x;", folder / NAME, compiler_at_hand())


def not_built(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    (folder / "not_built.txt").write_text("no cc\n")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "not there": (lambda folder: (folder / NAME).unlink(), NAME),
    "text": (lambda folder: (folder / NAME).write_text("text"), NAME),
    "a few bytes": (lambda folder: (folder / NAME).write_bytes((folder / NAME).read_bytes()[:40]), NAME),
    "the beginning": (
        lambda folder: (folder / NAME).write_bytes((folder / NAME).read_bytes()[:50_000]),
        "is damaged",
    ),
    "a part": (
        lambda folder: (folder / NAME).write_bytes(
            (data := (folder / NAME).read_bytes())[:40_000] + bytes(len(data) - 40_000)
        ),
        "is damaged",
    ),
    "another version's": (lambda folder: (folder / "built.txt").write_text("0123\n"), "belongs to another version"),
    "another program's": (foreign, "is damaged"),
    "no checksum beside it": (lambda folder: (folder / "built.txt").unlink(), "built.txt"),
    "an empty list of checksums": (lambda folder: (folder / "built.txt").write_text(""), "is damaged"),
    "not built": (
        not_built,
        "slower: no cc; install pipeplan again, from a wheel, or from source with a C compiler",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_library_that_does_not_fit_is_not_loaded_and_a_warning_says_why(installed, damage):
    spoil, message = DAMAGES[damage]
    spoil(installed)
    with pytest.warns(RuntimeWarning, match="^kernels run as Python, 10 to 100 times slower: .*; install") as caught:
        assert UNCACHED() is None
    assert message in str(caught[0].message)


ANSWERS = """if True:
    import json, sys
    from pathlib import Path
    from pipeplan.foundation.kernels import is_native, library
    if sys.argv[1:]:
        library.FOLDER = library.SOURCE = Path(sys.argv[1])
    import pipeplan
    print(pipeplan.simulate("zbv", ranks=3, microbatches=4, p2p_time=0.1).makespan)
    print(pipeplan.explain("1f1b", ranks=3, microbatches=4).to_dict())
    print(pipeplan.search(ranks=3, microbatches=4, evaluations=60).to_dict()["schedule"])
    print(is_native(), file=sys.stderr)
"""


def answers(*arguments: Path, **variables: str) -> tuple[str, list[str]]:
    """What a process prints, and the lines of its messages."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | variables
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS, *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.splitlines()


def test_answers_are_the_same_without_a_library_which_is_said_once(installed):
    (installed / NAME).write_text("text")
    expected, messages = answers()
    assert messages == ["True"]
    without, messages = answers(installed)
    assert without == expected
    assert len([line for line in messages if "kernels run as Python" in line]) == 1
    assert messages[-1] == "False"
    assert answers(PIPEPLAN_PURE_PYTHON="1") == (expected, ["False"])


KERNEL = """\
from pipeplan.model import Ints


def fill(number: int, row: Ints) -> None:
    for place in range(len(row)):
        row[place] = 2 * number
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one kernel, which has not been compiled."""
    compiler_at_hand()
    monkeypatch.delenv("PIPEPLAN_PURE_PYTHON", raising=False)
    source = tmp_path / "src"
    source.mkdir()
    (tmp_path / "hatch_build.py").write_text("")
    (source / "fill_kernel.py").write_text(KERNEL)
    (source / "user.py").write_text("from fill_kernel import fill\n\nFILL = Kernel(fill)\n")
    monkeypatch.setattr(library, "FOLDER", tmp_path / "libraries")
    monkeypatch.setattr(library, "SOURCE", source)
    return source


def filled() -> list[int]:
    """What the library's kernel writes for 3."""
    native = UNCACHED()

    def fill(number: int, row: Any) -> None:
        raise AssertionError("runs as Python")

    fill.__module__ = "fill_kernel"
    row = np.zeros(2, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "loaded_library", lambda: native)
        Kernel(fill)((3,), (row,))
    return row.tolist()


def in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder another name: a process loads the library of a path once."""
    folder = library.FOLDER.with_name(f"{library.FOLDER.name}-again")
    library.FOLDER.rename(folder)
    monkeypatch.setattr(library, "FOLDER", folder)
    return folder / NAME


def test_a_checkout_compiles_its_kernels_when_they_are_used_and_anew_after_a_change(checkout, monkeypatch):
    assert filled() == [6, 6]
    path = library.FOLDER / NAME
    built = path.stat().st_ino, path.stat().st_mtime_ns
    assert filled() == [6, 6]
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == built
    in_a_new_process(monkeypatch)
    (checkout / "fill_kernel.py").write_text(KERNEL.replace("2 * number", "10 * number"))
    assert filled() == [30, 30]
    in_a_new_process(monkeypatch).unlink()
    assert filled() == [30, 30]


def test_a_constant_that_a_kernel_imports_may_change(checkout, monkeypatch):
    (checkout / "constants.py").write_text("FACTOR = 2\n")
    text = "from constants import FACTOR\n" + KERNEL.replace("2 *", "FACTOR *")
    (checkout / "fill_kernel.py").write_text(text)
    assert filled() == [6, 6]
    in_a_new_process(monkeypatch)
    (checkout / "constants.py").write_text("FACTOR = 20\n")
    assert filled() == [60, 60]


def test_a_faulty_kernel_of_a_checkout_is_an_error(checkout):
    (checkout / "fill_kernel.py").write_text(KERNEL.replace("2 * number", "[number]"))
    with pytest.raises(KernelError, match=r"fill_kernel\.py:6: '\[number\]' is not supported in kernels"):
        UNCACHED()


@pytest.mark.skipif(not is_native(), reason="kernels run as Python")
def test_a_kernel_that_is_not_in_the_library_runs_as_python_and_a_warning_says_how_to_add_it():
    def count(row: Any) -> None:
        row[0] += 1

    row = np.zeros(1, np.int64)
    with pytest.warns(RuntimeWarning, match="the kernel count is not in the library and runs as Python: delete .*"):
        Kernel(count)((), (row,))
    assert row.tolist() == [1]


def test_a_folder_that_cannot_be_written_leaves_a_checkout_to_python(checkout, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(library, "FOLDER", tmp_path / "file" / "libraries")
    with pytest.warns(RuntimeWarning, match="kernels run as Python.*Not a directory"):
        assert UNCACHED() is None


def test_so_does_a_compiler_that_fails(checkout, monkeypatch):
    monkeypatch.setenv("CC", "false")
    with pytest.warns(RuntimeWarning, match="kernels run as Python.*false"):
        assert UNCACHED() is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_read(installed):
    installed.chmod(0o500)
    assert UNCACHED() is not None


def test_two_processes_may_compile_a_checkout_at_once(checkout):
    code = f"""if True:
        from pathlib import Path
        from pipeplan.foundation.kernels import library
        library.FOLDER, library.SOURCE = Path({str(library.FOLDER)!r}), Path({str(checkout)!r})
        assert library.loaded_library() is not None
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=environment) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert filled() == [6, 6]
    assert {path.name for path in library.FOLDER.iterdir()} == {NAME, "built.txt"}


def test_a_warning_is_given_once_for_all_kernels(installed, monkeypatch):
    (installed / NAME).write_text("text")
    library._library.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert [Kernel(len).is_compiled, Kernel(max).is_compiled, is_native()] == [False] * 3
        assert len(caught) == 1
    finally:
        library._library.cache_clear()
