import pytest

from pipeplan.costs import Settings
from pipeplan.simulation import simulate
from pipeplan.strategies.gpipe import gpipe
from pipeplan.strategies.one_f_one_b import kfkb, one_f_one_b


def test_groups_of_one_are_1f1b_and_one_group_is_gpipe() -> None:
    assert kfkb(kfkb.shape(4, 7, group_size=1)) == one_f_one_b(one_f_one_b.shape(4, 7))
    assert kfkb(kfkb.shape(4, 7, group_size=7)) == gpipe(gpipe.shape(4, 7))
    assert kfkb(kfkb.shape(4, 1)) == gpipe(gpipe.shape(4, 1))


@pytest.mark.parametrize("group", [1, 2, 3])
def test_transfers_are_hidden_up_to_the_time_of_the_others_of_a_group(group: int) -> None:
    schedule = kfkb(kfkb.shape(4, 24, group_size=group))
    hidden = (group - 1) * 3 / 2

    def excess(transfer: float) -> float:
        costs = Settings(p2p_time=transfer).costs(schedule.placement)
        return simulate(schedule, costs).timeline.makespan - (24 * 3 + 3 * (3 + 2 * transfer))

    assert excess(hidden) == pytest.approx(0)
    assert excess(hidden + 0.5) >= 5
