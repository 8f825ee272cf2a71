"""The harness finds what is planted, says how to see it again, and cleans up behind itself."""

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.torture import box, running, worker
from tests.torture.commands.plainly_wrong import judge_plainly_wrong
from tests.torture.forked import fresh, judged, ran, started
from tests.torture.judging import Ran
from tests.torture.main import main
from tests.torture.running import Asked, Turns
from tests.torture.suite import Found, Suite
from tests.torture.tally import Tally
from tests.torture.worker import Verdict, suites_of


@pytest.fixture
def torture(tmp_path, monkeypatch, capsys):
    """Run planted suites, watched from a folder of their own, and give the exit code and the lines."""
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    monkeypatch.setenv("HOME", str(outside))

    def run(line: str) -> tuple[int, list[str]]:
        home = tmp_path / "box"
        code = main([*shlex.split(line), "--workers", "1", "--box", str(home)], "tests.torture.planted")
        assert not [path for path in home.glob("worker-*/cases/*") if "--keep" not in line]
        return code, capsys.readouterr().out.splitlines()

    return run


def test_a_fault_is_found_once_and_its_line_shows_it_again(torture):
    code, lines = torture("wrong absent --cases 8")
    assert code == 1
    first = "python -m tests.torture wrong --seed 2 --cases 1   # 2 is wrong, says 'seed 2'"
    assert lines[0] == first
    assert f"{first}   (and 1 more, such as seed 6)" in lines
    assert sum("KeyError: 'five' (planted.py, line" in line for line in lines) == 2  # when it is found, and at the end
    assert lines[-2].split()[:3] == ["wrong", "8", "3"]
    assert lines[-1].endswith("left out: there is no such machine")
    again, lines = torture(first.removeprefix("python -m tests.torture ").partition("#")[0])
    assert again == 1
    assert lines[0] == first
    assert torture("wrong --seed 3 --cases 2") == (0, torture("wrong --seed 3 --cases 2")[1])


def test_what_hangs_is_ended_and_what_dies_is_told(torture, monkeypatch):
    monkeypatch.setattr(worker, "_PATIENCE", 0.3)
    code, lines = torture("hangs deaf dies --cases 2")
    assert code == 1
    told = "\n".join(lines)
    assert "hangs: no end after 0.2 s" in told
    assert "hangs: killed after" in told
    assert "deaf to its alarm" in told
    assert "died of SIGSEGV" in told
    assert [line.split()[1] for line in lines[-3:]] == ["2", "2", "2"]


def test_what_is_written_outside_is_told_and_what_is_closed_is_removed(torture):
    assert torture("locks --cases 2")[0] == 0
    code, lines = torture("strays --cases 1")
    assert code == 1
    assert any("outside/stray-0 was written, which is outside the box" in line for line in lines)


def test_a_process_that_writes_outside_its_box_or_dials_out_is_told(boxed):
    said = Path(os.environ["PIPEPLAN_TORTURE_STRAYS"])
    before = len(box.strays())
    outside = boxed.parent / "outside.txt"
    does = f"""
import os, socket, subprocess, sys
open(os.devnull, "w").close()
open({str(said.with_name("inside.txt"))!r}, "w").close()
os.mkdir({str(outside.with_name("folder"))!r})
os.symlink({str(outside)!r}, {str(said.with_name("link"))!r})
subprocess.run([sys.executable, "-c", "open({str(said.with_name("link"))!r}, 'w').close()"], check=True)
for name in ("connect", "bind"):
    try:
        getattr(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), name)(("" if name == "bind" else "192.0.2.1", 9))
    except PermissionError:
        continue
    raise AssertionError(name)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("127.0.0.1", 0))
"""
    subprocess.run([sys.executable, "-c", does], check=True)
    found = box.strays()[before:]
    assert len(found) == 4
    assert "folder was written (os.mkdir)" in found[0]
    assert "link was written (open)" in found[1]
    assert "connect to '192.0.2.1', which is not loopback" in found[2]
    assert "bind to '', which is not loopback" in found[3]


def test_a_run_that_is_killed_takes_its_processes_with_it_and_the_next_removes_its_box(tmp_path):
    around = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", _RUN]
    for number in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(command, env=around, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            assert run.stdout is not None
            (home,) = wait_for(lambda: [each for each in tmp_path.iterdir() if list(each.glob("worker-*/cases/*"))])
            run.send_signal(number)
            said, code = run.stdout.read(), run.wait()
        assert wait_for(lambda home=home: not list(box.processes(home)))
        assert (number == signal.SIGKILL) == home.exists()
    assert (code, said) == (-signal.SIGKILL, "")
    subprocess.run(
        [sys.executable, "-c", "from tests.torture.box import remove_dead; remove_dead()"], env=around, check=True
    )
    assert list(tmp_path.iterdir()) == []


_RUN = "from tests.torture.main import main; main(['hangs', 'deaf', '--unwatched'], 'tests.torture.planted')"


def wait_for(said):
    until = time.monotonic() + 30
    while not (found := said()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def test_what_still_runs_when_the_time_is_up_is_ended_and_no_finding(torture, monkeypatch):
    monkeypatch.setattr(running, "_GRACE", 0.2)
    code, lines = torture("deaf --seconds 0.2")
    assert code == 0
    assert "not ended 1" in lines[-1]


def test_one_fault_in_many_words_is_told_a_few_times():
    tally = Tally([*suites_of("tests.torture.planted").values()])
    told = [tally.add(Verdict("wrong", seed, "found", "wrong in " + "x" * seed, 0.1)) for seed in range(20)]
    assert sum(told) == 8
    assert sum("--seed" in line for line in tally.lines()) == 8
    assert any("12 more kinds of findings, with the seeds 8, 9" in line for line in tally.lines())


@pytest.mark.parametrize(
    ("word", "wrong"), [("--port=1.5", True), ("--port=0", False), ("--port=two", True), ("--host=1.5", False)]
)
def test_a_value_that_is_of_no_such_kind_must_be_refused(word, wrong):
    with pytest.raises(Found, match="was given") if wrong else nullcontext():
        judge_plainly_wrong(Ran(("serve", word), 0, b"", b"", 0.1))
    judge_plainly_wrong(Ran(("serve", word), 2, b"", b"", 0.1))
    judge_plainly_wrong(Ran(("serve", word, "--help"), 0, b"", b"", 0.1))


def test_time_is_shared(torture):
    code, lines = torture("wrong locks --seconds 1")
    assert code == 1
    assert all(int(line.split()[1].replace(",", "")) > 2 for line in lines[-2:])


def test_commands_are_forked_with_what_is_asked_for(boxed):
    found = ran(["simulate", "-p", "2", "-m", "2", "--json"], boxed)
    assert judged(found) == "answered"
    assert found.json()["ranks"] == 2
    assert list(boxed.iterdir()) == []
    assert judged(ran(["check", "-", "--json"], boxed, stdin=b"0F0,0B0\n")) == "answered"
    assert judged(ran(["simulate", "zbw"], boxed)) == "refused"
    assert judged(fresh(["--version"], boxed)) == "answered"
    with open(os.devnull, "wb") as nothing:
        assert ran(["schedules"], boxed, stdout=nothing.fileno()).out == b""


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(boxed):
    served = started(["serve", "--port", "0"], boxed)
    found = served.wait(1.0)
    assert found.hung
    assert not Path(f"/proc/{served.pid}").exists()
    with pytest.raises(Found, match="hangs"):
        judged(found)


@pytest.mark.parametrize(
    ("code", "out", "err", "wrong"),
    [
        (0, b"not json", b"", "not JSON"),
        (0, b'{"a": 1, "a": 2}', b"", "a key stands twice"),
        (0, b'{"a": NaN}', b"", "NaN"),
        (1, b"", b"", "without a word"),
        (2, b"answer", b"", "without a word on stderr"),
        (2, b"", b"pipeplan: no\n\npipeplan: no", "several paragraphs"),
        (3, b"", b"pipeplan: no", "exit code 3"),
        (-11, b"", b"", "exit code -11"),
        (2, b"", b"Traceback (most recent call last):\nKeyError: 1", "a traceback .KeyError: 1"),
        (2, b"", b"pipeplan: an error that should not have happened: x", "last resort"),
        (2, b"", b"pipeplan: no \x1b[31m", r"stderr holds the sign \\x1b"),
        (2, b"", "pipeplan: no \u202e".encode(), r"stderr holds the sign \\u202e"),
        (0, b"\xff", b"", "no UTF-8"),
        (0, b"{}", b"/a/b.py:3: RuntimeWarning: overflow", "a warning of Python's"),
    ],
)
def test_what_no_command_may_do_is_found(code, out, err, wrong):
    with pytest.raises(Found, match=wrong):
        judged(Ran(("simulate", "--json"), code, out, err, 0.1))


def test_a_suite_is_not_begun_twice_before_its_first_case_has_ended():
    slow, quick = (Suite(name, "any", lambda seed, folder: "fine") for name in ("slow", "quick"))
    tally = Tally([slow, quick])
    turns = Turns([slow, quick], Asked("tests.torture.planted", seconds=None, cases=None), tally)
    assert turns.next([]) == (slow, 0)
    assert turns.next([slow]) == (quick, 0)
    tally.add(Verdict("quick", 0, "fine", None, 5.0))
    assert turns.next([slow]) == (quick, 1)
    tally.add(Verdict("slow", 0, "fine", None, 1.0))
    assert turns.next([quick]) == (slow, 1)


def test_what_is_said_after_a_command_was_killed_is_no_warning_of_its_own():
    said = b"/a/resource_tracker.py:444: UserWarning: resource_tracker: 2 leaked semlocks"
    assert judged(Ran(("search",), -9, b"", said, 0.1, signal.SIGKILL, sent=(signal.SIGKILL,))) == "ended"
    with pytest.raises(Found, match="a warning of Python's"):
        judged(Ran(("search",), 0, b"", said, 0.1))
