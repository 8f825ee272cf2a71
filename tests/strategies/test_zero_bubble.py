"""ZB-H1 and ZB-H2: their pictures, the visualizer's orders, the paper's rates, and their promises on random shapes."""

from itertools import starmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.model import Schedule, Timeline, format_schedule
from pipeplan.simulation import simulate
from pipeplan.strategies.protocol import Strategy
from pipeplan.strategies.zero_bubble import FAMILY, zb_h1, zb_h2
from tests.conformance import conformance
from tests.slow_simulator import slow_simulate
from tests.strategies.picture import picture


def build(strategy: Strategy, ranks: int, microbatches: int) -> Schedule:
    return strategy(strategy.shape(ranks, microbatches))


def timeline(schedule: Schedule, times: Settings | None = None) -> Timeline:
    return simulate(schedule, (times or Settings()).costs(schedule.placement)).timeline


PICTURES = {
    (zb_h1, 3, 4): """
rank 0 | 0F0 0F1 0F2 .   .   0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
rank 1 | .   1F0 1F1 .   1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
rank 2 | .   .   2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3
""",
    (zb_h2, 3, 5): """
rank 0 | 0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 .   .
rank 1 | .   1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4 .
rank 2 | .   .   2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4
""",
}


@pytest.mark.parametrize(("strategy", "ranks", "microbatches"), PICTURES)
def test_timing_table(strategy: Strategy, ranks: int, microbatches: int):
    table = PICTURES[strategy, ranks, microbatches].strip()
    assert picture(timeline(build(strategy, ranks, microbatches))) == table
    documented = [line.strip() for line in (strategy.build.__doc__ or "").splitlines()]
    assert [line for line in documented if line.startswith("rank ")] == table.splitlines()


def test_fewer_microbatches_than_ranks():
    assert format_schedule(build(zb_h1, 4, 2)).splitlines() == [
        "0F0 0F1 0I0 0W0 0I1 0W1",
        "1F0 1F1 1I0 1W0 1I1 1W1",
        "2F0 2F1 2I0 2I1 2W0 2W1",
        "3F0 3I0 3F1 3I1 3W0 3W1",
    ]


@given(st.sampled_from(FAMILY), st.integers(1, 9), st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_keeps_its_promises(strategy: Strategy, ranks: int, microbatches: int):
    shape = strategy.shape(ranks, microbatches)
    schedule = strategy(shape)
    assert check(schedule).valid
    result = simulate(schedule, Settings().costs(schedule.placement))
    assert result.timeline.idle.max() == strategy.bubble.value(shape)
    assert result.memory.peak_activation.max() == strategy.memory.value(shape)


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


def test_zb_h1_is_the_visualizers_zb_1p():
    data = conformance("visualizer_totals.json")
    cases = [case for case in data["totals"] + data["orders"] if case["strategy"] == "zb1p"]
    assert cases
    for case in cases:
        schedule = build(zb_h1, case["devices"], case["batches"])
        times = Settings(p2p_time=case["p2p"])
        assert timeline(schedule, times).makespan == case["total"]
        for rank, row in case.get("order", {}).items():
            assert [str(op) for op in schedule[int(rank)]] == list(starmap(_in_our_notation, _cells(row)))


def _cells(row: str) -> list[list[str]]:
    return [cell.split("@") for cell in row.split()]


def _in_our_notation(op: str, stage: str) -> str:
    """The visualizer's F, D, W with their microbatch, in PyTorch's letters."""
    return stage + op.replace("D", "I")


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
    for ranks in range(1, 13):
        for microbatches in range(1, 3 * ranks + 1):
            schedule = build(zb_h2, ranks, microbatches)
            result = simulate(schedule, Settings().costs(schedule.placement))
            after_first_trip, whole = 2 * ranks - 1 + 2 * microbatches, 3 * microbatches
            assert result.timeline.makespan == max(after_first_trip, ranks - 1 + whole), ranks
            assert result.timeline.spans.max() == max(after_first_trip, whole), ranks
            assert result.memory.peak_activation.max() == min(2 * ranks - 1, microbatches), ranks


def test_weight_backwards_fill_the_waits_of_ranks_that_have_run_out_of_forwards():
    assert format_schedule(build(zb_h2, 4, 5)).splitlines() == [
        "0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4",
        "1F0 1F1 1F2 1F3 1F4 1I0 1W0 1I1 1W1 1I2 1W2 1I3 1W3 1I4 1W4",
        "2F0 2F1 2F2 2I0 2F3 2I1 2F4 2I2 2W0 2I3 2W1 2I4 2W2 2W3 2W4",
        "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3W0 3W1 3W2 3W3 3W4",
    ]


def test_zb_h2_works_without_a_pause():
    spans = timeline(build(zb_h2, 5, 9)).spans
    assert np.array_equal(spans, np.full(5, 27.0))
