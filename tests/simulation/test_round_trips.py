from dataclasses import replace

import numpy as np
import pytest

from pipeplan.costs import Costs, Limits, Settings
from pipeplan.model import Placement
from pipeplan.simulation import Bound, RoundTrips, lower_bound, span_bound
from tests.conformance import conformance
from tests.extensions.search.problems import proven
from tests.simulation.soundness.instances import instance
from tests.simulation.soundness.judge import judge

V8 = Placement.v(8)


def costs(placement: Placement, forward: float, inputs: float, weights: float, transfer: float) -> Costs:
    return Settings(
        forward_times=forward,
        backward_input_times=inputs,
        backward_weight_times=weights,
        p2p_time=transfer,
        times_per="stage",
    ).costs(placement)


def trips_of(bound: Bound) -> RoundTrips:
    assert bound.round_trips is not None
    return bound.round_trips


def limit(placement: Placement, chunks: float) -> Limits:
    return Limits(np.full(placement.ranks, chunks / placement.chunks), True)


@pytest.mark.parametrize(
    ("placement", "times", "chunks", "value"),
    [
        (V8, (100, 120, 80, 10), 6, 21_040),
        (V8, (100, 120, 80, 10), 8, 17_560),
        (V8, (100, 120, 80, 10), 10, 16_960),
        (V8, (100, 120, 80, 10), 12, 16_360),
        (V8, (100, 120, 80, 10), 14, 15_760),
        (V8, (100, 100, 100, 0), 8, 16_700),
        (V8, (100, 100, 100, 0), 10, 16_100),
        (Placement.linear(8), (100, 120, 80, 10), 4, 12_780),
        (Placement.linear(8), (100, 120, 80, 10), 6, 9_420),
    ],
)
def test_24_microbatches_on_8_ranks(placement, times, chunks, value):
    assert lower_bound(placement, 24, costs(placement, *times), limits=limit(placement, chunks)).value == value


def test_the_windows_of_a_bound_add_up_to_it():
    bound = lower_bound(V8, 24, costs(V8, 100, 120, 80, 10), limits=limit(V8, 6))
    trips = trips_of(bound)
    assert bound.reason == "rank 7 idles in 8 round trips that its limit keeps apart"
    assert [(window.kind, window.count, window.length, window.work) for window in trips.windows] == [
        ("first", 1, 1880, 600),  # 7 x 2 forwards and transfers, 8 backwards and transfers back; six forwards fit
        ("trip", 6, 1780, 1300),  # F, the backwards of four chunks, four forwards
        ("last", 1, 3010, 1300),
    ]
    reaches_rank_7 = 7 * 110
    work = 24 * 2 * (100 + 120 + 80)
    assert bound.value == reaches_rank_7 + work + trips.idle
    assert (trips.rank, trips.fit, trips.binding) == (7, 3, 8)


def test_without_idling_in_between_both_ends_are_the_reason():
    bound = lower_bound(V8, 24, costs(V8, 100, 120, 80, 10), limits=limit(V8, 8))
    assert bound.reason == "the work of rank 7, which idles at both ends under its memory limit"
    assert trips_of(bound).binding == 2


def test_proven_optima_are_met_and_never_passed():
    met = 0
    for row in conformance("proven_optima.json")["rows"]:
        request = proven(row)
        assert request.bound.value <= row["optimal_makespan"] * (1 + 1e-9)
        met += request.bound.value >= row["optimal_makespan"] * (1 - 1e-9)
    assert met >= 44


def test_limits_that_hold_everything_or_nothing_whole_keep_nothing_apart():
    times = costs(V8, 100, 120, 80, 10)
    for chunks in (1, 48, 100):
        assert lower_bound(V8, 24, times, limits=limit(V8, chunks)).round_trips is None


def test_owed_weight_backwards_that_hold_nothing_fill_windows_once():
    placement = Placement.linear(6)
    memory = Settings(activation_bytes=2.0, weight_activation_bytes=0.0).costs(placement).memory
    free = replace(costs(placement, 10, 10, 5, 4), memory=memory)
    bound = lower_bound(placement, 40, free, limits=Limits(np.full(6, 4.0), False))
    trips = trips_of(bound)
    assert trips.rank == 0
    # Two microbatches fit: 40 halve into trips of 140 that hold the work of at most one other, and every W is in some trip.
    assert trips.length > 19 * 140
    assert trips.idle == pytest.approx(trips.length - 40 * 25)


def test_a_span_has_its_own_windows():
    times = costs(V8, 100, 120, 80, 10)
    spans = span_bound(V8, 24, times, limits=limit(V8, 6))
    whole = lower_bound(V8, 24, times, limits=limit(V8, 6))
    assert "round trips" in spans.reason
    assert whole.value - 7 * 110 - 8 * 130 - 80 <= spans.value < whole.value


def test_a_sliced_trip_takes_what_its_last_slice_takes():
    placement = Placement.linear(4)
    times = costs(placement, 8, 8, 8, 1)
    bounds = [lower_bound(placement, 12, times, slices=slices, limits=limit(placement, 2)) for slices in (1, 2, 4)]
    around = [next(w.length for w in trips_of(bound).windows if w.kind == "trip") for bound in bounds]
    assert around == [62, 34, 20]
    first = [trips_of(bound).windows[0].length for bound in bounds]
    assert first == [62, 34 + 4, 20 + 6]


def test_two_copies_of_a_model_pass_each_other():
    placement = Placement.bidirectional(8)
    times = costs(placement, 10, 10, 10, 1)
    one = lower_bound(Placement.linear(8), 16, times, limits=limit(Placement.linear(8), 3))
    two = lower_bound(placement, 16, times, limits=limit(placement, 3))
    assert one.value > two.value > 1.2 * lower_bound(placement, 16, times).value
    trips = trips_of(two)
    assert trips.rank in {3, 4}
    assert trips.windows[1].length == 76  # the way of the copy that enters rank 3 behind rank 4 is the shorter one


def test_weight_backwards_that_may_fill_any_window_but_only_one_count_once():
    """The idle time of all windows together then exceeds the sum of their own."""
    drawn = instance(38, differing=False)
    assert judge(drawn, evaluations=0) == []
    trips = trips_of(lower_bound(drawn.placement, drawn.microbatches, drawn.costs, limits=drawn.limits))
    assert trips.idle > sum(window.count * window.idle for window in trips.windows)
