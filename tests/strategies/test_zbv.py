"""ZB-V: its picture, PyTorch's orders, the authors' figures, and its promises on random shapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.model import Schedule, format_schedule
from pipeplan.simulation import simulate
from pipeplan.strategies.zbv import zbv
from tests.conformance import conformance
from tests.strategies.picture import picture

UNIT = Settings(times_per="stage")


def build(ranks: int, microbatches: int) -> Schedule:
    return zbv(zbv.shape(ranks, microbatches))


PICTURE = """
rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3 .
rank 1 | .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3
""".strip()


def test_timing_table():
    schedule = build(2, 4)
    assert picture(simulate(schedule, UNIT.costs(schedule.placement)).timeline) == PICTURE
    documented = [line.strip() for line in (zbv.build.__doc__ or "").splitlines()]
    assert [line for line in documented if line.startswith("rank ")] == PICTURE.splitlines()


def test_one_microbatch():
    assert format_schedule(build(3, 1)).splitlines() == [
        "0F0 5F0 5I0 5W0 0I0 0W0",
        "1F0 4F0 4I0 4W0 1I0 1W0",
        "2F0 3F0 3I0 3W0 2I0 2W0",
    ]


@given(st.integers(1, 9), st.integers(1, 22))
@settings(max_examples=50, deadline=None)
def test_keeps_its_promises(ranks: int, microbatches: int):
    shape = zbv.shape(ranks, microbatches)
    schedule = zbv(shape)
    assert check(schedule).valid
    result = simulate(schedule, Settings().costs(schedule.placement))
    assert result.timeline.idle.max() == pytest.approx(zbv.bubble.value(shape))
    assert result.memory.peak_activation.max() == zbv.memory.value(shape)
    if microbatches >= 2 * ranks - 1:
        assert result.timeline.bubble.span == pytest.approx(0)


def test_two_chunks_only():
    with pytest.raises(ShapeError, match="2 chunk"):
        zbv.shape(4, 8, 4)


def test_is_pytorchs_order():
    orders = conformance("torch_orders.json")["orders"]
    cases = {key: rows for key, rows in orders.items() if key.startswith("ZBVZeroBubble")}
    assert cases
    for key, rows in cases.items():
        ranks, microbatches = (int(part[2:]) for part in key.split("|")[1:3])
        expected = [[cell for cell in row.split() if cell != "."] for row in rows]
        assert [row.split() for row in format_schedule(build(ranks, microbatches)).splitlines()] == expected, key


def test_is_the_authors_handcrafted_schedule():
    rows = conformance("zero_bubble_schedulers.json")["rows"]
    cases = [row for row in rows if row["sched"] == "handcraft_zbv"]
    assert cases
    for row in cases:
        forward, inputs, weights = row["chunk_cost"]
        times = Settings(
            forward_times=forward,
            backward_input_times=inputs,
            backward_weight_times=weights,
            times_per="stage",
            p2p_time=row["comm"],
        )
        schedule = build(row["p"], row["n"])
        result = simulate(schedule, times.costs(schedule.placement))
        assert result.timeline.makespan == row["makespan"]
        assert result.timeline.spans.max() == row["max_stage_span"]
        assert result.memory.peak_activation.tolist() == row["peak_mem_stageF"]
