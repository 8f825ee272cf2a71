"""A machine that gives too little memory, files or threads: one sentence, never a traceback, never a false answer."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from pipeplan.cli.shortage import shortage
from pipeplan.errors import InputError, MissingExtraError
from tests.torture.conftest import _box, boxed  # noqa: F401
from tests.torture.forked import fresh, judged

ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in this way on Linux alone")

LIMITED = (
    "import os, resource, signal, sys, time\n"
    "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
    "from pipeplan.cli.watching import watched\n"
    "sys.exit(watched(lambda: {work}, debug={debug}))\n"
)


def limited(work: str, *, debug: bool = False) -> subprocess.CompletedProcess[str]:
    code = LIMITED.format(work=work, debug=debug)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)


@ONLY_LINUX
@pytest.mark.parametrize("death", ["os.abort()", "os._exit(1)", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_a_library_that_dies_of_too_little_memory_is_a_sentence_and_no_answer(death):
    found = limited(f"(os.write(2, b'terminate called\\n'), {death})[0]")
    assert found.returncode == 2
    assert found.stderr == (
        "pipeplan: this does not fit into the 1,074 MB of memory that it may take; "
        "raise the limit (ulimit -v), or make the shape smaller\n"
    )
    assert "terminate called" in limited(f"(os.write(2, b'terminate called\\n'), {death})[0]", debug=True).stderr


@ONLY_LINUX
def test_a_limited_command_that_ends_well_gives_its_code_and_what_was_said():
    found = limited("(print('answer'), print('told', file=sys.stderr), os.write(2, b'a warning\\n'), 1)[-1]")
    assert (found.returncode, found.stdout) == (1, "answer\n")
    assert sorted(found.stderr.splitlines()) == ["a warning", "told"]


@ONLY_LINUX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_reaches_the_command_that_is_watched(number, tmp_path):
    ready = tmp_path / "ready"
    work = f"(open({str(ready)!r}, 'w').write(str(os.getpid())), time.sleep(30), 0)[-1]"
    process = subprocess.Popen([sys.executable, "-c", LIMITED.format(work=work, debug=False)], stderr=subprocess.PIPE)
    until = time.monotonic() + 20
    while not (ready.exists() and ready.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode in ({2} if number == signal.SIGINT else {128 + number, -number})
    if number != signal.SIGINT:  # a command takes that one for itself; this one has nothing that does
        assert err == b""
    while os.path.exists(f"/proc/{ready.read_text()}/status") and time.monotonic() < until:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{ready.read_text()}/status")


@ONLY_LINUX
@pytest.mark.parametrize("megabytes", [35, 64, 100, 140])
def test_memory_that_ends_while_libraries_are_loaded(boxed, megabytes):  # noqa: F811
    found = fresh(["simulate", "1f1b", "-p", "2", "-m", "2", "-o", "a.png"], boxed, memory=megabytes << 20)
    judged(found)
    assert found.code == 2
    assert "of memory that it may take" in found.stderr
    assert list(boxed.iterdir()) == []


def caused(error: Exception, cause: Exception) -> Exception:
    error.__context__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "this machine's memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "this machine's memory"),
        (ImportError("libtorch.so: failed to map segment from shared object"), "this machine's memory"),
        (
            caused(MissingExtraError("web", "fastapi"), ImportError("x.so: failed to map segment")),
            "this machine's memory",
        ),
        (RuntimeError("can't start new thread"), "no more threads"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no more threads"),
        (caused(ModuleNotFoundError("yaml"), OSError(errno.EMFILE, "Too many open files")), "too many files"),
        (MissingExtraError("web", "fastapi"), None),
        (caused(InputError("a rule"), MemoryError()), None),
        (ValueError("ranks"), None),
    ],
)
def test_what_there_is_too_little_of_is_told_from_the_error_or_from_what_it_came_of(error, said, monkeypatch):
    monkeypatch.setattr("pipeplan.cli.shortage.memory_limit", lambda: None)
    found = shortage(error)
    assert (found is None) if said is None else (said in (found or ""))


def test_a_limit_is_named(monkeypatch):
    monkeypatch.setattr("pipeplan.cli.shortage.memory_limit", lambda: 256_000_000)
    for error in (
        MemoryError(),
        RuntimeError("can't start new thread"),
        SystemError("error return without exception set"),
    ):
        assert "into the 256 MB of memory" in (shortage(error) or "")
