import pytest

from pipeplan.costs import Settings
from pipeplan.model import Kind
from pipeplan.passes import insert_recompute, without_recompute
from pipeplan.simulation import simulate
from pipeplan.strategies.mario import build_mario, mario
from pipeplan.strategies.one_f_one_b import one_f_one_b
from tests.slow_simulator import peak_activations, slow_simulate, worst_bubble
from tests.strategies.tables import documented_table, timing_table

MARIO = """\
rank 0 | 0F0 0F1 0F2 0F3 0R0 .   .   .   0B0 --  0R1 0B1 --  0R2 0B2 --  0R3 0B3 --
rank 1 | .   1F0 1F1 1F2 1F3 1R0 1B0 --  1R1 1B1 --  1R2 1B2 --  1R3 1B3 --  .   .
rank 2 | .   .   2F0 2B0 --  2F1 2B1 --  2F2 2B2 --  2F3 2B3 --  .   .   .   .   ."""


def test_table() -> None:
    assert timing_table(mario(mario.shape(3, 4))) == MARIO == documented_table(build_mario)


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
@pytest.mark.parametrize("microbatches", [1, 3, 4, 9, 30])
def test_figures_are_exact(ranks: int, microbatches: int) -> None:
    shape = mario.shape(ranks, microbatches)
    assert worst_bubble(mario(shape)) == mario.bubble.value(shape)
    assert max(peak_activations(mario(shape))) == 1


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


def test_the_last_rank_recomputes_nothing_and_the_others_everything() -> None:
    schedule = mario(mario.shape(3, 5))
    assert [sum(op.kind == Kind.R for op in row) for row in schedule] == [5, 5, 0]
    assert len(without_recompute(schedule)) == 2 * 3 * 5


def test_inputs_of_forwards_are_kept() -> None:
    schedule = mario(mario.shape(3, 20))
    settings = Settings(activation_bytes=10.0, recompute_bytes=1.0)
    peak = simulate(schedule, settings.costs(schedule.placement)).memory.peak_bytes
    assert peak is not None
    assert peak.tolist() == [6 + 10, 3 + 10, 10]
