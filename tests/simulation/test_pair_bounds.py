"""Bounds of ranks whose ops may overlap: against every pairing, and against every order with every pairing."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeplan.costs import Costs, Settings
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import NO_GROUP, Columns, Kind, Placement, Schedule, from_ops
from pipeplan.model.op import Op
from pipeplan.simulation import lower_bound, simulate, span_bound
from pipeplan.simulation.op_classes import divisions, rank_classes
from pipeplan.strategies import Shape, strategy
from tests.torture.schedules.random_costs import PAIR_KINDS, overlapping


@given(st.integers(1, 5).flatmap(lambda size: arrays(np.float64, (size, size), elements=st.integers(0, 9))))
def test_parts_cover_what_each_pair_saves_and_sum_to_the_best_pairing(saving):
    pairings = permutations(range(len(saving)))
    best = max(saving[np.arange(len(saving)), list(pairing)].sum() for pairing in pairings)
    ways = divisions(saving)
    for forward, backward in ways:
        assert (forward[:, None] + backward >= saving).all()
        assert min(forward.min(), backward.min()) >= 0
        assert (forward <= saving.max(axis=1)).all()
    sums = [forward.sum() + backward.sum() for forward, backward in ways]
    assert sums[0] >= sums[1] == sums[2] == best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", PAIR_KINDS)
def test_the_work_of_a_rank_is_that_of_the_best_pairing(kind, seed):
    """Four forwards and backwards a rank, each as a full backward or in halves, paired in each way or not."""
    placement = [Placement.loop(2, 2), Placement.v(3)][seed % 2]
    costs = overlapping(kind, placement, seed)
    work = np.array([[float(rank.work.sum()) for rank in ranks] for ranks in rank_classes(placement, 2, costs)])
    for rank in range(placement.ranks):
        stages = 2 * placement.stages_on(rank)
        least = min(
            sum(_least(costs, *pair) for pair in zip(stages, order, strict=True)) for order in permutations(stages)
        )
        assert work[:, rank].max() <= least * (1 + 1e-12)
        # Where a full backward is shorter than its halves, their pairs save less than is counted.
        if (costs.backward >= costs.backward_input + costs.backward_weight).all():
            assert work[:, rank].max() == pytest.approx(least, rel=1e-12)


def _least(costs: Costs, forward: int, backward: int) -> float:
    """Return the least time of a forward and a backward of these stages, W included."""
    halves = costs.backward_input[backward] + costs.backward_weight[backward]
    pair = np.array([forward]), np.array([backward])
    with_inputs = costs.pair_times(*pair, costs.backward_input[[backward]], inputs=True)[0]
    with_full = costs.pair_times(*pair, costs.backward[[backward]])[0]
    apart = costs.forward[forward] + min(halves, costs.backward[backward])
    return float(min(apart, with_inputs + costs.backward_weight[backward], with_full))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", PAIR_KINDS)
@pytest.mark.parametrize(
    ("placement", "microbatches", "split"),
    [
        (Placement.linear(2), 2, True),
        (Placement.linear(2), 3, False),
        (Placement.linear(3), 2, False),
        (Placement.loop(1, 2), 2, False),
    ],
)
def test_no_order_with_any_pairs_is_below_the_bounds(kind, seed, placement, microbatches, split):
    costs = overlapping(kind, placement, seed)
    rows = [list(_rows(placement.stages_on(rank), microbatches, split=split)) for rank in range(placement.ranks)]
    makespan = span = np.inf
    for chosen in product(*rows):
        try:
            timeline = simulate(Schedule.from_rows(placement, microbatches, chosen), costs).timeline
        except DeadlockError:
            continue
        makespan, span = min(makespan, timeline.makespan), min(span, timeline.longest_span)
    costs = costs if split else costs.unsplit()
    assert lower_bound(placement, microbatches, costs).value <= makespan * (1 + 1e-12)
    assert span_bound(placement, microbatches, costs).value <= span * (1 + 1e-12)


def _rows(stages: tuple[int, ...], microbatches: int, *, split: bool) -> Iterator[Columns]:
    """Yield each order of a rank's ops, with each choice of pairs; microbatches begin in their order."""
    backward = Kind.I if split else Kind.B
    needs: dict[Op, Op | None] = {}
    for microbatch in range(microbatches):
        before = Op(Kind.F, stages[0], microbatch - 1) if microbatch else None
        way = [*((Kind.F, stage) for stage in stages), *((backward, stage) for stage in reversed(stages))]
        for kind, stage in way:
            needs[Op(kind, stage, microbatch)] = before
            before = Op(kind, stage, microbatch)
            if kind is Kind.I:
                needs[Op(Kind.W, stage, microbatch)] = before

    def turns(done: tuple[Op, ...], groups: tuple[int, ...]) -> Iterator[Columns]:
        if len(done) == len(needs):
            yield replace(from_ops(list(done)), group=np.array(groups, np.int32))
        ready = [op for op, need in needs.items() if op not in done and (need is None or need in done)]
        for op in ready:
            yield from turns((*done, op), (*groups, NO_GROUP))
        for pair in product(*([op for op in ready if op.kind is kind] for kind in (Kind.F, backward))):
            yield from turns((*done, *pair), (*groups, len(done), len(done)))

    yield from turns((), ())


def test_until_its_first_backward_a_rank_runs_forwards_alone():
    """The last rank runs one alone, then 7 pairs and a backward. Within the span of the first, at least 4 are alone."""
    schedule = strategy("1f1b-overlap")(Shape(ranks=2, microbatches=8))
    costs = Settings(forward_times=2, backward_times=4, overlap_times=5).costs(schedule.placement).unsplit()
    makespan = simulate(schedule, costs).timeline.makespan
    assert lower_bound(schedule.placement, 8, costs).value == makespan == 2 + 2 + 7 * 5 + 4 + 4
    assert span_bound(schedule.placement, 8, costs).value == 4 * 2 + 4 * 5 + 4 * 4


def test_a_rank_of_very_many_stages_has_a_bound_beside_one_of_few():
    placement = Placement.of((*(0 for _ in range(300)), 1))
    costs = overlapping("list", placement, 0)
    assert lower_bound(placement, 2, costs).value > 0
