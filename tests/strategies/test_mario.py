from pipeplan.costs import Settings
from pipeplan.passes import insert_recompute
from pipeplan.simulation import simulate
from pipeplan.strategies.one_f_one_b import mario, one_f_one_b
from tests.slow_simulator import slow_simulate


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
