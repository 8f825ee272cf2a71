"""Steps that follow each other without a flush, because their weights are one step late."""

import pytest

import pipeplan
from pipeplan.costs import Settings
from pipeplan.errors import InfeasibleError, InputError, UnknownNameError
from pipeplan.strategies import STRATEGIES
from tests.slow_simulator import slow_simulate


def steps(schedule: str, **options):
    return pipeplan.steady_state(schedule=schedule, **options)


@pytest.mark.parametrize(("ranks", "microbatches"), [(2, 3), (4, 8), (6, 4)])
def test_1f1b_has_no_bubble_between_steps(ranks: int, microbatches: int) -> None:
    """PipeDream-2BW: the work of a step, and as many activations as ranks, however few microbatches a step has."""
    found = steps("1f1b", ranks=ranks, microbatches=microbatches)
    assert found.steps.step == pytest.approx(3 * microbatches)
    assert found.steps.with_flush == pytest.approx(3 * (microbatches + ranks - 1))
    assert (found.steps.peak_activations, found.steps.weight_versions) == (ranks, 2)
    assert (found.gap, found.bound, found.pattern) == (pytest.approx(0), 3, None)


def test_the_slowest_rank_sets_the_pace() -> None:
    found = steps("1f1b", ranks=3, microbatches=5, forward_times=(1.0, 2.0, 1.0), backward_times=(2.0, 3.0, 2.0))
    assert found.per_microbatch == pytest.approx(5) == found.bound


def test_it_is_what_more_steps_add_to_a_long_run() -> None:
    found = steps("bitpipe", ranks=4, microbatches=8)
    rule = STRATEGIES["bitpipe"]

    def makespan(microbatches: int) -> float:
        schedule = rule(rule.shape(4, microbatches))
        return slow_simulate(schedule, Settings().costs(schedule.placement)).makespan

    assert found.steps.step == pytest.approx((makespan(88) - makespan(40)) / 6) == pytest.approx(25)
    assert found.gap == pytest.approx(1 / 24)


def test_transfers_count_where_ranks_wait_for_each_other() -> None:
    slow, hidden = (steps(name, ranks=4, microbatches=8, p2p_time=1.0) for name in ("1f1b", "kfkb"))
    assert slow.per_microbatch > 4 > hidden.per_microbatch == pytest.approx(3)


def test_what_has_no_steady_state_is_refused() -> None:
    with pytest.raises(InputError, match="gpipe has no steady state: it holds more activations"):
        steps("gpipe", ranks=2)
    with pytest.raises(InputError, match="zb-auto plans a whole step"):
        steps("zb-auto", ranks=2)
    with pytest.raises(InfeasibleError, match="1f1b holds up to 4 activations on a rank, more than the memory limit"):
        steps("1f1b", ranks=4, memory_limit="3act")
    with pytest.raises(InputError, match="drop placement or schedule"):
        steps("1f1b", ranks=4, placement="v")
    with pytest.raises(UnknownNameError, match="1f1c"):
        steps("1f1c")
