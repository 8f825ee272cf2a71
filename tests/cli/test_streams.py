"""Streams that are full, closed, unread or narrow: no answer is lost in silence, and no message that is lost changes one."""

import io
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeplan.cli.process import Sink, _sensible_width, _text
from tests.cli.processes import ran

REFUSED = re.compile(r"pipeplan: the answer cannot be written: [^\n]+\n")


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "plan.csv").write_text("0F0,0B0\n1F0,1B0\n")


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


def test_an_answer_that_cannot_be_written_fails_the_command(streams):
    for how in ({"stdout": streams["full"]}, {"stdout": streams["read-only"]}, {"closed": (1,)}):
        refused = ran("schedules gpipe", **how)
        assert refused.returncode == 2
        assert REFUSED.fullmatch(refused.stderr)


@pytest.mark.parametrize("line", ["export plan.csv -o plan.json", "diff plan.csv absent.json"])
def test_a_command_without_an_answer_needs_no_standard_output(plan, run, line):
    code, _, err = run(line)
    closed = ran(line, closed=(1,))
    assert (closed.returncode, closed.stderr) == (code, err)


def test_a_lost_message_changes_no_answer(plan, run):
    line = "simulate plan.csv -f 1 --json"
    code, out, err = run(line)
    assert err.startswith("warning: ")
    silent = ran(line, closed=(0, 2))
    assert (silent.returncode, silent.stdout) == (code, out)


def test_a_reader_who_has_seen_enough_changes_no_exit_code(run, streams):
    line = "compare --memory-limit 1act -p 2 -m 2"
    code, _, err = run(line)
    unread = ran(line, stdout=streams["unread"])
    assert (unread.returncode, unread.stderr) == (code, err)


def test_a_closed_stream_gets_no_file(tmp_path):
    assert ran("export -p 1 -m 1 --to torch-csv -o a.csv", closed=(0, 1, 2)).returncode == 0
    assert (tmp_path / "a.csv").read_text() == "0F0,0B0\n"


def test_help_and_tables_end_at_any_width_with_all_their_letters(run, monkeypatch):
    for line, widths in {"help export": ("80", "0", "2", "9" * 9), "explain -p 2 -m 2": ("80", "²")}.items():
        usual = None
        for columns in widths:
            monkeypatch.setenv("COLUMNS", columns)
            code, out, _ = run(line)
            assert code == 0
            assert max(map(len, out.splitlines())) <= 1_000
            usual = usual or letters(out)
            assert letters(out) == usual


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        *((said, None) for said in ("0", "-5", "²", "")),
        *(("٣", 30), ("80", 80), ("9" * 5_000, 1_000)),
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


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_what_an_encoding_lacks_is_spelt(encoding):
    raw = io.BytesIO()
    raw.fileno = lambda: 1  # type: ignore[method-assign]
    stream = _text(Sink(raw), SimpleNamespace(encoding=encoding), by_line=False)  # type: ignore[arg-type]
    stream.write("… é \udcff\n")
    stream.flush()
    accent = "é" if encoding != "ascii" else r"\xe9"
    dots = "…" if encoding.startswith("utf") else "..."
    assert raw.getvalue().decode(encoding) == f"{dots} {accent} \\udcff\n"


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
    monkeypatch.setattr("pipeplan.cli.process.select.select", lambda *_: None)
    slow = Slow()
    stream = io.BufferedWriter(Sink(slow))
    stream.write(b"the whole answer")
    stream.flush()
    assert bytes(slow.taken) == b"the whole answer"
