"""Names are text in every picture, and a reader's own matplotlib settings do not reach it."""

import io
import json
import re
from dataclasses import replace
from itertools import cycle

import matplotlib
import pytest
from matplotlib.figure import Figure

from pipeplan.drawing import View, view_of
from pipeplan.drawing.front import FrontView, draw_front, save_front
from pipeplan.drawing.html import html_page
from pipeplan.drawing.static import draw, figure_of, html_of, save_picture
from pipeplan.drawing.style import fitted
from pipeplan.drawing.text import text_of
from pipeplan.model.values import cell_width, one_line
from tests.drawing.examples import one_f_one_b
from tests.names import ODD

FRONT = FrontView("front $", "memory ($)", "time $t$", [(1.0, 2.0), (2.0, 1.0)], [1.0, 1.0], [("a$x$b", 1.5, 2.5)])


def example_view() -> View:
    return view_of(one_f_one_b())


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if not text.get_parse_math()]


@pytest.mark.parametrize(("name", "ending"), list(zip(ODD[::3], cycle(("png", "svg", "pdf")))))
def test_a_name_is_drawn_as_it_stands(name, ending):
    view = replace(example_view(), title=name, unit="$s$")
    figure = figure_of(view)
    title = fitted(name, 10, 300, bold=True)[:9].strip()
    assert any(text.startswith(title) for text in texts(figure))
    assert "time ($s$)" in texts(figure)
    save_picture(view, io.BytesIO(), format=ending, size="column")
    own = draw(view).figure
    assert isinstance(own, Figure)
    assert any(text.startswith(title) for text in texts(own))


def test_names_in_a_front_are_drawn_as_they_stand():
    figure = draw_front(FRONT).figure
    assert isinstance(figure, Figure)
    assert {"front $", "memory ($)", "time $t$", "a$x$b"} <= set(texts(figure))


def test_the_terminal_shows_a_name_in_one_line_with_its_figures():
    for name in ODD:
        view = replace(example_view(), title=name, unit="m\ns")
        for width in (80, 60):
            headline, *_ = text_of(view, width=width).split("\n")
            assert headline.isprintable() or "\u200d" in headline, name
            assert headline.endswith(": simulated, makespan 9 m\\ns, bubble 33.3%"), name
            assert cell_width(headline) <= width, name


@pytest.mark.parametrize("name", ODD)
def test_no_name_breaks_out_of_a_page_or_a_fragment(name):
    view = replace(example_view(), title=name, unit=name)
    page = html_page(view)
    before_the_script = page.partition("<script>")[0]
    assert before_the_script.count("</script>") == before_the_script.count("</title>") == 1
    assert before_the_script.count("<b>") == 0
    (data,) = re.findall(r'<script type="application/json" id="pipeplan-data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["views"][0]["title"] == one_line(name)
    fragment = html_of(view)
    assert (fragment.count("<"), fragment.count(">"), fragment.count('"')) == (1, 1, 6)


def test_what_the_font_has_no_sign_for_is_a_mark():
    assert fitted("模型 é", 10, 1000) == "\ufffd\ufffd é"


OWN = {"font.size": 40, "axes.facecolor": "red", "savefig.dpi": 10, "svg.fonttype": "none", "figure.subplot.left": 0.4}


def test_no_settings_of_the_reader_change_a_picture():
    def drawn() -> list[bytes]:
        files = io.BytesIO(), io.BytesIO()
        save_picture(example_view(), files[0], format="pdf")
        save_front(FRONT, files[1], format="svg")
        return [file.getvalue() for file in files]

    with matplotlib.rc_context(OWN):
        changed = drawn()
    assert changed == drawn()
