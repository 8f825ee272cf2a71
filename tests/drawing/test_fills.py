"""Bars have the colour of their kind, or of their ratio."""

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.drawing import DARK, LIGHT, Ratios, view_of
from pipeplan.drawing.axes import legend_entries
from pipeplan.drawing.theme import colored, scale_title
from tests.drawing.examples import one_f_one_b

VALUES = np.array([1.0, 2, 4, 0.5, 0.25, 0, 1, 1])


@pytest.fixture
def view():
    return replace(view_of(one_f_one_b()), ratios=Ratios(values=VALUES, reach=2.0))


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_a_ratio_has_its_place_between_the_ends_of_the_scale(view, theme):
    low, middle, high = theme.ratios
    result = {fill: chosen.tolist() for fill, chosen in colored(view, theme)}
    assert result == {low: [3, 4], middle: [0, 6, 7], high: [1, 2], theme.lane: [5]}


def test_the_scale_stands_in_the_legend_instead_of_the_kinds(view):
    titles = [entry.title for entry in legend_entries([view], LIGHT)]
    assert titles == ["measured / planned: faster (0.50) to slower (2.00)", "idle"]
    both = [entry.title for entry in legend_entries([view_of(one_f_one_b()), view], LIGHT)]
    assert both == ["forward", "backward", scale_title(view.ratios), "idle"]
