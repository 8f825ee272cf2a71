import math
from itertools import combinations, product

import pytest

from pipeplan.drawing import DARK, LIGHT
from pipeplan.drawing.theme import contrast, linear_rgb, oklch, readable_on
from pipeplan.model import Kind
from pipeplan.model.op import COMPUTE_KINDS, HOST_KINDS
from tests.drawing.color_vision import VISION, distance, oklab

themes = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
visions = pytest.mark.parametrize("vision", VISION)


@themes
@visions
def test_no_shade_of_a_kind_looks_like_a_shade_of_another(theme, vision):
    for shades in [1, 2, 4, 8]:
        for one, other in combinations(COMPUTE_KINDS, 2):
            pairs = product(theme.shades(one, shades), theme.shades(other, shades))
            assert min(distance(one_fill, other_fill, vision) for one_fill, other_fill in pairs) > 0.075, (one, other)


@themes
@visions
def test_copies_look_like_nothing_else(theme, vision):
    fills = {kind: theme.shades(kind, 4) for kind in Kind}
    for copy in HOST_KINDS:
        others = [fill for kind in Kind if kind != copy for fill in fills[kind]]
        assert min(distance(fills[copy][0], other, vision) for other in (*others, theme.lane)) > 0.075, copy


@themes
@visions
def test_two_chunks_or_directions_of_a_kind_look_different(theme, vision):
    for kind in COMPUTE_KINDS:
        dark, light = theme.shades(kind, 2)
        assert distance(dark, light, vision) > 0.09, kind
        assert all(distance(*pair, vision) > 0.025 for pair in combinations(theme.shades(kind, 4), 2)), kind


@themes
@visions
def test_reasons_and_curves_look_different(theme, vision):
    assert all(distance(*pair, vision) > 0.08 for pair in combinations(theme.reasons.values(), 2))
    assert all(distance(*pair, vision) > 0.08 for pair in combinations((*theme.curves, theme.limit), 2))


@themes
def test_labels_and_text_can_be_read(theme):
    fills = [fill for kind in Kind for fill in theme.shades(kind, 4)]
    assert min(contrast(readable_on(fill), fill) for fill in fills) >= 4.5
    assert contrast(theme.text, theme.page) >= 7
    assert contrast(theme.faint, theme.page) >= 4.5


@themes
def test_the_page_gets_every_color(theme):
    written = theme.to_json_dict(3)
    assert set(written["kinds"]) == set(Kind.__members__)
    assert {len(kind["fill"]) for kind in written["kinds"].values()} == {3}
    assert set(written["reasons"]) == set(theme.reasons)


def test_known_colors():
    assert oklch(1.0, 0.0, 0.0) == "#ffffff"
    assert oklch(0.0, 0.0, 0.0) == "#000000"
    assert oklab(linear_rgb("#ff0000")) == pytest.approx([0.6280, 0.2249, 0.1258], abs=1e-4)
    there_and_back = [0.6, 0.1 * math.cos(math.radians(250)), 0.1 * math.sin(math.radians(250))]
    assert oklab(linear_rgb(oklch(0.6, 0.1, 250))) == pytest.approx(there_and_back, abs=2e-3)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
