"""Names are text in every picture, and a reader's own matplotlib settings do not reach it."""

import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from pipeplan.drawing import View, view_of
from pipeplan.drawing.front import FrontView, draw_front, save_front
from pipeplan.drawing.static import draw, figure_of, save_picture
from pipeplan.drawing.style import LONGEST_NAME, plain
from pipeplan.drawing.text import text_of
from tests.drawing.examples import one_f_one_b

NAMES = [
    "$",
    "a$x$b",
    "run_$1_$2.csv",
    r"$\frac{1}{",
    "[bold]x[/bold]",
    "</script><b>&amp;",
    "%s {x} {0}",
    "x^2_3",
]
FRONT = FrontView("front $", "memory ($)", "time $t$", [(1.0, 2.0), (2.0, 1.0)], [1.0, 1.0], [("a$x$b", 1.5, 2.5)])


def example_view() -> View:
    return view_of(one_f_one_b())


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if not text.get_parse_math()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_name_is_drawn_as_it_stands(name, ending):
    view = replace(example_view(), title=name, unit="$s$")
    figure = figure_of(view)
    assert {name, "time ($s$)"} <= set(texts(figure))
    save_picture(view, io.BytesIO(), format=ending)
    own = draw(view).figure
    assert isinstance(own, Figure)
    assert name in texts(own)


def test_names_in_a_front_are_drawn_as_they_stand(tmp_path):
    figure = draw_front(FRONT).figure
    assert isinstance(figure, Figure)
    assert {"front $", "memory ($)", "time $t$", "a$x$b"} <= set(texts(figure))
    save_front(FRONT, tmp_path / "front.svg")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("two\nlines\u202eturned\x07", "two\ufffdlines\ufffdturned\ufffd"), ("größe 模型 🚀", "größe 模型 🚀")],
)
def test_what_breaks_a_line_or_turns_it_is_a_mark(name, shown):
    assert plain(name) == shown
    assert shown in text_of(replace(example_view(), title=name))


def test_a_long_name_keeps_its_ends():
    assert len(plain("x" * 1_000_000)) <= LONGEST_NAME
    assert plain("begin" + "x" * 1000 + "end").startswith("begin")
    assert plain("begin" + "x" * 1000 + "end").endswith("end")


OWN = """
text.usetex: True
font.size: 40
axes.facecolor: red
path.sketch: 10, 20, 5
savefig.dpi: 10
svg.fonttype: none
figure.subplot.left: 0.4
"""


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_readers_own_settings_change_no_byte(ending):
    def drawn() -> bytes:
        file = io.BytesIO()
        save_picture(example_view(), file, format=ending)
        return file.getvalue()

    before = drawn()
    theirs = {"axes.facecolor": "red", "font.size": 40, "path.sketch": (10, 20, 5), "savefig.pad_inches": 3}
    with matplotlib.rc_context(theirs):
        assert drawn() == before


@pytest.mark.parametrize("settings", [OWN, "no such thing\n\x00: [", None])
def test_the_command_reads_no_settings_of_the_user(tmp_path, settings):
    def command(folder: Path, environment: dict[str, str]) -> bytes:
        folder.mkdir()
        shell = [sys.executable, "-m", "pipeplan", "simulate", "-p", "2", "-m", "2", "-o", "x.svg"]
        whole = os.environ | environment
        done = subprocess.run(shell, cwd=folder, env=whole, capture_output=True, text=True, check=True)
        assert done.stderr.splitlines() == ["wrote x.svg"]
        return (folder / "x.svg").read_bytes()

    environment = {"MPLBACKEND": "nonsense"}
    if settings is not None:
        (tmp_path / "matplotlibrc").write_text(settings)
        environment["MATPLOTLIBRC"] = str(tmp_path / "matplotlibrc")
    (tmp_path / "file").write_text("")
    environment["MPLCONFIGDIR"] = str(tmp_path / "file" / "below")
    assert command(tmp_path / "theirs", environment) == command(tmp_path / "ours", {})
