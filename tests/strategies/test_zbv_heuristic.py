from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import InfeasibleError
from pipeplan.model import Kind, Placement, Timeline
from pipeplan.simulation import simulate
from pipeplan.strategies.greedy_rank import rank_costs
from pipeplan.strategies.protocol import Shape
from pipeplan.strategies.zbv_heuristic import best_run, zbv_heuristic
from tests.conformance import conformance
from tests.extensions.search.published import grid_settings, model_bytes, times

LETTERS = {(Kind.F, 0): "F", (Kind.F, 1): "f", (Kind.I, 1): "B", (Kind.I, 0): "b", (Kind.W, 1): "W", (Kind.W, 0): "w"}

UNEVEN: dict[str, Any] = {
    "forward_times": 7.0,
    "backward_input_times": 9.0,
    "backward_weight_times": 4.0,
    "p2p_time": 1.0,
}


def build(ranks: int, microbatches: int, given_settings: Settings) -> Timeline:
    placement = Placement.v(ranks)
    costs = given_settings.costs(placement)
    return simulate(
        zbv_heuristic(Shape(ranks, microbatches, chunks=2), costs, given_settings.limits(placement)), costs
    ).timeline


def peaks(timeline: Timeline, given_settings: Settings) -> list[float]:
    costs = given_settings.costs(timeline.schedule.placement)
    return [round(peak, 4) for peak in simulate(timeline.schedule, costs).memory.peak_activation.tolist()]


def orders(timeline: Timeline) -> list[str]:
    """Rows in the letters of the conformance data."""
    chunk_of = timeline.schedule.placement.chunk_of[0]
    return [
        " ".join(f"{LETTERS[op.kind, chunk_of[op.stage]]}{op.microbatch}" for op in row) for row in timeline.schedule
    ]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_no_rank_idles_after_its_first_op_with_equal_times(ranks: int):
    timeline = build(ranks, 2 * ranks - 1, Settings(times_per="stage"))
    assert timeline.spans.tolist() == timeline.work.tolist()


def test_a_limit_below_p_activations_is_infeasible_with_the_least_one_named():
    with pytest.raises(InfeasibleError, match=r"room for 3\.5 activations but needs at least 4: 8 chunk activations"):
        build(4, 8, Settings(memory_limit="3.5act"))
    with pytest.raises(InfeasibleError, match="rank 2 has room for 3 activations"):
        build(4, 8, Settings(memory_limit=("4act", "4act", "3act", "4act")))


def test_room_is_kept_for_a_backward_that_adds_memory():
    adds: dict[str, Any] = {"activation_bytes": 10.0, "weight_activation_bytes": 17.0}
    assert max(peaks(build(4, 8, Settings(**adds, memory_limit="4.35act")), Settings(**adds))) == 4.35
    with pytest.raises(InfeasibleError, match=r"needs at least 4\.35"):
        build(4, 8, Settings(**adds, memory_limit="4.3act"))


def test_the_order_of_stages_that_differ_is_that_of_the_middle_rank_within_the_limit():
    unequal = Settings(
        forward_times=(1.0, 2.0, 2.0, 2.0, 2.0, 3.0),
        backward_times=4.0,
        activation_bytes=(1.0, 3.0, 2.0),
        memory_limit=9.0,
    )
    equal = Settings(forward_times=4.0, backward_times=4.0, activation_bytes=3.0, memory_limit=9.0)
    timeline = build(3, 8, unequal)
    assert orders(timeline) == orders(build(3, 8, equal))
    peak = simulate(timeline.schedule, unequal.costs(timeline.schedule.placement)).memory.peak_bytes
    assert peak is not None
    assert 5 < max(peak) <= 9


TIMES = st.integers(1, 30).map(float)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, Settings]:
    ranks = draw(st.integers(1, 6))
    freed = draw(st.sampled_from([0.0, 0.5, 1.0, 1.7]))
    limit = ranks + max(0.0, freed - 1) / 2 + draw(st.sampled_from([0.0, 0.2, 1.0, ranks / 2, 2 * ranks]))
    return (
        ranks,
        draw(st.integers(1, 12)),
        Settings(
            forward_times=draw(TIMES),
            backward_input_times=draw(TIMES),
            backward_weight_times=draw(TIMES),
            times_per="stage",
            p2p_time=draw(st.integers(0, 40)),
            activation_bytes=1.0,
            weight_activation_bytes=freed,
            memory_limit=f"{limit}act",
        ),
    )


@given(cases())
@settings(max_examples=50, deadline=None)
def test_it_is_right_within_the_limit_and_times_itself_as_the_simulator_does(case: tuple[int, int, Settings]):
    ranks, microbatches, given_settings = case
    timeline = build(ranks, microbatches, given_settings)
    placement = timeline.schedule.placement
    check(timeline.schedule).require_valid()
    assert len(timeline.schedule) == 6 * ranks * microbatches
    limits = given_settings.limits(placement)
    assert limits is not None
    assert (np.array(peaks(timeline, given_settings)) <= limits.values + 1e-4).all()
    costs = given_settings.costs(placement)
    own = best_run(rank_costs(placement, costs, limits), microbatches, costs.transfer.time())
    assert [rank.clock for rank in own] == timeline.last_end.tolist()


def test_the_authors_settings_at_three_limits():
    rows = conformance("zbv_heuristic.json")["rows"]
    assert rows
    large = [row for row in rows if row["ranks"] > 16]
    for row in (*(row for row in rows if row not in large), *large[:6:4]):
        ranks, microbatches = row["ranks"], row["microbatches"]
        given_settings = authors_settings(row)
        timeline = build(ranks, microbatches, given_settings)
        assert (timeline.makespan, timeline.spans.max()) == (row["makespan"], row["max_rank_span"])
        assert timeline.work.tolist() == [row["work_per_rank"]] * ranks
        np.testing.assert_allclose(2 * np.array(peaks(timeline, given_settings)), row["peak_chunks"], atol=6e-4)
        if "order" in row:
            assert orders(timeline) == row["order"]


def authors_settings(row: dict[str, Any]) -> Settings:
    """A row of zbv_heuristic.json; its limit in bytes."""
    stages = 2 * row["ranks"]
    memory = model_bytes(row["hidden"], row["heads"], row["seq"], stages)
    limit = row["memory_limit_chunks"] * memory["activation_bytes"][0]
    return Settings(**times(row, stages), **memory, memory_limit=float(limit))


def test_the_authors_scheduler_on_the_common_grid():
    rows = [row for row in conformance("zero_bubble_schedulers.json")["rows"] if row["sched"] == "zbv"]
    assert rows
    for row in rows:
        given_settings = grid_settings(row, chunks=2, limit=row["max_mem"] / 2 if "max_mem" in row else None)
        timeline = build(row["p"], row["n"], given_settings)
        assert (timeline.makespan, timeline.spans.max()) == (row["makespan"], row["max_stage_span"])
        np.testing.assert_allclose(peaks(timeline, given_settings), row["peak_mem_stageF"], atol=6e-4)
