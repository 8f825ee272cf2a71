import pytest

from pipeplan.strategies.interleaved import interleaved_1f1b, interleaved_zb
from pipeplan.strategies.protocol import Shape, Strategy
from pipeplan.strategies.sliced import (
    FAMILY,
    mepipe,
    seq1f1b,
    slimpipe,
    svpp,
)
from tests.slow_simulator import peak_activations, worst_bubble

SHAPES = [
    Shape(ranks, microbatches, chunks, slices=slices)
    for ranks in (1, 2, 3, 4, 6)
    for microbatches in (1, 2, 3, 5)
    for chunks in (1, 2, 3)
    for slices in (1, 2, 3, 4, 6)
]


def test_one_chunk_or_one_slice_are_known_schedules() -> None:
    assert svpp(svpp.shape(4, 6, 1, slices=3)) == seq1f1b(seq1f1b.shape(4, 6, slices=3))
    for sliced, whole in ((slimpipe, interleaved_1f1b), (mepipe, interleaved_zb)):
        assert sliced(sliced.shape(4, 8, slices=1)) == whole(whole.shape(4, 8))


@pytest.mark.parametrize(("ranks", "chunks", "slices"), [(4, 1, 4), (4, 2, 8), (8, 3, 8), (8, 2, 4), (6, 2, 2)])
def test_svpp_keeps_the_papers_bubble_and_memory(ranks: int, chunks: int, slices: int) -> None:
    shape = svpp.shape(ranks, 12, chunks, slices=slices)
    idle, most, least = worst_bubble(svpp(shape)), max(ranks, slices), min(ranks, slices)
    assert idle / (idle + 3 * 12) == pytest.approx((ranks - 1) / (ranks - 1 + 12 * slices * chunks))
    papers = (chunks * most + least - 1) / (chunks * slices)
    assert max(peak_activations(svpp(shape))) == pytest.approx(papers) == svpp.memory.value(shape)
    assert max(peak_activations(mepipe(shape))) == pytest.approx(papers) == mepipe.memory.value(shape)


def test_weight_backwards_save_two_thirds_of_the_bubble() -> None:
    shape = mepipe.shape(4, 8, 2, slices=4)
    assert worst_bubble(mepipe(shape)) == pytest.approx(worst_bubble(svpp(shape)) / 3) == pytest.approx(3 / 8)


@pytest.mark.parametrize("strategy", FAMILY, ids=lambda strategy: strategy.name)
def test_idle_time_is_as_the_formula_says(strategy: Strategy) -> None:
    """Exactly for split backwards; for full ones at most, and exactly unless a last of several groups is small."""
    for shape in SHAPES[::3]:
        idle, formula = worst_bubble(strategy(shape)), strategy.bubble.value(shape)
        units, group = shape.microbatches * shape.slices, shape.slices * -(-shape.ranks // shape.slices)
        if strategy is mepipe or units <= group or not 0 < units % group < shape.ranks:
            assert idle == pytest.approx(formula), shape
        else:
            assert idle <= formula + 1e-9, shape
