"""What recomputation costs and saves: times, memory and the bound."""

from hypothesis import given
from hypothesis import settings as run_settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.passes import insert_recompute
from pipeplan.simulation import simulate
from pipeplan.strategies.registry import strategy

RANKS, MICROBATCHES = 4, 8


def plan(name: str, ranks: int = RANKS, microbatches: int = MICROBATCHES):
    rule = strategy(name)
    return rule(rule.shape(ranks, microbatches))


def test_1f1b_that_recomputes_everything():
    """The first forwards and the last backwards stand as they did; R runs while its rank waits for the gradient."""
    recomputed = insert_recompute(plan("1f1b"))
    simulation = simulate(recomputed, Settings(forward_times=1.0, recompute_times=0.5).costs(recomputed.placement))
    assert simulation.timeline.makespan == 3 * 1 + MICROBATCHES * 3.5 + 3 * 2
    assert simulation.memory.peak_activation.tolist() == [1.0] * RANKS
    assert simulation.bound.value == 3 * 1 + MICROBATCHES * 3.5


@run_settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "zbv"]),
    st.integers(1, 4).map(lambda half: 2 * half),
    st.integers(1, 3),
    st.floats(0.1, 3.0),
    st.data(),
)
def test_no_schedule_is_shorter_than_its_bound(name, ranks, rounds, time, data):
    schedule = plan(name, ranks, rounds * ranks)
    stages = data.draw(st.sets(st.integers(0, schedule.stages - 1)))
    recomputed = insert_recompute(schedule, stages)
    simulation = simulate(recomputed, Settings(recompute_times=time, p2p_time=0.1).costs(schedule.placement))
    assert simulation.timeline.makespan >= simulation.bound.value * (1 - 1e-9)
