"""The bound of one machine against its definition, and how much it takes."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.model import Placement
from pipeplan.simulation import lower_bound
from pipeplan.simulation.bounds import _one_machine
from pipeplan.simulation.op_classes import RankClasses
from tests.little_memory import little_memory


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=8))
def test_the_bound_is_the_largest_sum_over_all_sets(classes):
    head, work, tail = (np.array([column], float) for column in zip(*classes, strict=True))
    count = np.ones(len(classes), np.int64)
    rank = RankClasses(count * 0, np.arange(len(classes)), head, work, tail, work, count, count * 0)
    sums = [
        least + float(work[0, chosen].sum()) + shortest
        for least, shortest in product(head[0], tail[0])
        if (chosen := (head[0] >= least) & (tail[0] >= shortest)).any()
    ]
    assert _one_machine(rank) == max(sums)


def test_many_chunks_take_memory_of_their_number_and_not_of_its_square():
    placement = Placement.loop(2, 4000)
    costs = Settings().costs(placement)
    with little_memory(20 << 20):
        assert lower_bound(placement, 2, costs).value > 0


def test_one_rank_takes_its_bound_with_what_is_lost_before_ops():
    placement = Placement.loop(1, 1)
    costs = Settings(op_gap=0.5, time_unit="ms").costs(placement)
    assert lower_bound(placement, 3, costs).value == 3 * (1 + 2 + 2 * 0.5)
