import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.simulation import simulate
from pipeplan.strategies.chimera import build_chimera, chimera
from tests.strategies.picture import picture
from tests.strategies.promises import assert_keeps_promises
from tests.strategies.tables import documented_table

TABLE = """\
rank 0 | 0F0 0F1 .   3F2 3B2 3F3 3B3 0B0 .   0B1
rank 1 | .   1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1 .
rank 2 | .   1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3 .
rank 3 | 0F2 0F3 .   3F0 3B0 3F1 3B1 0B2 .   0B3"""


def simulated(ranks, microbatches, **times):
    schedule = chimera(chimera.shape(ranks, microbatches))
    return simulate(schedule, Settings(times_per="stage", **times).costs(schedule.placement))


def test_timing_table():
    assert picture(simulated(4, 4, backward_times=1.0).timeline) == TABLE
    assert documented_table(build_chimera) == TABLE


@pytest.mark.parametrize("units", [1, 2, 5])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_idle_time_of_whole_units(ranks, units):
    equal = simulated(ranks, units * ranks, backward_times=1.0)
    assert equal.timeline.idle.max() == ranks - 2
    assert simulated(ranks, units * ranks).timeline.idle.max() == (ranks - 2) * (units + 1)


def test_critical_path_of_one_unit():
    """p forwards and 2p - 2 backwards, where the backward is the longer."""
    assert simulated(6, 6, forward_times=100.0, backward_times=201.0).timeline.makespan == 6 * 100 + 10 * 201


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(1, 6).map(lambda half: 2 * half), microbatches=st.integers(1, 20).map(lambda half: 2 * half))
def test_keeps_its_promises(ranks, microbatches):
    shape = chimera.shape(ranks, microbatches)
    assert_keeps_promises(chimera, shape, exactly=microbatches % ranks == 0)


@pytest.mark.parametrize(
    ("ranks", "microbatches", "rule"),
    [(3, 6, "an even number of ranks, not 3"), (4, 5, "even number of microbatches, half for each direction, not 5")],
)
def test_refused_shapes(ranks, microbatches, rule):
    with pytest.raises(ShapeError, match=rule):
        chimera(chimera.shape(ranks, microbatches))
