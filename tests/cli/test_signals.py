"""Signals that ask for the end: no file, folder or process stays, and the exit code says which it was."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pipeplan.cli.process import Terminated, ended_by_signals

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without these signals")


@pytest.fixture(autouse=True)
def heard():
    """Signals count as in a terminal, also under ``nohup`` and behind tests that changed what they do."""
    usual: dict[signal.Signals, Any] = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_gives_its_code_and_no_error(run, monkeypatch, number, code):
    monkeypatch.setattr("pipeplan.answers.simulated", lambda *_, **__: send(number))
    assert run("simulate --no-visualization") == (code, "", "")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_file_that_is_being_written_is_left_as_it_was(run, monkeypatch, tmp_path):
    (tmp_path / "a.svg").write_text("before")
    monkeypatch.setattr("pipeplan.drawing.static.save_figure", lambda *_, **__: send(signal.SIGTERM))
    assert run("simulate -o a.svg")[0] == 143
    assert os.listdir() == ["a.svg"]
    assert (tmp_path / "a.svg").read_text() == "before"


def test_only_the_first_signal_counts_so_that_clearing_up_is_not_cut():
    cleared = []

    def work() -> None:
        try:
            send(signal.SIGTERM)
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP):
                send(number)
            cleared.append(True)

    with pytest.raises(Terminated) as end, ended_by_signals():
        work()
    assert end.value.code == 143
    assert cleared


def test_a_signal_whose_exception_is_dropped_ends_the_command_a_moment_later():
    until, cleaned = time.monotonic() + 20, []

    def work() -> None:
        with suppress(BaseException):  # as NumPy does within the attributes that it looks for
            send(signal.SIGTERM)
        try:
            while time.monotonic() < until:
                time.sleep(0.01)
        finally:
            time.sleep(0.2)  # it is not raised again into what cleans up
            cleaned.append(True)

    with pytest.raises(Terminated), ended_by_signals():
        work()
    assert cleaned
    assert time.monotonic() < until


def test_what_somebody_else_has_set_stays():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with ended_by_signals():
            send(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


class Library:
    """Calls back where nothing can be raised, as libraries in C do."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        send(self.number)
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_that_comes_where_nothing_can_be_raised_ends_the_command_a_moment_later(number, raised, capsys):
    until = time.monotonic() + 20

    def work() -> None:
        Library(number)
        while time.monotonic() < until:
            time.sleep(0.01)

    with pytest.raises(raised), ended_by_signals():
        work()
    assert time.monotonic() < until
    assert capsys.readouterr().err == ""


def test_an_error_that_came_of_such_a_signal_is_not_told(run, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        Library(signal.SIGTERM)
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr("pipeplan.answers.simulated", fail)
    assert run("simulate --no-visualization") == (143, "", "")


LONG = {
    "search": "search -p 8 -m 32 --memory-limit 5act --seconds 60 --workers 2 -o s.csv",
    "plan": "plan --model llama3-70b --cluster h100-sxm:16x8 --global-batch 512 --sequence 8192 --workers 2 -o p.json",
    "serve": "serve --port 0",
}


@pytest.mark.skipif(sys.platform != "linux", reason="processes of a session are counted on Linux alone")
def test_threads_and_processes_end_with_the_command(tmp_path):
    """All commands at once: most of the time is that of waiting until they are at work."""
    begun = {}
    for command, line in LONG.items():
        temporary, folder = tmp_path / command / "temporary", tmp_path / command / "work"
        temporary.mkdir(parents=True)
        folder.mkdir()
        begun[command] = subprocess.Popen(
            [sys.executable, "-m", "pipeplan", *line.split()],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
    time.sleep(5)  # they are at work, or still load: a signal ends them in the same way
    for process in begun.values():
        process.send_signal(signal.SIGTERM)
    for command, process in begun.items():
        errors = process.communicate(timeout=60)[1]
        assert (command, process.returncode, "Traceback" in errors) == (command, 143, False), errors
        until = time.monotonic() + 10
        while (left := session(process.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        assert (command, left) == (command, [])
        assert {path.name for path in (tmp_path / command / "work").iterdir()} <= {"s.csv"}
        assert list((tmp_path / command / "temporary").iterdir()) == []


def session(leader: int) -> list[int]:
    """Return the running processes of a session, without those that have ended and wait for their parent."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, number = stat.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if int(number) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found
