"""What is recomputed or offloaded so that schedules fit: first answers, the least limit, and the bound."""

import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pipeplan.checking import check, check_memory
from pipeplan.costs import Limits, Settings
from pipeplan.extensions.search import Choices, Problem, search
from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.extensions.search.kernels.arrays import KEPT, OFFLOADED, RECOMPUTED
from pipeplan.extensions.search.run import Run
from pipeplan.foundation.errors import InfeasibleError
from pipeplan.model import Kind, Placement
from pipeplan.passes import insert_recompute
from pipeplan.simulation import simulate
from pipeplan.strategies import STRATEGIES, Shape
from tests.extensions.search.problems import PLACEMENTS

WAYS = (Choices(recompute=True), Choices(offload=True), Choices(recompute=True, offload=True))


def case(placement: Placement, choices: Choices, limit: float | None, *, slices: int = 1) -> Problem:
    """A stage holds 8 bytes; recomputed 1 of them stays, offloaded 2; the limit is in bytes."""
    stages = placement.stages
    costs = Settings(
        forward_times=6, backward_input_times=4, backward_weight_times=3, recompute_times=5, offload_times=7, p2p_time=1,
        activation_bytes=(8.0,) * stages, recompute_bytes=(1.0,) * stages, offload_bytes=(6.0,) * stages, times_per="stage",
    ).costs(placement)  # fmt: skip
    limits = None if limit is None else Limits(np.full(placement.ranks, limit), in_activations=False)
    return Problem(placement, 4, costs, limits, choices=choices, slices=slices)


@pytest.mark.parametrize(("placement", "choices", "slices"), [*product(PLACEMENTS, WAYS, (1, 2))])
def test_there_is_a_schedule_at_the_least_limit_and_none_below(placement, choices, slices):
    least = float(case(placement, choices, 1000.0).least_limit.max())
    encoder = Encoder(case(placement, choices, least, slices=slices))
    schedule = encoder.decode(encoder.from_order(encoder.one_by_one()))
    assert check(schedule, memory=encoder.problem.memory_limit).valid
    with pytest.raises(InfeasibleError, match="the least feasible limit"):
        case(placement, choices, 0.99 * least)


@pytest.mark.parametrize(("choices", "mode"), [(WAYS[0], RECOMPUTED), (WAYS[1], OFFLOADED), (WAYS[2], OFFLOADED)])
def test_an_answer_recomputes_and_offloads_nothing_in_vain(choices, mode):
    problem = case(Placement.v(2), choices, 12.0)
    encoder = Encoder(problem)
    everything = encoder.decisions(encoder.one_by_one())
    everything.mode[:] = mode
    offered = encoder.evaluate(everything)
    result = search(problem, evaluations=1, engines=[lambda run: run.offer(offered, "everything", "everything")])
    decided = encoder.encode(result.schedule).decisions
    assert result.value == result.history[-1].value <= offered.value
    assert 0 < (decided.mode != KEPT).sum() < 16
    for op in np.flatnonzero(decided.mode != KEPT):
        modes = decided.mode.copy()
        modes[op] = KEPT
        assert encoder.evaluate(decided._replace(mode=modes)).value > result.value


def test_the_least_limit_is_what_is_left_of_the_stages_before_and_one_whole_stage():
    on_v = Placement.v(2)
    assert case(on_v, Choices(), 1000.0).least_limit.tolist() == [16.0, 16.0]
    assert case(on_v, Choices(recompute=True), 1000.0).least_limit.tolist() == [9.0, 9.0]
    assert case(on_v, Choices(offload=True), 1000.0).least_limit.tolist() == [10.0, 10.0]


@pytest.mark.parametrize(("placement", "choices"), [*product(PLACEMENTS, WAYS)])
@pytest.mark.parametrize("room", [1.0, 2.0])
def test_lists_fit_and_their_values_are_the_simulators(placement, choices, room):
    problem = case(placement, choices, 18.0 * placement.copies)
    encoder = Encoder(problem)
    result = list_schedule(encoder, earliest(encoder), 20.0, room=room)
    schedule = encoder.decode(result)
    assert check(schedule, memory=problem.memory_limit).valid
    assert simulate(schedule, problem.costs).timeline.makespan == result.value >= problem.bound.value


def test_no_more_is_recomputed_than_must_be():
    """Of four microbatches that all run forward first, three do not fit beside the one whose backward is first."""
    encoder = Encoder(case(Placement.linear(1), Choices(recompute=True), 16.0))
    all_first = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    modes = encoder.from_order(all_first).decisions.mode[:4]
    assert modes.tolist() == [KEPT, RECOMPUTED, RECOMPUTED, RECOMPUTED]
    room_for_all = Encoder(case(Placement.linear(1), Choices(recompute=True), 32.0))
    assert not room_for_all.from_order(all_first).decisions.mode.any()


def test_what_must_be_recomputed_is_in_the_bound():
    """Two stages of 8 bytes do not fit into 15: of each microbatch one is recomputed, whatever is done."""
    placement = Placement.v(1)
    tight, loose = (case(placement, Choices(recompute=True), limit).bound for limit in (15.0, 16.0))
    assert loose.value == 4 * 2 * (6 + 4 + 3)
    assert tight.value == loose.value + 4 * 5
    assert tight.reason == "the work of rank 0 with the recomputation that its memory limit forces"
    encoder = Encoder(case(placement, Choices(recompute=True), 15.0))
    result = encoder.from_order(encoder.one_by_one())
    assert result.value == tight.value
    assert encoder.decode(result).has(Kind.R)
    assert case(placement, Choices(offload=True, recompute=True), 15.0).bound.value == loose.value
    in_part = case(placement, Choices(recompute=True), 15.0, slices=2).bound
    assert in_part.value == pytest.approx(loose.value + 4 * 5 / 7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choices", "slices", "communication"), [(WAYS[0], 1, "contended"), (WAYS[1], 2, "edge"), (WAYS[2], 1, "edge")]
)
def test_a_search_beats_one_microbatch_after_the_other_and_stays_within_the_limit(choices, slices, communication):
    problem = replace(case(Placement.v(3), choices, 20.0, slices=slices), communication=communication)
    encoder = Encoder(problem)
    start = encoder.from_order(encoder.one_by_one())
    result = search(problem, evaluations=200, seed=1)
    assert check(result.schedule, memory=problem.memory_limit).valid
    assert result.bound.value <= result.value < start.value
    assert result.schedule.slices == slices
    timeline = simulate(result.schedule, problem.costs, communication=communication).timeline
    assert timeline.makespan == pytest.approx(result.value, rel=1e-12)


def test_a_published_schedule_that_does_not_fit_is_a_start_with_less_kept():
    problem = case(Placement.v(3), Choices(recompute=True), 20.0)
    run = Run(problem, Budget(None, 10, time.monotonic))
    kept = STRATEGIES["zbv"](Shape(3, 4, 2))
    assert run.offer_schedule(kept, "zbv") == np.inf
    assert run.best is not None
    assert run.best.found_by == "zbv, not all of it kept"
    assert run.schedule(run.best).has(Kind.R)
    everything = insert_recompute(kept)
    assert any(check_memory(everything, problem.memory_limit)) or run.best.value <= (
        simulate(everything, problem.costs).timeline.makespan
    )
