"""A schedule that is typed or piped: ``-`` stands for it in every command that takes a file."""

import io
import sys
from types import SimpleNamespace

PLAN = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"


def test_a_schedule_can_be_piped_into_every_command(run, monkeypatch):
    for line, code, says in (
        ("simulate - --json", 0, '"makespan": 9'),
        ("check -", 0, "is valid"),
        ("explain - -f 2", 0, "critical path"),
        ("compare - 1f1b -p 2 -m 2", 0, "1f1b"),
        ("export - --to torch-csv", 0, "0F0,0F1,0B0,0B1"),
        ("simulate -", 0, "pipeline_stdin.png"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAN.encode())))
        found, out, err = run(line)
        assert (found, says in out + err) == (code, True), out + err


def test_what_is_wrong_with_it_is_told_at_its_place(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0F0 0B0\n1B0 1F0\n")))
    code, out, err = run("check -")
    assert (code, err) == (1, "")
    assert "rank 1, op 0 (1B0)" in out
    assert "standard input" in out


class Unreadable(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        raise OSError(9, "Bad file descriptor")


def test_a_standard_input_that_cannot_be_read_is_a_sentence(run, monkeypatch):
    for stdin, said in (
        (None, "is closed"),
        (SimpleNamespace(buffer=Unreadable()), "cannot be read (bad file descriptor)"),
    ):
        monkeypatch.setattr(sys, "stdin", stdin)
        code, out, err = run("check -")
        assert (code, out) == (2, "")
        assert err == f"pipeplan: standard input {said}: pipe a schedule or name a file\n"


def test_where_it_cannot_be_the_message_says_what_was_typed(run):
    for line, said in (
        ("export plan.csv -", "'-' is standard input: the output is a file, whose suffix selects the format"),
        ("simulate -p -", "-p: invalid integer '-': expected a whole number such as 4"),
        ("simulate -f -", "-f: invalid number '-': expected a number such as 0.5"),
    ):
        assert run(line) == (2, "", f"pipeplan: {said}\n")
