"""V-Min and V-Half: their pictures, the authors' makespans, and their promises on random shapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.kernels import compile_loop
from pipeplan.simulation import Simulation, simulate
from pipeplan.strategies import controllable_memory
from pipeplan.strategies.building_block_kernel import run_block
from pipeplan.strategies.controllable_memory import FAMILY, v_half, v_min
from pipeplan.strategies.protocol import Strategy
from tests.conformance import conformance
from tests.strategies.picture import picture


def run(strategy: Strategy, ranks: int, microbatches: int, time: float = 1.0) -> Simulation:
    """On equal times a chunk and free transfers."""
    schedule = strategy(strategy.shape(ranks, microbatches))
    times = Settings(forward_times=time, backward_input_times=time, backward_weight_times=time, times_per="stage")
    return simulate(schedule, times.costs(schedule.placement))


PICTURES = {
    v_min: """
rank 0 | 0F0 0F1 .   .   .   5F0 5I0 5F1 5W0 0F2 5I1 0I0 5W1 0W0 .   5F2 5I2 0I1 5W2 0W1 .   0I2 0W2
rank 1 | .   1F0 1F1 .   4F0 .   4F1 4I0 4W0 .   1I0 1F2 4I1 1W0 4F2 4W1 1I1 4I2 1W1 4W2 1I2 1W2 .
rank 2 | .   .   2F0 3F0 2F1 3F1 .   .   3I0 2I0 3W0 2W0 2F2 3F2 3I1 2I1 3W1 2W1 3I2 2I2 3W2 2W2 .
""",
    v_half: """
rank 0 | 0F0 0F1 0F2 .   .   5F0 5I0 5W0 5F1 5I1 5W1 0I0 0W0 .   .   5F2 5I2 0I1 5W2 0W1 .   0I2 0W2
rank 1 | .   1F0 1F1 .   4F0 .   4F1 4I0 4W0 1F2 1I0 4I1 1W0 4W1 4F2 .   1I1 4I2 1W1 4W2 1I2 1W2 .
rank 2 | .   .   2F0 3F0 2F1 3F1 .   .   3I0 2I0 3W0 2F2 2W0 3F2 3I1 2I1 3W1 2W1 3I2 2I2 3W2 2W2 .
""",
}


@pytest.mark.parametrize("strategy", FAMILY, ids=lambda strategy: strategy.name)
def test_timing_table(strategy: Strategy):
    table = PICTURES[strategy].strip()
    assert picture(run(strategy, 3, 3).timeline) == table
    documented = [line.strip() for line in (strategy.build.__doc__ or "").splitlines()]
    assert [line for line in documented if line.startswith("rank ")] == table.splitlines()


@pytest.mark.parametrize("strategy", FAMILY, ids=lambda strategy: strategy.name)
@given(ranks=st.integers(1, 17), microbatches=st.integers(1, 24))
@settings(max_examples=40, deadline=None)
def test_keeps_its_promises(strategy: Strategy, ranks: int, microbatches: int):
    shape = strategy.shape(ranks, microbatches)
    result = run(strategy, ranks, microbatches)
    assert check(result.schedule).valid
    # A whole rank's forward takes two of these units.
    assert result.timeline.idle.max() / 2 <= strategy.bubble.value(shape)
    assert result.memory.peak_activation.max() == strategy.memory.value(shape)


@pytest.mark.parametrize("strategy", FAMILY, ids=lambda strategy: strategy.name)
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_bubble_of_one_microbatch_is_exact(strategy: Strategy, ranks: int):
    idle = run(strategy, ranks, 1).timeline.idle.max() / 2
    assert idle == strategy.bubble.value(strategy.shape(ranks, 1))


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


@pytest.mark.parametrize(
    ("strategy", "ranks", "microbatches", "makespan"),
    [(v_min, 8, 24, 17_100), (v_min, 4, 8, 5_900), (v_half, 4, 12, 7_700), (v_half, 8, 24, 16_100)],
)
def test_makespan_at_equal_times(strategy: Strategy, ranks: int, microbatches: int, makespan: float):
    assert run(strategy, ranks, microbatches, 100).timeline.makespan == makespan


@pytest.mark.parametrize(("strategy", "name"), [(v_min, "zbv_greedy_min"), (v_half, "zbv_greedy_half")])
def test_reaches_the_authors_makespans(strategy: Strategy, name: str):
    rows = conformance("zero_bubble_schedulers.json")["rows"]
    cases = [row for row in rows if row["sched"] == name and row["costset"] == "eq"]
    assert cases
    for row in cases:
        result = run(strategy, row["p"], row["n"], row["chunk_cost"][0])
        assert result.timeline.makespan == row["makespan"]
        assert result.memory.peak_activation.max() == max(row["peak_mem_stageF"])


def test_one_chunk_is_refused():
    with pytest.raises(ShapeError, match="2 chunk"):
        v_half.shape(4, 8, 1)


def test_compiled_loop_gives_the_same_order(monkeypatch: pytest.MonkeyPatch):
    plain = [run(strategy, 5, 9).schedule for strategy in FAMILY]
    monkeypatch.setattr(controllable_memory._RUN_BLOCK, "_compiled", compile_loop(run_block))
    for strategy, schedule in zip(FAMILY, plain, strict=True):
        assert run(strategy, 5, 9).schedule == schedule
