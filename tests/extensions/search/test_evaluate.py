"""Timing and annealing a candidate: against the simulator, and compiled against undecorated."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Limits, Settings
from pipeplan.extensions.search import Choices, Problem
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.extensions.search.kernels.annealing_kernel import trace
from pipeplan.extensions.search.kernels.arrays import Target
from pipeplan.extensions.search.kernels.timing_kernel import INFEASIBLE, evaluate
from pipeplan.extensions.search.moves import MOVES, moves_for
from pipeplan.model import Placement, parse_schedule
from pipeplan.simulation import simulate
from tests.extensions.search.problems import PLACEMENTS, problem
from tests.extensions.search.walks import annealed
from tests.torture.schedules.evaluations import moved


def walked(encoder, steps, *, seed=1, how="as a search", moves=MOVES):
    """The last and the best candidate, and the state, of an annealing from a list schedule."""
    start = list_schedule(encoder, earliest(encoder), 10.0)
    walk = annealed(encoder, start, moves_for(encoder, moves), steps=steps, heat=5.0, seed=seed, how=how)
    return walk.decisions, walk.best, walk.state


LOST = {"op_gap": 0.7, "message_time": 0.3}
SHORTER = [
    some | more
    for some in ({"backward_times": 6.5}, {"weight_activation_bytes": 3.0}, {"overlap_times": 9.0}, {})
    for more in ({"backward_times": 7.0}, {"overlap_times": 8.5})
]


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(PLACEMENTS),
    st.sampled_from([{}, LOST, LOST | {"overlap_times": 9.0}, *SHORTER]),
    st.sampled_from([2, 4, 6]),
    st.sampled_from(["makespan", "span"]),
    st.booleans(),
    st.integers(0, 1000),
    st.floats(1.0, 6.0),
)
def test_candidates_are_worth_what_their_schedules_take(placement, more, microbatches, objective, split, seed, limit):
    """Whole backwards run where they are shorter, gain by overlapping, or lose one gap and not two."""
    times = Settings(forward_times=6, backward_input_times=4, backward_weight_times=4, p2p_time=1, times_per="stage")
    costs = times.replace(activation_bytes=2.0, **more).costs(placement)
    limits = Limits(np.full(placement.ranks, 2.0 * max(limit, placement.copies)), in_activations=False)
    case = Problem(placement, microbatches, costs, limits, objective=objective, choices=Choices(split=split))
    assert Encoder(case).may_run_full == (split and bool(more))
    moved(Random(seed), case)


@pytest.mark.slow
@pytest.mark.parametrize("costs", [{}, {"backward_times": 6.5, "overlap_times": 7.0}])
def test_machine_code_and_python_agree_step_by_step(costs):
    placement = Placement.v(3)
    times = Settings(
        forward_times=3.7, backward_input_times=4.1, backward_weight_times=2.9, p2p_time=0.3, times_per="stage", **costs
    )
    encoder = Encoder(Problem(placement, 4, times.costs(placement), Limits(np.full(3, 2.0), in_activations=True)))
    plain, compiled = (walked(encoder, 300, how=how) for how in ("in Python", "as a search"))
    for one, other in zip(plain, compiled, strict=True):
        for array, same in zip(one, other, strict=True):
            assert np.array_equal(array, same)


def test_a_limit_below_the_value_cuts_the_evaluation_short():
    encoder = Encoder(problem(Placement.linear(3), 4, limit=3))
    candidate = list_schedule(encoder, earliest(encoder), 14.0)
    for limit, value in ((candidate.value, candidate.value), (candidate.value - 0.5, INFEASIBLE)):
        assert evaluate(encoder.flat, candidate.decisions, Target(0, 0.0), limit, encoder.empty_timing()) == value


def test_spread_adds_its_share_of_the_mean_over_the_ranks():
    encoder = Encoder(problem(Placement.linear(2), 1))
    candidate = encoder.from_order(np.array([0, 1, 2, 3]))
    ends = 6 + 1 + 6 + 4 + 4, 6 + 1 + 6 + 4 + 1 + 4 + 4
    assert candidate.value == max(ends)
    assert encoder.score(candidate.decisions, 0.5) == max(ends) + 0.5 * sum(ends) / 2


def test_a_deadlock_and_too_much_memory_are_infeasible():
    encoder = Encoder(problem(Placement.linear(2), 2, limit=1))
    forwards_first = np.array([0, 0, 1, 1, 2, 3, 2, 3])
    backward_first = np.array([1, 0, 0, 1, 2, 3, 2, 3])
    assert encoder.from_order(forwards_first).value == np.inf
    assert encoder.from_order(backward_first).value == np.inf
    assert np.isfinite(encoder.from_order(encoder.one_by_one()).value)


@pytest.mark.parametrize(("forced", "weights"), [(0, [0, 0, 0, 0]), (1, [0, 0, 1, 0])])
def test_forced_weight_backwards_come_before_their_op(forced, weights):
    encoder = Encoder(problem(Placement.linear(1), 2))
    order = np.array([0, 1, 0, 1])
    decisions = encoder.decisions(order)._replace(forced=np.array([0, 0, forced, 0]))
    timing = encoder.empty_timing()
    evaluate(encoder.flat, decisions, Target(0, 0.0), 1e9, timing)
    assert timing.weights.tolist() == weights


def test_owed_weight_backwards_fill_waits_that_are_long_enough():
    """Rank 0: F0 F1, I0 at 26; I1 arrives at 40, after a wait of 10 for W0."""
    encoder = Encoder(problem(Placement.linear(2), 2, (4.0, 4.0, 4.0, 5.0)))
    row = encoder.decode(encoder.from_order(np.array([0, 0, 1, 1, 2, 3, 2, 3])))[0]
    assert [str(op) for op in row] == ["0F0", "0F1", "0I0", "0W0", "0I1", "0W1"]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_longest_chain_leads_from_a_start_to_the_end_without_a_break(placement):
    encoder = Encoder(problem(placement, 4, limit=3))
    decisions, _, _ = walked(encoder, 200)
    timing, critical = encoder.empty_timing(), encoder.empty_chain()
    evaluate(encoder.flat, decisions, Target(0, 0.0), INFEASIBLE / 2, timing)
    trace(encoder.flat, decisions, timing, critical)
    chain = critical[1 : 1 + critical[0]]
    rank_of, first = encoder.rank_of[decisions.order], encoder.offsets[:-1]
    assert chain[0] == encoder.offsets[1 + int(np.argmax(timing.clock))] - 1
    assert chain[-1] in first
    assert encoder.flat.source[decisions.order[chain[-1]]] < 0
    for later, earlier in pairwise(chain.tolist()):
        if rank_of[later] == rank_of[earlier]:
            assert earlier == later - 1
        else:
            waiting = later + timing.waited[later] - 1
            assert encoder.flat.source[decisions.order[waiting]] == decisions.order[earlier]


def test_a_full_backward_in_a_pair_is_read_as_one_where_it_gains_only_on_another_stage():
    """As an I with its W behind it, it would take the pair's time and its W's on top."""
    placement = Placement.loop(1, 2)
    costs = Settings(
        forward_times=6, backward_times=(21, 30), backward_input_times=15, backward_weight_times=(6, 15),
        overlap_times=(27, 36), times_per="stage",
    ).costs(placement)  # fmt: skip
    case = Problem(placement, 2, costs)
    schedule = parse_schedule("0F0 1F0 1B0 (0F1;0B0)OVERLAP_F_B 1F1 1B1 0B1")
    assert case.full_gains.tolist() == [False, True]
    assert Encoder(case).encode(schedule).value == case.value(simulate(schedule, costs).timeline) == 126
