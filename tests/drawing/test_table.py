"""Several schedules are the rows of a table."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from pipeplan.drawing import LIGHT
from pipeplan.drawing.static import figure_of
from tests.drawing.examples import view_named


@pytest.fixture(scope="module")
def views():
    views = [view_named(name, 4, 8, memory=True) for name in ("zb-h1", "1f1b", "gpipe")]
    curves = [view.memory for view in views]
    assert all(held is not None for held in curves)
    limited = [replace(held, limit=np.full(4, 4.0)) for held in curves if held is not None]
    return [replace(view, unit="us", costs="mine", memory=held) for view, held in zip(views, limited, strict=True)]


def words(figure):
    return [text.get_text() for text in figure.texts]


def test_a_row_says_the_name_the_makespan_what_is_idle_and_the_peak(views):
    texts = words(figure_of(views))
    assert texts[:2] == [
        "3 schedules, fastest first, over the memory limit last",
        "4 ranks, 8 microbatches · mine · simulated",
    ]
    assert [texts[at] for at in range(5, 17, 4)] == ["zb-h1", "1f1b", "gpipe"]
    assert texts.count("1 chunk per rank") == 3
    assert "+22.2% · bubble 27.3%" in texts
    assert texts[-4:-1] == ["4", "4", "8"]


def test_changes_are_against_the_fastest_that_fits(views):
    over = replace(views[0], memory=replace(views[0].memory, limit=np.full(4, 1.0)))
    texts = words(figure_of([views[1], over, views[2]]))
    assert f"{100 * (over.makespan / views[1].makespan - 1):+.1f}% · bubble" in " ".join(texts)
    assert " ".join(texts).count("% · bubble") == 1


def test_timelines_share_one_axis_and_what_is_over_the_limit_is_told_apart(views):
    figure = figure_of(views)
    back, *rows, memory = figure.axes
    assert {ax.get_xlim() for ax in (back, *rows)} == {(0, 33)}
    assert back.get_xlabel() == "time (us)"
    bars = [bar for bar in memory.patches if isinstance(bar, Rectangle)]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [LIGHT.faint, LIGHT.faint, LIGHT.limit]
    assert [bar.get_width() for bar in bars] == [4, 4, 8]
