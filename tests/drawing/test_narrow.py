"""Lanes whose ops are too narrow to draw are divided among what ranks spend their time on."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from pipeplan.drawing import LIGHT, view_of
from pipeplan.drawing.narrow import _MOST_SHADES, IDLE, narrow_note, shares_of, together_in, too_narrow
from pipeplan.drawing.static import draw, figure_of
from pipeplan.foundation.readable import Times
from pipeplan.model import Kind
from tests.drawing.examples import one_f_one_b, overlapped, view_named


def test_shares_sum_to_one_and_hold_the_whole_time_of_each_kind():
    view = view_named("zbv", 4, 64)
    shares = shares_of(view, 4000)
    assert shares.codes[-1] == IDLE
    assert shares.share.sum(axis=0) == pytest.approx(1)
    shades = view.copies * view.chunks
    for code, share in zip(shares.codes[:-1].tolist(), shares.share[:-1], strict=True):
        bars = view.bars
        here = (bars.kind == code // shades) & (view.shade == code % shades)
        spent = np.bincount(bars.lane[here], (bars.end - bars.start)[here], minlength=4)
        assert share.mean(axis=1) * view.makespan == pytest.approx(spent, rel=0.05)


def test_a_pair_shares_its_lane_evenly_and_leaves_nothing_idle():
    view = view_of(overlapped())
    shares = shares_of(view, 900)
    forward, backward, idle = shares.share[:, 0]
    paired = slice(330, 370)  # around 3.5, where a window of all ops' width is mostly that of the pair
    assert forward[paired] == pytest.approx(1 - backward[paired] - idle[paired])
    assert shares.codes.tolist() == [Kind.F, Kind.B, IDLE]
    assert idle.max() == pytest.approx(0, abs=1e-9)


def test_lanes_are_shared_where_they_would_be_too_low():
    assert together_in(8, 400, 10) == 1
    assert together_in(64, 400, 10) == 3
    assert together_in(64, 60, 10, one=True) == 64


@pytest.mark.parametrize("chunks", [_MOST_SHADES, 200])
def test_chunks_beyond_a_few_dozen_share_their_colours(chunks):
    shares = shares_of(view_named("interleaved-1f1b", 2, 4, chunks), moments=50)
    assert (
        len(shares.codes) == 2 * _MOST_SHADES + 1
        if chunks == _MOST_SHADES
        else len(shares.codes) <= 2 * _MOST_SHADES + 1
    )
    assert shares.share.sum(axis=0) == pytest.approx(1)


def test_wide_ops_are_drawn_one_by_one():
    view = view_of(one_f_one_b())
    assert not too_narrow(view, 10)
    assert too_narrow(view, 0.1)
    assert not draw(view).images
    assert narrow_note([view], 10, Times.of([9], "")) == ""


def test_only_colours_of_the_legend_are_in_the_image():
    view = view_named("zbv", 8, 512)
    figure = figure_of(view)
    (image,) = figure.axes[0].images
    result = {to_hex(pixel) for pixel in np.unique(np.asarray(image.get_array()).reshape(-1, 3), axis=0) / 255}
    known = {LIGHT.lane, LIGHT.page}.union(*(LIGHT.shades(kind, 2) for kind in view.kinds))
    assert result <= known
    assert {LIGHT.lane, *LIGHT.shades(Kind.F, 2)} <= result
    note = figure.texts[-1].get_text()
    assert note.startswith("ops are too narrow to draw: ")
