"""Streams that are full, closed, unread or narrow: no answer is lost in silence, and no message that is lost changes one."""

import io
import os
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeplan.cli.app import _COMMANDS
from pipeplan.cli.process import main
from pipeplan.cli.streams import Sink, _sensible_width, _text
from tests.torture.conftest import _box, boxed  # noqa: F401
from tests.torture.forked import judged, ran

LINES = {
    "schedules": "schedules gpipe",
    "simulate": "simulate -p 2 -m 2 --memory-limit 1act -o a.html",
    "compare": "compare 1f1b gpipe -p 2 -m 2 --json",
    "explain": "explain -p 2 -m 2",
    "search": "search -p 2 -m 1 --evaluations 20",
    "plan": "plan --models",
    "estimate": "estimate --help",
    "check": "check plan.csv",
    "export": "export -p 2 -m 2 --to torch-csv",
    "profile": "profile --repeats 0",
    "run": "run --steps 0",
    "diff": "diff plan.csv absent.json",
    "convert": "convert plan.csv plan.json",
    "serve": "serve --help",
}
"""For every command a line that answers, refuses or says no soon."""

OTHERS = ("--help", "--version", "help convert", "simulate --rankz 3")

REFUSED = re.compile(r"pipeplan: the answer cannot be written: [^\n]+\n")


@pytest.fixture
def folder(boxed):  # noqa: F811
    (boxed / "plan.csv").write_text("0F0,0B0\n1F0,1B0\n")
    return boxed


@pytest.fixture(scope="module")
def streams():
    """Descriptors that fail: full, read-only, and a pipe that nobody reads."""
    if not Path("/dev/full").is_char_device():
        pytest.skip("this system has no device that is always full")
    read, unread = os.pipe()
    os.close(read)
    found = {
        "full": os.open("/dev/full", os.O_WRONLY),
        "read-only": os.open("/dev/null", os.O_RDONLY),
        "unread": unread,
    }
    yield found
    for each in found.values():
        os.close(each)


def test_every_command_has_a_line():
    assert LINES.keys() == _COMMANDS.keys()


@pytest.mark.parametrize("line", [*LINES.values(), *OTHERS])
def test_an_answer_is_written_or_the_command_fails_and_a_message_changes_nothing(folder, streams, line):
    arguments = shlex.split(line)
    usual = ran(arguments, folder)
    judged(usual)
    assert_lost(ran(arguments, folder, stdout=streams["full"]), usual)
    silent = ran(arguments, folder, closed=(0, 2))
    assert (silent.code, silent.out) == (usual.code, usual.out)


def assert_lost(found, usual):
    """Where there is an answer, its loss is told in a sentence beside the usual messages, and the command fails."""
    if usual.out:
        assert found.code == 2
        assert REFUSED.fullmatch(found.stderr.removeprefix(usual.stderr))
    else:
        assert (found.code, found.err) == (usual.code, usual.err)


@pytest.mark.parametrize("line", ["schedules gpipe", "--help", "convert plan.csv plan.json"])
def test_an_answer_has_many_ways_to_be_lost_and_nobody_needs_to_hear_of_it(folder, streams, line):
    arguments = line.split()
    usual = ran(arguments, folder)
    for how in ({"stdout": streams["read-only"]}, {"closed": (1,)}):
        assert_lost(ran(arguments, folder, **how), usual)
    for how in ({"closed": (0, 1, 2)}, {"stdout": streams["full"], "stderr": streams["full"]}):
        assert ran(arguments, folder, **how).code == (2 if usual.out else 0)


@pytest.mark.parametrize("line", ["schedules", "--help", "compare --memory-limit 1act -p 2 -m 2"])
def test_a_reader_who_has_seen_enough_changes_no_exit_code(folder, streams, line):
    usual = ran(line.split(), folder)
    unread = ran(line.split(), folder, stdout=streams["unread"])
    assert (unread.code, unread.err) == (usual.code, usual.err)


def test_a_closed_stream_gets_no_file(folder):
    assert ran(["export", "-p", "1", "-m", "1", "--to", "torch-csv", "-o", "a.csv"], folder, closed=(0, 1, 2)).code == 0
    assert (folder / "a.csv").read_text() == "0F0,0B0\n"


@pytest.mark.parametrize(
    ("line", "widths"), [("help convert", ("80", "0", "2", "9" * 9)), ("explain -p 2 -m 2", ("²",))]
)
def test_help_and_tables_end_at_any_width_with_all_their_letters(folder, line, widths):
    usual = None
    for columns in widths:
        found = ran(line.split(), folder, environment={"COLUMNS": columns, "LINES": columns}, seconds=10)
        assert judged(found) == "answered"
        assert max(map(len, found.stdout.splitlines())) <= 1_000
        usual = usual or letters(found.stdout)
        assert letters(found.stdout) == usual


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        *((said, None) for said in ("0", "00", "-5", "abc", "²", "")),
        *(("1", 30), ("٣", 30), ("80", 80), ("1000", 1_000), ("9" * 5_000, 1_000)),
    ],
)
def test_a_width_that_cannot_be_is_none_or_the_nearest(monkeypatch, said, taken):
    monkeypatch.setenv("COLUMNS", said)
    with _sensible_width():
        assert os.environ.get("COLUMNS") == (None if taken is None else str(taken))
    assert os.environ["COLUMNS"] == said


def letters(text: str) -> list[str]:
    """What stands there, whatever lines it stands in."""
    return sorted(sign for sign in text if sign.isalnum())


def test_the_environment_of_who_calls_is_left_as_it_was(monkeypatch, capsys):
    for columns in ("0", "1", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["--help"]) == 0
        assert os.environ["COLUMNS"] == columns
    monkeypatch.delenv("COLUMNS")
    main(["--version"])
    assert "COLUMNS" not in os.environ
    assert letters(capsys.readouterr().out)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "utf-16"])
def test_what_an_encoding_lacks_is_spelt(encoding):
    raw = io.BytesIO()
    raw.fileno = lambda: 1  # type: ignore[method-assign]
    stream = _text(Sink(raw), SimpleNamespace(encoding=encoding), by_line=False)  # type: ignore[arg-type]
    stream.write("… é \udcff\n")
    stream.flush()
    accent = "é" if encoding != "ascii" else r"\xe9"
    dots = "…" if encoding.startswith("utf") else "..."
    assert raw.getvalue().decode(encoding) == f"{dots} {accent} \\udcff\n"


def test_an_ascii_terminal_gets_help_in_ascii(folder):
    found = ran(["run", "--help"], folder, environment={"PYTHONIOENCODING": "ascii"})
    assert judged(found) == "answered"
    assert "\\u" not in found.out.decode("ascii")


class Slow(io.RawIOBase):
    """Takes three bytes at a time, and none at every other call."""

    def __init__(self) -> None:
        self.taken, self.turn = bytearray(), 0

    def fileno(self) -> int:
        return 1

    def write(self, data):
        self.turn += 1
        if self.turn % 2:
            return None
        self.taken += data[:3]
        return len(data[:3])


def test_a_stream_that_takes_little_at_once_gets_all(monkeypatch):
    monkeypatch.setattr("pipeplan.cli.streams.select.select", lambda *_: None)
    slow = Slow()
    stream = io.BufferedWriter(Sink(slow))
    stream.write(b"the whole answer")
    stream.flush()
    assert bytes(slow.taken) == b"the whole answer"
