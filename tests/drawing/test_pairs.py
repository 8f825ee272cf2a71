"""Overlapped pairs whose segments are known have two lanes: their computation and their communication."""

import pytest

import pipeplan
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.drawing.view import View
from pipeplan.model import Kind
from tests.simulation.test_communication import SEGMENTS


def view(schedule="1f1b-overlap", microbatches=4, **settings) -> View:
    settings = {"segments": SEGMENTS} | settings
    return view_of_result(pipeplan.simulate(schedule, ranks=2, microbatches=microbatches, **settings))


def test_lanes_are_written_once_for_each_pair_of_stages():
    few, many = (view("dualpipev", count).to_json_dict()["pairs"] for count in (4, 40))
    assert few == many
    assert [*zip(few["forward"], few["backward"], strict=True)] == [(0, 3), (1, 2), (2, 1), (3, 0)]
    pieces = [*zip(few["lane"], few["kind"], strict=True)]
    assert pieces[:4] == [(0, Kind.B), (1, Kind.B), (0, Kind.F), (1, Kind.F)]
    assert few["offsets"][-1] == len(pieces) == 4 * 6  # two computations and a message of each op
    assert few["communication"] == "all-to-all"


@pytest.mark.parametrize(
    "settings", [{"segments": None}, {"schedule": "1f1b"}, {"segments": None, "overlap_times": 2.5}]
)
def test_without_segments_or_pairs_a_page_has_no_lanes(settings):
    assert "pairs" not in view(**settings).to_json_dict()
