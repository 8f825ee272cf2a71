from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.costs import Costs, Limits, Settings
from pipeplan.foundation.errors import InfeasibleError, ShapeError
from pipeplan.model import Kind, Placement, Schedule, dependencies, from_ops, parse_schedule
from pipeplan.model.op import Op
from pipeplan.simulation import lower_bound, simulate, span_bound
from pipeplan.strategies import STRATEGIES

TIMES = st.floats(0.05, 4)


def costs_for(draw: st.DrawFn, placement: Placement) -> Costs:
    forward, inputs, weights, full, size, kept = (
        tuple(draw(st.lists(TIMES, min_size=placement.stages, max_size=placement.stages))) for _ in range(6)
    )
    together = tuple(max(f, b) * 1.05 for f, b in zip(forward, full, strict=True))
    return Settings(
        forward_times=forward,
        backward_times=full,
        backward_input_times=inputs,
        backward_weight_times=weights,
        overlap_times=draw(st.sampled_from([None, together])),
        p2p_time=draw(st.floats(0, 2)),
        activation_bytes=size,
        weight_activation_bytes=draw(st.sampled_from([None, size, kept])),
        static_bytes=draw(st.sampled_from([None, size])),
    ).costs(placement)


@st.composite
def published(draw: st.DrawFn) -> tuple[Schedule, Costs]:
    """A published schedule of a random shape on random costs, in bytes."""
    # The bounds under a limit are for schedules that keep all activations.
    keeping = sorted(name for name, rule in STRATEGIES.items() if not rule.recomputes)
    strategy = STRATEGIES[draw(st.sampled_from(keeping))]
    ranks, microbatches = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    try:
        schedule = strategy(strategy.shape(ranks, microbatches, None))
    except ShapeError:
        schedule = strategy(strategy.shape(4, 8, None))
    return schedule, costs_for(draw, schedule.placement)


@st.composite
def haphazard(draw: st.DrawFn) -> tuple[Schedule, Costs]:
    """Ops in any order that runs, some backwards split and others not, microbatches in no order at all."""
    placement = draw(
        st.sampled_from([Placement.linear(3), Placement.v(2), Placement.loop(2, 2), Placement.bidirectional(2)])
    )
    microbatches = placement.copies * draw(st.integers(1, 3))
    ready = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    split = ready.random((placement.stages, microbatches)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    ops = [
        Op(kind, stage, microbatch)
        for stage in range(placement.stages)
        for microbatch in range(microbatches)
        for kind in (Kind.F, *((Kind.I, Kind.W) if split[stage, microbatch] else (Kind.B,)))
    ]
    return in_some_order(placement, microbatches, ops, ready), costs_for(draw, placement)


def in_some_order(placement: Placement, microbatches: int, ops: list[Op], random: np.random.Generator) -> Schedule:
    columns = from_ops(ops)
    ranks = placement.ranks_of(columns.stage, columns.microbatch, microbatches)
    order = np.argsort(ranks, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(ranks, minlength=placement.ranks))))
    whole = Schedule(placement, microbatches, columns[order], offsets.astype(np.int64))
    sources = np.stack(dependencies(whole).all)
    done: list[int] = []
    left = set(range(len(whole)))
    while left:
        free = [op for op in sorted(left) if not left.intersection(sources[:, op].tolist())]
        done.append(int(random.choice(free)))
        left.remove(done[-1])
    rows = [whole.columns[np.array([op for op in done if whole.rank[op] == rank])] for rank in range(placement.ranks)]
    return Schedule.from_rows(placement, microbatches, rows)


def assert_within_bounds(schedule: Schedule, costs: Costs) -> None:
    """Neither bound is above what the schedule takes, at a limit of exactly what it holds, in bytes and activations."""
    simulation = simulate(schedule, costs)
    assert simulation.memory.peak_bytes is not None
    for peaks, in_activations in ((simulation.memory.peak_bytes, False), (simulation.memory.peak_activation, True)):
        limits = Limits(peaks, in_activations)
        again = simulate(schedule, costs, limits=limits)
        assert again.bound.value <= again.timeline.makespan * (1 + 1e-9)
        assert again.bound.value >= simulation.bound.value
        span = span_bound(schedule.placement, schedule.microbatches, costs, slices=schedule.slices, limits=limits)
        assert span.value <= again.timeline.spans.max() * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(published())
def test_no_published_schedule_beats_the_bound_at_its_own_memory(problem):
    assert_within_bounds(*problem)


@settings(max_examples=30, deadline=None)
@given(haphazard())
def test_no_order_at_all_beats_the_bound_at_its_own_memory(problem):
    assert_within_bounds(*problem)


def test_one_microbatch_at_a_time_takes_one_round_trip_each():
    placement = Placement.linear(3)
    costs = Settings(forward_times=3, backward_input_times=3, backward_weight_times=2, p2p_time=0.5).costs(placement)
    rows = [[Op(kind, rank, i) for i in range(4) for kind in (Kind.F, Kind.I, Kind.W)] for rank in range(3)]
    schedule = Schedule.from_rows(placement, 4, [from_ops(row) for row in rows])
    simulation = simulate(schedule, costs, limits=Limits(np.ones(3), True))
    assert simulation.timeline.makespan == 4 * (3 * 3 + 3 * 3 + 4 * 0.5 + 2)
    assert simulation.gap == pytest.approx(0, abs=1e-9)
    assert "must hold" in simulation.bound.reason


def test_a_rank_idles_at_its_ends_when_no_more_fits():
    placement = Placement.linear(3)
    costs = Settings(forward_times=1, backward_input_times=1, backward_weight_times=2).costs(placement)
    free = lower_bound(placement, 6, costs)
    tight = lower_bound(placement, 6, costs, limits=Limits(np.full(3, 2.0), True))
    assert free.value == 26
    way_to_the_last_rank_and_back, work, forwards_that_fit = 5, 6 * 4, 2
    last_trip, its_forward_and_two_backwards = 8, 7
    idle_at_the_end = last_trip - its_forward_and_two_backwards
    assert tight.value == way_to_the_last_rank_and_back + work - forwards_that_fit + idle_at_the_end
    assert tight.reason == "the work of rank 0, which idles at both ends under its memory limit"


def test_only_whole_activations_count():
    placement = Placement.v(4)
    costs = Settings(p2p_time=0.1).costs(placement)
    whole, more = (lower_bound(placement, 8, costs, limits=Limits(np.full(4, limit), True)) for limit in (2.0, 2.4))
    assert whole == more


def test_limits_say_nothing_about_schedules_that_recompute():
    plan = parse_schedule("0F0 0F1 0R0 0B0 0R1 0B1")
    costs = Settings().costs(plan.placement)
    limits = Limits(np.ones(1), True)
    assert simulate(plan, costs, limits=limits).bound == simulate(plan, costs).bound


@pytest.mark.needs("search")
def test_static_memory_above_the_limit_is_an_answer_and_no_error():
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 2, "activation_bytes": 1.0}
    for limits in (
        {"static_bytes": 5.0, "memory_limit": 5.0},
        {"static_bytes": [1.0, 5.0], "memory_limit": [9.0, 4.0]},
    ):
        options = shape | limits | {"weight_activation_bytes": [0.0, 1.0]}
        result = pipeplan.simulate("zb-h1", **options)
        assert not result.fits
        assert result.lower_bound > 0
        assert not pipeplan.explain("zb-h1", **options).result.fits
        assert not pipeplan.check(result.schedule, activation_bytes=1.0, **limits).valid
        (compared,) = pipeplan.compare("zb-h1", **options).results
        assert not compared.fits
        with pytest.raises(InfeasibleError, match="one microbatch alone needs"):
            pipeplan.search(evaluations=5, placement="linear", **options)


def test_stages_that_hold_nothing_are_no_limit():
    placement = Placement.linear(2)
    costs = Settings(activation_bytes=0.0).costs(placement)
    assert lower_bound(placement, 4, costs, limits=Limits(np.ones(2), False)) == lower_bound(placement, 4, costs)


def test_a_span_is_bounded_by_work_and_by_the_way_there_and_back():
    costs = Settings(p2p_time=10).costs(Placement.linear(2))
    assert span_bound(Placement.linear(2), 1, costs).value == 25
    assert "way" in span_bound(Placement.linear(2), 1, costs).reason
    assert span_bound(Placement.linear(2), 50, costs).value == 150
    assert span_bound(Placement.bidirectional(2), 50, costs).value == 150
