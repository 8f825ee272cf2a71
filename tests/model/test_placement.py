import numpy as np
import pytest

from pipeplan.foundation.errors import ShapeError, UnknownNameError
from pipeplan.model import Placement
from tests.little_memory import little_memory


@pytest.mark.parametrize(
    ("placement", "name", "rank_of"),
    [
        (Placement.linear(3), "linear", ((0, 1, 2),)),
        (Placement.loop(2, 3), "loop", ((0, 1, 0, 1, 0, 1),)),
        (Placement.loop(3, 1), "linear", ((0, 1, 2),)),
        (Placement.v(3), "v", ((0, 1, 2, 2, 1, 0),)),
        (Placement.wave(2, 4), "wave", ((0, 1, 1, 0, 0, 1, 1, 0),)),
        (Placement.bidirectional(4), "bidirectional", ((0, 1, 2, 3), (3, 2, 1, 0))),
        (Placement.bidirectional_v(2), "bidirectional-v", ((0, 1, 1, 0), (1, 0, 0, 1))),
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


def test_what_cannot_be():
    for make, rule in [
        (lambda: Placement.bidirectional(3), "even number of ranks, not 3"),
        (lambda: Placement.bidirectional_v(3), "even number of ranks, not 3"),
        (lambda: Placement.linear(0), "ranks must be at least 1, not 0"),
        (lambda: Placement.loop(2, 0), "chunks must be at least 1, not 0"),
        (lambda: Placement.of((0, 2)), "every rank from 0 to 2 must hold a stage; rank 1 does not"),
        (lambda: Placement.of((0, 4, 1)), "every rank from 0 to 4 must hold a stage; rank 2 does not"),
        (lambda: Placement.of((0, -1)), "must start at 0, not at -1"),
        (lambda: Placement.of(*[(0,)] * 65), "at most 64 copies of the model, not 65"),
        (lambda: Placement.of(()), "at least one stage"),
        (lambda: Placement.of((0,), (0, 0)), "same number of stages, not 1 and 2"),
    ]:
        with pytest.raises(ShapeError, match=rule):
            make()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Placement.of((0, 50_000_000)), "must hold a stage; rank 1 does not$"),
        (lambda: Placement.of((0, 10**9999)), r"every rank from 0 to about 10\^9999 must hold a stage"),
        (lambda: Placement.of((0, -(10**9999))), r"not at about -10\^9999"),
        (lambda: Placement.linear(10**9), "ranks must be at most 65,536, not 1,000,000,000"),
        (lambda: Placement.wave(4, 10**9), "4 ranks x 1000000000 chunks need 4,000,000,000 forwards"),
        (lambda: Placement.bidirectional(10**9), "ranks must be at most 65,536, not 1,000,000,000"),
    ],
)
def test_what_is_too_large_is_refused_before_anything_is_made(make, rule):
    with little_memory(), pytest.raises(ShapeError, match=rule):
        make()


def test_a_placement_by_its_name():
    assert Placement.called("loop", 2, 2) == Placement.loop(2, 2)
    assert Placement.called("v", 3, 2).name == "v"
    with pytest.raises(UnknownNameError, match="unknown placement 'looop'; did you mean 'loop'"):
        Placement.called("looop", 2, 2)
