"""What is lost between ops, from a step that was measured."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from pipeplan.costs import Settings, Spread
from pipeplan.extensions.training.runtime.profiling import lost_time
from pipeplan.model import PASS_KINDS, RECEIVE_KINDS, Floats, Schedule, Timeline, among, dependencies, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate
from pipeplan.strategies import strategy

GAP, MESSAGE, TURN = 0.25, 0.125, 0.0625


def measured(schedule: Schedule, *, jitter: float = 0.0, seed: int = 1) -> tuple[Timeline, Floats]:
    """A simulated step as the recorder tells of it, whose waits include what turning to an op takes."""
    costs = Settings(op_gap=GAP, message_time=MESSAGE, p2p_time=0.5).costs(schedule.placement)
    factors = np.exp(np.random.default_rng(seed).normal(0, jitter, len(schedule)))
    timeline = simulate(schedule, costs, factors=factors).timeline
    before, behind = costs.lost(schedule)
    taken, freed = timeline.start - before, timeline.end + behind
    needs = dependencies(schedule).arrival
    receives = (needs >= 0) & among(schedule.columns.kind[needs], RECEIVE_KINDS)
    wait = np.full(len(schedule), TURN)
    passes = among(schedule.columns.kind, PASS_KINDS)
    for op in np.flatnonzero(receives):
        earlier = freed[:op][passes[:op] & (schedule.rank[:op] == schedule.rank[op])]
        wait[op] += max(taken[op] - earlier.max(initial=0.0), 0.0)
    return timeline, wait


def order(name: str, ranks: int, microbatches: int) -> Schedule:
    rule = strategy(name)
    return insert_communication(rule(rule.shape(ranks, microbatches)), receives="late")


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_the_gap_and_the_time_of_a_message_are_found_again(ranks: int, jitter: float) -> None:
    result = lost_time(*measured(order("1f1b", ranks, 8), jitter=jitter))
    assert result is not None
    assert result.op_gap.median == pytest.approx(GAP)
    assert result.message_time is not None
    assert result.message_time.median == pytest.approx(MESSAGE)


def test_without_messages_there_is_only_a_gap() -> None:
    schedule = parse_schedule("0F0 0B0 0F1 0B1")
    timeline = Timeline(schedule, np.array([0.0, 1.5, 3.75, 5.0]), np.array([1.0, 3.5, 4.75, 7.0]), "ms", "measured")
    result = lost_time(timeline, np.zeros(4))
    assert result is not None
    assert result.op_gap == Spread(0.25, 0.25, 0.375, 3)
    assert result.message_time is None


def test_where_every_op_has_a_message_beside_it_nothing_is_known() -> None:
    """Three ranks, of which the last one runs nothing but a forward."""
    schedule = insert_communication(parse_schedule("0F0\n1F0\n2F0"), receives="late")
    times = np.arange(float(len(schedule)))
    assert lost_time(Timeline(schedule, times, times + 0.5, "ms", "measured"), np.zeros(len(times))) is None
