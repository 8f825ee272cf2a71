from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import InfeasibleError
from pipeplan.model import Placement, Timeline, format_schedule
from pipeplan.simulation import simulate
from pipeplan.strategies.greedy_rank import rank_costs
from pipeplan.strategies.protocol import Shape
from pipeplan.strategies.zb_auto import best_run, zb_auto
from tests.conformance import conformance
from tests.extensions.search.published import grid_settings, model_bytes, times

ACTIVATIONS_PER_RANK = {"zb_1p": 1, "zb_1.5p": 1.5, "zb_2p": 2, "zb_inf": None}
MODELS = {"1.5B": (2304, 24), "6.2B": (4096, 32), "14.6B": (5120, 40), "28.3B": (6144, 48)}


def build(ranks: int, microbatches: int, given_settings: Settings) -> Timeline:
    placement = Placement.linear(ranks)
    costs = given_settings.costs(placement)
    return simulate(zb_auto(Shape(ranks, microbatches), costs, given_settings.limits(placement)), costs).timeline


def peaks(timeline: Timeline, given_settings: Settings) -> list[float]:
    costs = given_settings.costs(timeline.schedule.placement)
    return [round(peak, 3) for peak in simulate(timeline.schedule, costs).memory.peak_activation.tolist()]


def test_with_p_activations_it_is_handcrafted_zb_h1s_bubble():
    timeline = build(3, 4, Settings(memory_limit="3act"))
    assert format_schedule(timeline.schedule).splitlines() == [
        "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3",
        "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3",
        "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3",
    ]
    assert timeline.spans.tolist() == [14, 13, 12]
    assert timeline.schedule.name == "zb-auto"


def test_limits_count_what_is_static_when_they_are_in_bytes():
    of_bytes: dict[str, Any] = {"activation_bytes": 10.0, "static_bytes": 100.0}
    assert (
        build(3, 6, Settings(memory_limit=130.0, **of_bytes)).schedule
        == build(3, 6, Settings(memory_limit="3act", **of_bytes)).schedule
    )


def test_a_rank_without_room_for_one_microbatch_is_named_with_the_least_limit():
    limits = ("2act", "0.5act", "2act")
    with pytest.raises(InfeasibleError, match=r"rank 1 has room for 0\.5 activations but needs at least 1:"):
        build(3, 4, Settings(memory_limit=limits))


def test_what_is_static_may_leave_no_room_at_all():
    with pytest.raises(InfeasibleError, match=r"rank 0 has room for 0\.0 B but needs at least 10\.0 B:"):
        build(3, 4, Settings(memory_limit=90.0, activation_bytes=10.0, static_bytes=100.0))


def test_room_is_kept_for_a_backward_that_adds_memory():
    adds = Settings(activation_bytes=10.0, weight_activation_bytes=17.0, memory_limit="2.7act")
    timeline = build(3, 4, adds)
    assert max(peaks(timeline, adds)) == 2.7
    with pytest.raises(InfeasibleError, match=r"needs at least 1\.7"):
        build(3, 4, Settings(activation_bytes=10.0, weight_activation_bytes=17.0, memory_limit="1.6act"))


TIMES = st.integers(1, 30)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, Settings]:
    ranks = draw(st.integers(1, 6))
    lists = st.tuples(*[TIMES] * ranks)
    freed = draw(st.sampled_from([0.0, 0.5, 1.0, 1.7]))
    limits = draw(st.tuples(*[st.sampled_from([2, 3, ranks + 1, 2 * ranks + 1])] * ranks))
    return (
        ranks,
        draw(st.integers(1, 12)),
        Settings(
            forward_times=draw(lists),
            backward_input_times=draw(lists),
            backward_weight_times=draw(lists),
            p2p_time=draw(st.integers(0, 40)),
            activation_bytes=1.0,
            weight_activation_bytes=freed,
            memory_limit=tuple(f"{limit}act" for limit in limits),
        ),
    )


@given(cases())
@settings(max_examples=50, deadline=None)
def test_it_is_right_within_the_limits_and_times_itself_as_the_simulator_does(case: tuple[int, int, Settings]):
    ranks, microbatches, given_settings = case
    timeline = build(ranks, microbatches, given_settings)
    placement = timeline.schedule.placement
    check(timeline.schedule).require_valid()
    assert len(timeline.schedule) == 3 * ranks * microbatches
    limits = given_settings.limits(placement)
    assert limits is not None
    assert (np.array(peaks(timeline, given_settings)) <= limits.values + 1e-9).all()
    costs = given_settings.costs(placement)
    own = best_run(rank_costs(placement, costs, limits), microbatches, costs.transfer.time())
    assert [rank.clock for rank in own] == timeline.last_end.tolist()


def test_the_authors_schedulers_on_the_common_grid():
    rows = [row for row in conformance("zero_bubble_schedulers.json")["rows"] if row["sched"] in ACTIVATIONS_PER_RANK]
    assert len(rows) > 30
    for row in rows:
        factor = ACTIVATIONS_PER_RANK[row["sched"]]
        given_settings = grid_settings(row, chunks=1, limit=None if factor is None else factor * row["p"])
        timeline = build(row["p"], row["n"], given_settings)
        assert (timeline.makespan, timeline.spans.max()) == (row["makespan"], row["max_stage_span"])
        assert peaks(timeline, given_settings) == row["peak_mem_stageF"]


@pytest.mark.parametrize("factor", [1, 2])
def test_the_papers_bubble_rates_on_measured_profiles(factor: int):
    for row in conformance("zero_bubble_table5.json")["rows"]:
        ranks, microbatches = row["ranks"], row["microbatches"]
        timeline = build(ranks, microbatches, profile(row, f"{factor * ranks}act"))
        rate = (timeline.spans.max() - timeline.work.max()) / timeline.spans.max()
        assert rate == pytest.approx(row["bubble_rate"][f"ZB-{factor}p"], abs=1e-4)


def profile(row: dict[str, Any], limit: str) -> Settings:
    hidden, heads = MODELS[row["model"]]
    measured = {"p2p": row["p2p_us"]} | {
        name: row[f"{name}_us"] for name in ("forward", "backward_input", "backward_weight")
    }
    ranks = row["ranks"]
    return Settings(**times(measured, ranks), **model_bytes(hidden, heads, 1024, ranks), memory_limit=limit)
