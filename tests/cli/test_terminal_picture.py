"""The picture in the terminal, the options of pictures, and pictures in letters."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread

import pipeplan
from pipeplan.drawing import DARK, SIZES
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.model import Kind

ROW = "rank 1 ..F0B0--F1B1--...."
SMALL = "simulate 1f1b -p 2 -m 2 -f 1"


@pytest.fixture
def seen(run, monkeypatch):
    """What a command writes to a terminal without colours, 80 columns wide and 24 lines high."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("LINES", "24")

    def seen(line: str) -> str:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        _, shown, _ = run(line)
        return str(shown)

    return seen


def test_a_terminal_shows_the_picture_above_the_table(seen):
    shown = seen(SMALL)
    assert shown.index(ROW) < shown.index("lower bound")
    Path("none.yaml").write_text("no_visualization: true\n")
    for options in ("--json", "--no-visualization", "-c none.yaml"):
        assert "rank 1 " not in seen(f"{SMALL} {options}")


def test_a_pipe_gets_the_picture_of_one_schedule_in_letters_and_none_of_several(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = run(SMALL)[1]
    assert shown.index(ROW) < shown.index("lower bound")
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 60
    assert "rank 1 " not in run(f"{SMALL} --no-visualization")[1]
    assert ROW not in run("compare 1f1b -p 2 -m 2 -f 1")[1]


def test_a_comparison_shows_as_many_pictures_as_fit_on_the_screen(seen, monkeypatch):
    line = "compare gpipe 1f1b zb-h1 zb-h2 -p 4 -m 4"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert len(re.findall("^rank 3 ", seen(line), re.MULTILINE)) == 3
    monkeypatch.setenv("LINES", "5")
    assert len(re.findall("^rank 3 ", seen(line), re.MULTILINE)) == 1


def test_a_real_terminal_gets_colours(tmp_path):
    far, near = pty.openpty()
    command = [sys.executable, "-m", "pipeplan", *SMALL.split(), "--theme", "dark"]
    environment = os.environ | {"COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    subprocess.run(command, stdout=near, stderr=subprocess.DEVNULL, cwd=tmp_path, env=environment, check=True)
    os.close(near)
    shown = b""
    try:
        while part := os.read(far, 65536):
            shown += part
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(far)
    forward = DARK.shades(Kind.F, 1)[0]
    assert ("48;2;" + ";".join(str(int(forward[at : at + 2], 16)) for at in (1, 3, 5))).encode() in shown


def test_pictures_in_letters_are_files_too(run):
    assert run("compare 1f1b gpipe -p 2 -m 2 -o both.txt")[0] == 0
    pictures = Path("both.txt").read_text()
    assert ROW in pictures
    assert pictures.count("\n\n") == 1
    assert pictures.endswith("\n")


def test_a_plain_picture_is_lower_in_python_and_in_the_shell(run):
    pipeplan.simulate("1f1b", ranks=2, microbatches=2).save("full.png")
    pipeplan.simulate("1f1b", ranks=2, microbatches=2).save("plain.png", plain=True)
    assert run("simulate 1f1b -p 2 -m 2 --plain --no-visualization -o shell.png")[0] == 0
    assert imread("plain.png").shape[0] < imread("full.png").shape[0]
    assert Path("shell.png").read_bytes() == Path("plain.png").read_bytes()


def test_python_takes_theme_and_size_too():
    for answer in (
        pipeplan.simulate("1f1b", ranks=2, microbatches=2),
        pipeplan.compare("1f1b", ranks=2, microbatches=2),
    ):
        answer.save("x.png", theme="dark", size="column")
        assert imread("x.png").shape[1] == pytest.approx(SIZES["column"].width / 72 * SIZES["column"].dpi, abs=1)
        assert to_hex(imread("x.png")[0, 0]) == DARK.page
    with pytest.raises(UnknownNameError, match="did you mean 'column'"):
        answer.save("x.png", size="colum")  # type: ignore[arg-type]
