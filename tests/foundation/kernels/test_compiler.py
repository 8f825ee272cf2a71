"""The C compiler: which one is taken, what becomes of its errors, and libraries in the user's cache."""

import ctypes
import os
import re
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeplan.foundation.compiling import compiler
from pipeplan.foundation.compiling.compiler import (
    CompilerError,
    cache_folder,
    compile_library,
    compiled_once,
    file_name,
    find_compiler,
)
from tests.foundation.kernels.building import compiler_at_hand

TWICE = '__attribute__((visibility("default"))) long long twice(long long value) { return 2 * value; }\n'


@pytest.fixture(scope="module")
def command():
    return compiler_at_hand()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pipeplan" / "kernels"


def failing(folder, message):
    """Return the path of a compiler that fails with a message."""
    path = folder / "failing-cc"
    path.write_text(f"#!/bin/sh\nprintf '%b' '{message}' >&2\nexit 1\n")
    path.chmod(0o755)
    return path


def twice(library):
    return ctypes.CDLL(str(library)).twice(21)


def test_a_library_is_compiled_loaded_and_the_same_again(command, tmp_path):
    libraries = [tmp_path / folder / file_name() for folder in ("first", "second")]
    for library in libraries:
        compile_library(TWICE, library, command)
        assert twice(library) == 42
        assert [*library.parent.iterdir()] == [library]
    first, second = (library.read_bytes() for library in libraries)
    assert first == second


def test_compilations_of_one_library_at_once_do_not_disturb_each_other(command, tmp_path):
    library = tmp_path / file_name()

    def compile_and_call(_):
        compile_library(TWICE, library, command)
        return twice(library)

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(compile_and_call, range(8))] == [42] * 8
    assert [*tmp_path.iterdir()] == [library]


def test_an_error_in_the_c_file_is_named_and_the_library_stays(command, tmp_path):
    library = tmp_path / file_name()
    compile_library(TWICE, library, command)
    with pytest.raises(CompilerError, match=r"kernels\.c:1:.*error.*nothing"):
        compile_library("int one() { return nothing; }\n", library, command)
    assert twice(library) == 42
    assert [*tmp_path.iterdir()] == [library]


def test_a_folder_that_cannot_be_written_is_named(command, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CompilerError, match=re.escape(str(tmp_path / "file"))):
        compile_library(TWICE, tmp_path / "file" / file_name(), command)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("a note\\nfatal error: the disk is full\\nmore\\n", "fatal error: the disk is full"),
        ("\\nnothing of the kind\\n", "nothing of the kind"),
        ("", "it failed without a message"),
    ],
)
def test_a_compiler_that_fails_is_quoted_with_its_first_error(tmp_path, monkeypatch, message, line):
    path = failing(tmp_path, message)
    monkeypatch.setenv("CC", f"{path} --option")
    with pytest.raises(CompilerError) as raised:
        find_compiler()
    assert str(raised.value) == f"{path} --option: {line}"


def test_the_chosen_compiler_is_taken_or_missed(command, monkeypatch):
    monkeypatch.setenv("CC", " ".join(command))
    assert find_compiler() == command
    monkeypatch.setenv("CC", "no-such-cc -O0")
    with pytest.raises(CompilerError, match=r"^no-such-cc not found$"):
        find_compiler()


def test_a_compiler_that_works_is_preferred_to_one_that_fails(command, tmp_path, monkeypatch):
    failing(tmp_path, "error: no headers").rename(tmp_path / "cc")
    (tmp_path / "gcc").write_text(f'#!/bin/sh\nPATH={os.environ["PATH"]} exec {" ".join(command)} "$@"\n')
    (tmp_path / "gcc").chmod(0o755)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compiler() == [str(tmp_path / "gcc")]


def test_without_any_compiler_a_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "_zig_folder", lambda: "")
    with pytest.raises(CompilerError, match=r"^no C compiler found$"):
        find_compiler()


@pytest.mark.skipif(sys.platform != "linux", reason="these names are those of Linux")
def test_the_name_of_a_library_tells_c_libraries_apart(monkeypatch):
    machine = os.uname().machine
    monkeypatch.setattr(os, "confstr", lambda _: "glibc 2.36")
    assert file_name() == f"kernels-linux-{machine}-gnu.so"

    def refuse(_):
        raise OSError("musl has no such name")

    monkeypatch.setattr(os, "confstr", refuse)
    assert file_name() == f"kernels-linux-{machine}-musl.so"


@pytest.mark.usefixtures("command")
def test_a_c_file_is_compiled_once_into_a_private_folder(cache, monkeypatch):
    library = compiled_once(TWICE)
    assert twice(library) == 42
    assert library.parent == cache
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    monkeypatch.setenv("CC", "no-such-cc")
    assert compiled_once(TWICE) == library
    with pytest.raises(CompilerError, match="no-such-cc"):
        compiled_once(TWICE + "\n")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
@pytest.mark.usefixtures("command")
def test_a_library_that_another_user_can_write_is_not_loaded(cache):
    mask = os.umask(0)
    try:
        library = compiled_once(TWICE)
    finally:
        os.umask(mask)

    def assert_refused(path):
        with pytest.raises(
            CompilerError, match=re.escape(f"{path} belongs to another user, or others can write to it")
        ):
            compiled_once(TWICE)

    for path in (library, cache):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IWOTH)
        assert_refused(path)
        path.chmod(mode)
    assert compiled_once(TWICE) == library
    if os.geteuid() == 0:
        os.chown(library, 12345, -1)
        assert_refused(library)


def test_a_cache_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CompilerError, match=re.escape(str(tmp_path / "file"))):
        cache_folder()


def test_the_cache_is_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "pipeplan" / "kernels"
