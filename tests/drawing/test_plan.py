"""The picture of a plan: its bars are as long as what they stand for, and every theme and size can be drawn."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pipeplan.drawing import DARK, LIGHT, MEMORY_PARTS, TIME_PARTS
from pipeplan.drawing.front import FrontView
from pipeplan.drawing.plan import PlanView, draw_plan, save_plan
from pipeplan.extensions.planning import GpuMemory, StepTime
from pipeplan.foundation.records import titles_of

FRONT = FrontView(
    title="front",
    memory_label="GiB",
    time_label="s",
    points=[(20.0, 9.0), (60.0, 6.0)],
    bounds=[],
    marks=[("1", 50.0, 7.0)],
    ours="ours",
    others="others",
)
VIEW = PlanView(
    title="a model on a cluster",
    front=FRONT,
    times=[("best", {"compute": 5.0, "bubble": 1.0}), ("1: other", {"compute": 5.0, "bubble": 2.0, "tensor": 0.5})],
    memory=[(str(rank), {"weights": 10.0, "activations": 5.0 * rank}) for rank in range(6)],
    time_titles=titles_of(StepTime),
    memory_titles=titles_of(GpuMemory),
    limit=72.0,
)


def axes_of(view: PlanView):
    left, times, memory = sorted(draw_plan(view).axes, key=lambda ax: (ax.get_position().x0, -ax.get_position().y0))
    return left, times, memory


def test_a_narrow_page_has_its_parts_below_each_other():
    figure = draw_plan(VIEW, size="column")
    FigureCanvasAgg(figure).draw()
    places = [place for ax in figure.axes if (place := ax.get_tightbbox()) is not None]
    assert len(places) == 3
    for above, below in pairwise(sorted(places, key=lambda place: -place.y0)):
        assert above.y0 >= below.y1
    assert max(place.x1 for place in places) <= figure.bbox.x1


def lengths(ax) -> dict[str, list[float]]:
    return {bars.get_label(): [bar.get_width() for bar in bars] for bars in ax.containers}


def test_bars_are_as_long_as_what_they_stand_for():
    _, times, memory = axes_of(VIEW)
    assert lengths(times) == {"compute": [5.0, 5.0], "exposed TP communication": [0.0, 0.5], "bubble": [1.0, 2.0]}
    assert lengths(memory) == {"weights": [10.0] * 6, "activations": [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]}
    starts = {bars.get_label(): [bar.get_x() for bar in bars] for bars in times.containers}
    assert starts["bubble"] == [5.0, 5.5]
    assert {*memory.lines[0].get_xdata()} == {72.0}, "the limit is a line across all ranks"


def test_the_front_shows_what_is_alike_and_the_limit_unless_it_is_far():
    alike = replace(FRONT, band=6.18, band_title="within 3%", limit=(72.0, "limit"))
    for front, limits in ((alike, 1), (replace(alike, limit=(200.0, "limit")), 0)):
        left, _, _ = axes_of(replace(VIEW, front=front))
        titles = [text.get_text() for text in left.get_legend().get_texts()]
        assert titles == ["ours", "others", "within 3%", *["limit"] * limits]
        assert [patch.get_y() for patch in left.patches] == [6.0]
        assert left.patches[0].get_height() == pytest.approx(0.18)


def test_where_nothing_fits_there_is_no_front():
    left, _, _ = axes_of(replace(VIEW, front=None))
    assert [text.get_text() for text in left.texts] == ["no configuration fits"]


def test_a_look_gives_the_same_bytes_twice():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        save_plan(VIEW, file, theme="dark", size="slide", format="svg")
    first, second = (file.getvalue() for file in files)
    assert first == second
    assert b"GiB on each pipeline rank" in first


@pytest.mark.parametrize(
    ("record", "parts"), [(StepTime, TIME_PARTS), (GpuMemory, MEMORY_PARTS)], ids=["time", "memory"]
)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_parts_of_one_bar_have_titles_and_colours_of_their_own(record, parts, theme):
    colours = [theme.part(like) for like in parts.values()]
    assert len(set(colours)) == len(colours)
    titles = titles_of(record)
    assert list(titles) == list(parts) == list(record.__struct_fields__)
    assert len(set(titles.values())) == len(titles)
