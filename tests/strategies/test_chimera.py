from pipeplan.costs import Settings
from pipeplan.simulation import simulate
from pipeplan.strategies.bidirectional import chimera


def test_critical_path_of_one_unit():
    """p forwards and 2p - 2 backwards, where the backward is the longer."""
    schedule = chimera(chimera.shape(6, 6))
    times = Settings(times_per="stage", forward_times=100.0, backward_times=201.0)
    assert simulate(schedule, times.costs(schedule.placement)).timeline.makespan == 6 * 100 + 10 * 201
