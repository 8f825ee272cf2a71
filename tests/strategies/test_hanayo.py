import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.simulation import simulate
from pipeplan.strategies.hanayo import build_hanayo, hanayo
from tests.strategies.picture import picture
from tests.strategies.promises import assert_keeps_promises
from tests.strategies.tables import documented_table

TABLE = """\
rank 0 | 0F0 0F1 0F2 .   .   5F0 5B0 5F1 5B1 5F2 5B2 0B0 .   0B1 .   0B2
rank 1 | .   1F0 1F1 .   4F0 1F2 4F1 4B0 4F2 4B1 1B0 4B2 1B1 .   1B2 .
rank 2 | .   .   2F0 3F0 2F1 3F1 2F2 3F2 3B0 2B0 3B1 2B1 3B2 2B2 .   ."""


def idle(ranks, microbatches, chunks, **times):
    schedule = hanayo(hanayo.shape(ranks, microbatches, chunks))
    return simulate(schedule, Settings(**times).costs(schedule.placement)).timeline.idle.max()


def test_timing_table():
    schedule = hanayo(hanayo.shape(3, 3))
    costs = Settings(times_per="stage", backward_times=1.0).costs(schedule.placement)
    assert picture(simulate(schedule, costs).timeline) == TABLE
    assert documented_table(build_hanayo) == TABLE


@pytest.mark.parametrize("waves", [1, 2, 3])
@pytest.mark.parametrize(("ranks", "units"), [(2, 1), (3, 2), (4, 4)])
def test_idle_time_of_whole_units(ranks, units, waves):
    assert idle(ranks, units * ranks, 2 * waves, backward_times=1.0) == pytest.approx((ranks - 1) / waves)
    assert idle(ranks, units * ranks, 2 * waves) == pytest.approx((ranks - 1) * (units + 1) / waves)


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(1, 7), microbatches=st.integers(1, 20), waves=st.integers(1, 3))
def test_keeps_its_promises(ranks, microbatches, waves):
    shape = hanayo.shape(ranks, microbatches, 2 * waves)
    assert_keeps_promises(hanayo, shape, exactly=microbatches % ranks == 0)


def test_one_chunk_makes_no_wave():
    with pytest.raises(ShapeError, match="two chunks a rank for each wave, not 3 in all"):
        hanayo(hanayo.shape(4, 4, 3))
