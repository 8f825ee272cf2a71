import numpy as np
import pytest

from pipeplan.errors import ShapeError
from pipeplan.model import Placement


@pytest.mark.parametrize(
    ("placement", "name", "rank_of"),
    [
        (Placement.linear(3), "linear", ((0, 1, 2),)),
        (Placement.loop(2, 3), "loop", ((0, 1, 0, 1, 0, 1),)),
        (Placement.loop(3, 1), "linear", ((0, 1, 2),)),
        (Placement.v(3), "v", ((0, 1, 2, 2, 1, 0),)),
        (Placement.wave(2, 4), "wave", ((0, 1, 1, 0, 0, 1, 1, 0),)),
        (Placement.bidirectional(4), "bidirectional", ((0, 1, 2, 3), (3, 2, 1, 0))),
    ],
)
def test_where_stages_are(placement, name, rank_of):
    assert (placement.name, placement.rank_of) == (name, rank_of)
    assert Placement.of(*rank_of) == placement


def test_chunks_and_stages_of_a_rank():
    v = Placement.v(3)
    assert (v.ranks, v.stages, v.chunks, v.copies) == (3, 6, 2, 1)
    assert v.stages_on(1) == (1, 4)
    assert v.chunk_of == ((0, 0, 0, 1, 1, 1),)
    uneven = Placement.of((0, 0, 1))
    assert uneven.name == "custom"
    assert uneven.chunks_on.tolist() == [2, 1]


def test_microbatches_are_dealt_to_the_copies_in_halves():
    both = Placement.bidirectional(2)
    microbatch = np.arange(5, dtype=np.int32)
    assert both.copy_of(microbatch, 5).tolist() == [0, 0, 0, 1, 1]
    assert both.ranks_of(np.zeros(5, np.int32), microbatch, 5).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Placement.bidirectional(3), "even number of ranks, not 3"),
        (lambda: Placement.linear(0), "ranks must be at least 1, not 0"),
        (lambda: Placement.loop(2, 0), "chunks must be at least 1, not 0"),
        (lambda: Placement.of((0, 2)), r"missing: \[1\]"),
        (lambda: Placement.of((0, -1)), "missing: -1"),
        (lambda: Placement.of(()), "at least one stage"),
        (lambda: Placement.of((0,), (0, 0)), "same stages"),
    ],
)
def test_what_cannot_be(make, rule):
    with pytest.raises(ShapeError, match=rule):
        make()
