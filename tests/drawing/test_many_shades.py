"""Pictures of very many chunks and ranks: what nobody can tell apart is drawn as one."""

import numpy as np

import pipeplan
from pipeplan.drawing import color
from pipeplan.drawing.narrow import _MOST_SHADES, shares_of
from pipeplan.drawing.sizes import SIZES, TALLEST
from pipeplan.drawing.theme import LIGHT
from pipeplan.model import Kind


def test_chunks_beyond_a_few_dozen_share_their_colours():
    view = pipeplan.simulate("interleaved-1f1b", ranks=2, microbatches=4, chunks=200).view()
    shares = shares_of(view, moments=50)
    assert len(shares.codes) <= 2 * _MOST_SHADES + 1
    np.testing.assert_allclose(shares.share.sum(axis=0), 1.0, atol=1e-9)


def test_few_chunks_keep_their_own():
    view = pipeplan.simulate("interleaved-1f1b", ranks=2, microbatches=4, chunks=_MOST_SHADES).view()
    assert len(shares_of(view, moments=50).codes) == 2 * _MOST_SHADES + 1


def test_a_picture_is_no_higher_for_ranks_that_nobody_can_see():
    for size in SIZES.values():
        assert size.lane_height(65_536) * 65_536 <= TALLEST + 1e-6
        assert size.whole(TALLEST) * size.dpi / 72 < 2**14


def test_chunks_that_share_a_shade_share_its_ink(monkeypatch):
    """Thousands of chunks cost what their shades do."""
    compared: list[str] = []
    contrast = color.contrast

    def counted(one: str, other: str) -> float:
        compared.append(other)
        return contrast(one, other)

    monkeypatch.setattr(color, "contrast", counted)
    color.readable_on.cache_clear()
    LIGHT.to_json_dict(20_000)
    assert 0 < len(compared) <= 2 * len(Kind) * color.MOST_SHADES
