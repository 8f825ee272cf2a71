"""The picture of a front: every point has its name, nothing lies on anything, what is far off is cut with a mark."""

from itertools import combinations

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from pipeplan.drawing.front import FrontView, draw_front
from pipeplan.drawing.front_labels import cut_above

FEW = FrontView(
    title="front",
    memory_label="peak memory (GiB)",
    time_label="makespan",
    points=[(10.0, 40e3), (20.0, 30e3), (30.0, 25e3)],
    bounds=[35e3, 28e3, 25e3],
    marks=[("1f1b", 20.0, 36e3), ("zb-h1", 30.0, 33e3), ("zb-h1 at 4 activations", 30.0, 33e3)],
    unit="us",
)
CROWD = FrontView(
    title="front",
    memory_label="peak memory (activations)",
    time_label="makespan",
    points=[(1.0, 40.0), (2.0, 30.0)],
    bounds=[],
    marks=[(f"a-schedule-with-a-long-name-{place}", 2.0 + 0.01 * place, 30.0 + 0.1 * place) for place in range(30)],
)


def drawn(ax) -> None:
    assert isinstance(ax.figure, Figure)
    ax.figure.draw_without_rendering()


def names(ax) -> dict[str, Annotation]:
    result = [child for child in ax.texts if isinstance(child, Annotation) and child.get_text()]
    return {child.get_text(): child for child in result}


def test_points_and_marks_have_their_names_beside_them():
    texts = names(draw_front(FEW))
    assert set(texts) == {"40", "30", "25", "1f1b", "zb-h1 (2\N{NO-BREAK SPACE}variants)"}


@pytest.mark.parametrize("view", [FEW, CROWD])
@pytest.mark.parametrize("size", ["page", "column"])
def test_no_name_lies_on_another_or_on_a_point(view, size):
    ax = draw_front(view, size=size)
    drawn(ax)
    boxes = [child.get_window_extent() for child in names(ax).values()]
    assert len(boxes) > 4
    for one, other in combinations(boxes, 2):
        assert not one.shrunk(0.9, 0.7).overlaps(other.shrunk(0.9, 0.7))
    for _, peak, time in view.marks:
        x, y = ax.transData.transform((peak, time))
        assert not any(box.shrunk(0.9, 0.8).contains(x, y) for box in boxes)


def test_a_crowd_has_numbers_and_a_key():
    ax = draw_front(CROWD)
    (key,) = [other for other in ax.figure.axes if other is not ax]
    texts = [text.get_text() for text in key.texts]
    assert texts[:4] == ["1", "a-schedule-with-a-long-name-0", "2", "a-schedule-with-a-long-name-1"]
    assert {"40 \N{UPWARDS ARROW}", "1"} <= set(names(ax))


def test_few_values_far_off_are_cut_and_many_are_not():
    assert cut_above([26, 27, 31, 33, 41, 66]) == 41
    assert cut_above([26, 27, 31, 33, 41, 45]) is None
    assert cut_above([1, 2, 50, 60, 70, 80]) is None
    assert cut_above([5, 5]) is None
