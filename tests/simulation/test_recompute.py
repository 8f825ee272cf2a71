"""What recomputation costs and saves: times, memory and the bound."""

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
