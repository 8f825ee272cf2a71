"""V-Min and V-Half: the authors' makespans, and where their rules beat a plain repetition of the block."""

import pytest

from pipeplan.costs import Settings
from pipeplan.simulation import Simulation, simulate
from pipeplan.strategies.controllable_memory import v_half, v_min
from pipeplan.strategies.protocol import Strategy
from tests.conformance import conformance


def run(strategy: Strategy, ranks: int, microbatches: int, time: float = 1.0) -> Simulation:
    """On equal times a chunk and free transfers."""
    schedule = strategy(strategy.shape(ranks, microbatches))
    times = Settings(forward_times=time, backward_input_times=time, backward_weight_times=time, times_per="stage")
    return simulate(schedule, times.costs(schedule.placement))


def test_backwards_do_not_wait_for_the_block_while_their_rank_idles():
    """On five ranks the first backward of chunk 0 was a unit late where a rank waited for it beside one of chunk 1."""
    for microbatches in range(4, 16):
        result = run(v_min, 5, microbatches)
        assert result.timeline.makespan == 6 * microbatches + 14, microbatches
        assert result.memory.peak_activation.max() == 3, microbatches


def test_microbatches_that_all_fit_into_memory_take_a_forward_and_a_backward_more_each():
    for ranks in range(6, 17):
        for microbatches in range(1, (ranks + 4) // 3 + 1):
            assert run(v_min, ranks, microbatches).timeline.makespan == 4 * ranks - 1 + 2 * microbatches, ranks


@pytest.mark.parametrize(("strategy", "name"), [(v_min, "zbv_greedy_min"), (v_half, "zbv_greedy_half")])
def test_reaches_the_authors_makespans(strategy: Strategy, name: str):
    rows = conformance("zero_bubble_schedulers.json")["rows"]
    cases = [row for row in rows if row["sched"] == name and row["costset"] == "eq"]
    assert cases
    for row in cases:
        result = run(strategy, row["p"], row["n"], row["chunk_cost"][0])
        assert result.timeline.makespan == row["makespan"]
        assert result.memory.peak_activation.max() == max(row["peak_mem_stageF"])
