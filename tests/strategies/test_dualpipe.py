import pytest

from pipeplan.costs import Settings
from pipeplan.simulation import simulate
from pipeplan.strategies.dualpipe import dualpipe, dualpipev


@pytest.mark.parametrize(("strategy", "depth"), [(dualpipe, 4), (dualpipev, 8)])
def test_published_bubble_with_a_cheaper_overlap(strategy, depth):
    schedule = strategy(strategy.shape(8, 32))
    times = Settings(
        times_per="stage", forward_times=4.0, backward_times=7.0, backward_weight_times=3.0, overlap_times=9.0
    )
    idle = simulate(schedule, times.costs(schedule.placement)).timeline.idle
    assert idle.max() == (depth - 1) * (9 + 7 - 3 * 3)
