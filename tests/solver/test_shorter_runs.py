"""Long runs by way of shorter ones."""

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.checking import check
from pipeplan.model import Placement
from pipeplan.solver import FixedOrders, LocalSearch, Run, ShorterRuns, fixed_orders, search
from pipeplan.solver.budget import Budget
from pipeplan.solver.candidate import Encoder
from pipeplan.solver.engines.local_steps import LocalSteps, Steps, local_moves
from pipeplan.solver.engines.shorter_runs import fold
from pipeplan.solver.kernels.arrays import AnnealingState, Reach
from pipeplan.solver.moves import MOVES
from tests.solver.problems import problem

LONG = problem(Placement.v(4), 60, (14.0, 14.0, 10.0, 2.0), limit=4)


def folded(case, name, kept):
    encoder, short = Encoder(case), Encoder(replace(case, microbatches=kept))
    candidate = encoder.encode(dict(fixed_orders(case))[name])
    return encoder, short, candidate, fold(encoder, candidate, short)


@pytest.mark.parametrize(
    ("placement", "name"),
    [(Placement.v(4), "zbv"), (Placement.linear(4), "1f1b"), (Placement.loop(4, 2), "interleaved-zb")],
)
def test_a_steady_middle_is_cut_out_and_put_back(placement, name):
    encoder, short, candidate, found = folded(problem(placement, 60), name, 24)
    assert found is not None
    whole = found.unfolded(encoder, found.short.decisions)
    assert whole.decisions.order.tolist() == candidate.decisions.order.tolist()
    assert whole.decisions.forced.tolist() == candidate.decisions.forced.tolist()
    work = np.bincount(encoder.rank_of, weights=encoder.total_times).max()
    assert candidate.value - found.short.value == 36 * work
    check(short.decode(found.short)).require_valid()


def test_what_repeats_by_groups_of_as_many_microbatches_as_ranks_is_cut_by_such_groups():
    long = problem(Placement.loop(5, 2), 100, (14.0, 14.0, 10.0, 2.0))
    assert folded(long, "interleaved-zb", 16)[-1] is None
    engines = (FixedOrders(), ShorterRuns(until=1.0, turns=1))
    found = search(long, evaluations=60, engines=engines)
    assert found.evaluations >= 60


def test_nothing_is_cut_out_of_what_has_no_steady_middle():
    assert folded(problem(Placement.linear(4), 60), "gpipe", 24)[-1] is None


@pytest.mark.slow
def test_no_op_passes_a_barrier():
    encoder = Encoder(LONG)
    start = encoder.encode(dict(fixed_orders(LONG))["zbv"])
    barrier = encoder.offsets[:-1] + np.array([40, 41, 42, 43])
    state = AnnealingState(np.full(2, start.value), np.array([30.0, 1.0]), np.array([5]), encoder.empty_chain())
    how = Steps(
        moves=local_moves(encoder, MOVES), reach=Reach(4, 4, 8), critical=0, target=encoder.target(), barrier=barrier
    )
    decisions = start.copy().decisions
    LocalSteps(encoder, how, decisions, start.copy().decisions, state).make(400)
    for first, place, last in zip(encoder.offsets, barrier, encoder.offsets[1:], strict=False):
        for part in (slice(first, place), slice(place, last)):
            assert sorted(decisions.order[part]) == sorted(start.order[part])
    assert decisions.order.tolist() != start.order.tolist()


def test_what_a_shorter_run_gains_the_long_one_gains():
    engines = (FixedOrders(), ShorterRuns(until=1.0), LocalSearch())
    found = search(LONG, evaluations=700, seed=2, engines=engines)
    assert found.published is not None
    assert found.value < found.published.value
    assert found.found_by == "local search of a shorter run from zbv"
    check(found.schedule, memory=LONG.memory_limit).require_valid()
    again = search(LONG, evaluations=700, seed=2, engines=engines, workers=2)
    assert again.value == found.value


def test_whoever_listens_is_told_while_kernels_of_a_shorter_run_are_compiled(monkeypatch):
    said: list[float] = []
    run = Run(LONG, Budget(100.0, None, lambda: 0.0), report=lambda news: said.append(news.value))
    FixedOrders()(run)
    said.clear()

    def stopped_meanwhile(run, *_):
        run.report_progress()
        run.budget.stopped.set()

    monkeypatch.setattr(Run, "compile", stopped_meanwhile)
    ShorterRuns()(run)
    assert run.best is not None
    assert set(said) == {run.best.value}
