"""ZB-H1, ZB-H2 and ZB-V: idle time and spans in closed form, and the rates in their paper."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.model import Schedule, Timeline
from pipeplan.simulation import simulate
from pipeplan.strategies.protocol import Strategy
from pipeplan.strategies.zero_bubble import zb_h1, zb_h2, zbv
from tests.conformance import conformance
from tests.slow_simulator import slow_simulate


def build(strategy: Strategy, ranks: int, microbatches: int) -> Schedule:
    return strategy(strategy.shape(ranks, microbatches))


def timeline(schedule: Schedule, times: Settings | None = None) -> Timeline:
    return simulate(schedule, (times or Settings()).costs(schedule.placement)).timeline


SHARE = st.floats(0.01, 1)


@given(st.integers(1, 8), st.integers(0, 9), st.floats(1, 9), st.floats(1, 9), SHARE)
@settings(max_examples=40, deadline=None)
def test_idle_time_of_zb_h1(ranks: int, more: int, forward: float, inputs: float, weight: float):
    weight *= min(forward, inputs)
    schedule = build(zb_h1, ranks, ranks + more)
    times = Settings(forward_times=forward, backward_input_times=inputs, backward_weight_times=weight)
    idle = slow_simulate(schedule, times.costs(schedule.placement)).idle
    assert idle.max() == pytest.approx((ranks - 1) * (forward + inputs - weight))


@given(st.integers(1, 8), st.integers(0, 9), st.floats(1, 9), st.floats(1, 9), SHARE, SHARE)
@settings(max_examples=40, deadline=None)
def test_longest_span_of_zb_h2(ranks: int, more: int, forward: float, inputs: float, weight: float, transfer: float):
    half = (forward + inputs) / 2
    weight, transfer, microbatches = weight * min(half, forward), transfer * half, 2 * ranks - 1 + more
    schedule = build(zb_h2, ranks, microbatches)
    times = Settings(
        forward_times=forward, backward_input_times=inputs, backward_weight_times=weight, p2p_time=transfer
    )
    bubble = (ranks - 1) * (forward + inputs - 2 * weight + 2 * transfer)
    spans = slow_simulate(schedule, times.costs(schedule.placement)).spans
    assert spans.max() == pytest.approx(microbatches * (forward + inputs + weight) + bubble)


@pytest.mark.parametrize(("strategy", "column"), [(zb_h1, "ZB-H1"), (zb_h2, "ZB-H2")])
def test_rates_on_the_papers_profiles(strategy: Strategy, column: str):
    for row in conformance("zero_bubble_table5.json")["rows"]:
        schedule = build(strategy, row["ranks"], row["microbatches"])
        times = Settings(
            forward_times=row["forward_us"],
            backward_input_times=row["backward_input_us"],
            backward_weight_times=row["backward_weight_us"],
            p2p_time=row["p2p_us"],
        )
        assert timeline(schedule, times).bubble.span == pytest.approx(row["bubble_rate"][column], abs=1e-4)


def test_zb_h2_has_the_least_makespan_and_the_least_span_for_any_number_of_microbatches():
    """Rank 0 can do no backward before 2p - 1, and the last rank nothing before p - 1."""
    for ranks in range(1, 9):
        for microbatches in range(1, 3 * ranks + 1):
            schedule = build(zb_h2, ranks, microbatches)
            result = simulate(schedule, Settings().costs(schedule.placement))
            after_first_trip, whole = 2 * ranks - 1 + 2 * microbatches, 3 * microbatches
            assert result.timeline.makespan == max(after_first_trip, ranks - 1 + whole), ranks
            assert result.timeline.spans.max() == max(after_first_trip, whole), ranks
            assert result.memory.peak_activation.max() == min(2 * ranks - 1, microbatches), ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 9])
def test_no_rank_pauses_with_at_least_2p_minus_1_microbatches(ranks: int):
    for microbatches in (2 * ranks - 1, 2 * ranks, 3 * ranks + 1):
        schedule = zbv(zbv.shape(ranks, microbatches))
        assert simulate(schedule, Settings().costs(schedule.placement)).timeline.bubble.span == pytest.approx(0)
