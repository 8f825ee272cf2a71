"""Overlapped pairs whose segments are known have two lanes: their computation and their communication."""

import numpy as np
import pytest

import pipeplan
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.drawing import LIGHT
from pipeplan.drawing.static import figure_of
from pipeplan.drawing.view import View
from pipeplan.model import Kind
from tests.drawing.test_static import boxes, fills
from tests.simulation.test_communication import SEGMENTS


def view(schedule="1f1b-overlap", microbatches=4, **settings) -> View:
    settings = {"segments": SEGMENTS} | settings
    return view_of_result(pipeplan.simulate(schedule, ranks=2, microbatches=microbatches, **settings))


def test_lanes_are_written_once_for_each_pair_of_stages():
    few, many = (view("dualpipev", count).to_json_dict()["pairs"] for count in (4, 40))
    assert few == many
    assert [*zip(few["forward"], few["backward"], strict=True)] == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert few["offsets"][-1] == len(few["begin"]) == 4 * 6  # two computations and a message of each op
    assert few["communication"] == "all-to-all"


@pytest.mark.parametrize(
    "settings", [{"segments": None}, {"schedule": "1f1b"}, {"segments": None, "overlap_times": 2.5}]
)
def test_without_segments_or_pairs_a_page_has_no_lanes(settings):
    assert "pairs" not in view(**settings).to_json_dict()


def test_pictures_show_them_below_pairs_that_are_wide_enough():
    wide = view()
    lower = [
        float(box[3]) % 1 for path in fills(figure_of(wide).axes[0])[LIGHT.shades(Kind.F, 1)[0]] for box in boxes(path)
    ]
    assert {round(edge, 3) for edge in lower} == {0.43, 0.89, 0.325}  # alone, in a pair, on the compute lane
    text = [text.get_text() for text in figure_of(wide).texts]
    assert "below pairs: their computation, then their all-to-all" in text
    narrow = view(microbatches=60)
    assert not any("below pairs" in text.get_text() for text in figure_of(narrow).texts)
    assert len(np.unique(narrow.bars.part)) == 3


@pytest.mark.parametrize("size", ["slide", "page", "column"])
def test_the_note_on_lanes_stands_where_they_are_drawn(size):
    for ranks in (2, 4, 24):
        result = pipeplan.simulate("1f1b-overlap", ranks=ranks, microbatches=ranks, segments=SEGMENTS)
        figure = figure_of(view_of_result(result), size=size)
        edges = {
            round(float(box[3]) % 1, 3)
            for paths in fills(figure.axes[0]).values()
            for box in np.vstack(list(map(boxes, paths)))
        }
        assert (0.325 in edges) == any("below pairs" in text.get_text() for text in figure.texts)
