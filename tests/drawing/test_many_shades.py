"""Pictures of very many chunks and ranks: what nobody can tell apart is drawn as one."""

import numpy as np

import pipeplan
from pipeplan.answers.simulating.result import view_of_result
from pipeplan.drawing.narrow import _MOST_SHADES, shares_of


def test_chunks_beyond_a_few_dozen_share_their_colours():
    view = view_of_result(pipeplan.simulate("interleaved-1f1b", ranks=2, microbatches=4, chunks=200))
    shares = shares_of(view, moments=50)
    assert len(shares.codes) <= 2 * _MOST_SHADES + 1
    np.testing.assert_allclose(shares.share.sum(axis=0), 1.0, atol=1e-9)


def test_few_chunks_keep_their_own():
    view = view_of_result(pipeplan.simulate("interleaved-1f1b", ranks=2, microbatches=4, chunks=_MOST_SHADES))
    assert len(shares_of(view, moments=50).codes) == 2 * _MOST_SHADES + 1
