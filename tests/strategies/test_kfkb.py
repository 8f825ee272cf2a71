import pytest

from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.simulation import simulate
from pipeplan.strategies.gpipe import gpipe
from pipeplan.strategies.kfkb import build_kfkb, kfkb
from pipeplan.strategies.one_f_one_b import one_f_one_b
from tests.slow_simulator import peak_activations, worst_bubble
from tests.strategies.tables import documented_table, timing_table

KFKB = """\
rank 0 | 0F0 0F1 0F2 0F3 .   0B0 --  0B1 --  .   .   0B2 --  0B3 --
rank 1 | .   1F0 1F1 1B0 --  1B1 --  1F2 1F3 1B2 --  1B3 --  .   ."""


def test_table() -> None:
    assert timing_table(kfkb(kfkb.shape(2, 4))) == KFKB == documented_table(build_kfkb)


def test_groups_of_one_are_1f1b_and_one_group_is_gpipe() -> None:
    assert kfkb(kfkb.shape(4, 7, group_size=1)) == one_f_one_b(one_f_one_b.shape(4, 7))
    assert kfkb(kfkb.shape(4, 7, group_size=7)) == gpipe(gpipe.shape(4, 7))
    assert kfkb(kfkb.shape(4, 1)) == gpipe(gpipe.shape(4, 1))


def test_groups_larger_than_the_microbatches_are_refused() -> None:
    with pytest.raises(ShapeError, match="kfkb needs a group size of 1 to 4 for this shape, not 5"):
        kfkb(kfkb.shape(2, 4, group_size=5))


@pytest.mark.parametrize(("microbatches", "group"), [(12, 1), (12, 3), (12, 4), (13, 3), (2, 2)])
def test_figures_are_exact(microbatches: int, group: int) -> None:
    shape = kfkb.shape(4, microbatches, group_size=group)
    assert worst_bubble(kfkb(shape)) == kfkb.bubble.value(shape) == 9
    assert max(peak_activations(kfkb(shape))) == kfkb.memory.value(shape) == min(4 * group, microbatches)


@pytest.mark.parametrize("group", [1, 2, 3])
def test_transfers_are_hidden_up_to_the_time_of_the_others_of_a_group(group: int) -> None:
    schedule = kfkb(kfkb.shape(4, 24, group_size=group))
    hidden = (group - 1) * 3 / 2

    def excess(transfer: float) -> float:
        costs = Settings(p2p_time=transfer).costs(schedule.placement)
        return simulate(schedule, costs).timeline.makespan - (24 * 3 + 3 * (3 + 2 * transfer))

    assert excess(hidden) == pytest.approx(0)
    assert excess(hidden + 0.5) >= 5
