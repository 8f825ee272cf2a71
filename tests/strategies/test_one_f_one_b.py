"""1F1B with longer turns, with recomputation, and over slices."""

import pytest

from pipeplan.costs import Settings
from pipeplan.passes import insert_recompute
from pipeplan.simulation import simulate
from pipeplan.strategies.gpipe import gpipe
from pipeplan.strategies.one_f_one_b import kfkb, mario, one_f_one_b
from pipeplan.strategies.sliced import seq1f1b
from tests.slow_simulator import slow_simulate


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


def test_recomputation_is_hidden_for_a_few_microbatches_and_costs_less_than_in_1f1b_for_many() -> None:
    def makespans(microbatches: int) -> tuple[float, float, float]:
        plain = one_f_one_b(one_f_one_b.shape(4, microbatches))
        schedules = (plain, mario(mario.shape(4, microbatches)), insert_recompute(plain))
        costs = Settings().costs(plain.placement)
        plainly, marios, all_of_it = (slow_simulate(schedule, costs).makespan for schedule in schedules)
        return plainly, marios, all_of_it

    assert makespans(3) == (18, 18, 21)
    assert makespans(16) == (57, 16 * 4 + 2 * 3, 73)


def test_no_rank_but_the_last_idles_more_than_it_must() -> None:
    schedule = mario(mario.shape(5, 12))
    idle = slow_simulate(schedule, Settings().costs(schedule.placement)).idle
    assert idle.tolist() == [9, 9, 9, 9, 12 + 9]


def test_inputs_of_forwards_are_kept() -> None:
    schedule = mario(mario.shape(3, 20))
    settings = Settings(activation_bytes=10.0, recompute_bytes=1.0)
    peak = simulate(schedule, settings.costs(schedule.placement)).memory.peak_bytes
    assert peak is not None
    assert peak.tolist() == [6 + 10, 3 + 10, 10]


def test_one_slice_is_1f1b() -> None:
    assert seq1f1b(seq1f1b.shape(4, 6, slices=1)) == one_f_one_b(one_f_one_b.shape(4, 6))
