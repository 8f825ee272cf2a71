import numpy as np
import pytest
from hypothesis import given, settings

from pipeplan.costs import Settings
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Reason, parse_schedule
from pipeplan.simulation import critical_ops, critical_path, idle_times, simulate, what_ifs
from pipeplan.simulation import idle as idle_module
from pipeplan.strategies import STRATEGIES
from tests.simulation.saving import saving_problems
from tests.simulation.test_simulator import PLAN, problems


def explained(text: str, limit=None, **given_settings) -> list[tuple[int, float, float, str, str]]:
    schedule = parse_schedule(text)
    costs = Settings(**given_settings).costs(schedule.placement)
    idle = idle_times(simulate(schedule, costs).timeline, costs, limit=limit).pieces
    columns = (idle.rank, idle.start, idle.end, idle.reason, idle.cause)
    return [
        (rank, start, end, Reason(reason).key, str(schedule.op(cause)) if cause >= 0 else "")
        for rank, start, end, reason, cause in zip(*(column.tolist() for column in columns), strict=True)
    ]


def test_every_gap_has_its_reason():
    assert explained(PLAN) == [
        (0, 2, 4, "compute", "1B0"),
        (0, 6, 7, "compute", "1B1"),
        (1, 0, 1, "start-up", ""),
        (1, 7, 9, "drain", ""),
    ]


def test_the_excess_of_a_slower_stage():
    pieces = explained("0F0 0B0\n1F0 1B0", forward_times=(1.0, 1.0), backward_times=(2.0, 4.0))
    assert pieces[:3] == [(0, 1, 2, "compute", "1F0"), (0, 2, 5, "compute", "1B0"), (0, 5, 6, "imbalance", "1B0")]


def test_a_forward_that_did_not_fit():
    text = "0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1"
    assert explained(text)[0][3] == "compute"
    capped = explained(text, limit=np.array([1.0, 1.0]))
    assert capped[0] == (0, 1, 4, "memory", "")


def test_a_gap_and_messages_take_their_time():
    pieces = explained("0F0 0B0\n1F0 1B0", p2p_time=0.5, op_gap=0.25, message_time=0.125)
    assert pieces == [
        (0, 0, 0.25, "overhead", "0F0"),
        (0, 1.25, 1.375, "overhead", "0F0"),
        (0, 1.375, 1.875, "transfer", "0F0"),
        (0, 1.875, 2.25, "overhead", "1F0"),
        (0, 2.25, 3.25, "compute", "1F0"),
        (0, 3.25, 3.5, "overhead", "1B0"),
        (0, 3.5, 5.5, "compute", "1B0"),
        (0, 5.5, 5.625, "overhead", "1B0"),
        (0, 5.625, 6.125, "transfer", "1B0"),
        (0, 6.125, 6.5, "overhead", "0B0"),
        (1, 0, 1.875, "start-up", ""),
        (1, 1.875, 2.25, "overhead", "1F0"),
        (1, 3.25, 3.5, "overhead", "1B0"),
        (1, 5.5, 5.625, "overhead", "1B0"),
        (1, 5.625, 8.5, "drain", ""),
    ]


def test_a_rank_waits_for_copies():
    text = "0F0 0F1 0OFFLOAD0 0F2 0OFFLOAD1 0B2 0RELOAD1 0RELOAD0 0B1 0B0"
    assert explained(text, offload_times=1.5) == [
        (0, 2, 2.5, "offload", "0OFFLOAD0"),
        (0, 3.5, 4, "offload", "0OFFLOAD1"),
        (0, 6, 7.5, "reload", "0RELOAD1"),
    ]
    held = explained("0F0 0OFFLOAD0 0RELOAD0 0B0\n1F0 1B0", offload_times=2.5)
    assert held[0] == (0, 1, 3.5, "offload", "0OFFLOAD0")
    assert held[1] == (0, 3.5, 6, "reload", "0RELOAD0")


def test_copies_on_the_critical_path():
    schedule = parse_schedule("0F0 0F1 0OFFLOAD0 0RELOAD0 0B1 0B0")
    costs = Settings(offload_times=4.0).costs(schedule.placement)
    simulation = simulate(schedule, costs)
    path = critical_ops(simulation.timeline, costs)
    assert [str(schedule.op(op)) for op in path] == ["0F0", "0OFFLOAD0", "0RELOAD0", "0B0"]
    assert critical_path(simulation.timeline, costs).by_kind == {"F": 1, "B": 2, "OFFLOAD": 4, "RELOAD": 4}
    assert {what.change: what.makespan for what in what_ifs(simulation)} == {"copies to the host and back free": 6}


def test_a_message_that_comes_after_a_copy_but_was_sent_before_it_ended():
    schedule = parse_schedule("0F0 0OFFLOAD0 0RELOAD0 0B0\n1F0 1B0")
    costs = Settings(offload_times=5.0, p2p_time=4.0).costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    assert [str(schedule.op(op)) for op in critical_ops(timeline, costs)] == ["0F0", "1F0", "1B0", "0B0"]
    assert critical_path(timeline, costs).transfer == 8
    waits = explained("0F0 0OFFLOAD0 0RELOAD0 0B0\n1F0 1B0", offload_times=5.0, p2p_time=4.0)
    assert [piece for piece in waits if piece[0] == 0][-1] == (0, 8, 12, "transfer", "1B0")


def test_rounding_is_no_reason():
    schedule = STRATEGIES["1f1b"](STRATEGIES["1f1b"].shape(4, 8))
    costs = Settings(op_gap=0.1, message_time=0.05).costs(schedule.placement)
    timeline = simulate(schedule, costs).timeline
    idle = idle_times(timeline, costs)
    assert not (idle.pieces.reason == Reason.TRANSFER).any()
    np.testing.assert_allclose(idle.totals(4).sum(axis=1), timeline.idle)
    assert critical_path(timeline, costs).transfer == 0


def test_what_ifs_are_simulated():
    schedule = parse_schedule(PLAN)
    costs = Settings(forward_times=(1.0, 2.0), backward_times=(2.0, 2.0), p2p_time=1).costs(schedule.placement)
    result = {what.change: what.makespan for what in what_ifs(simulate(schedule, costs))}
    free = Settings(forward_times=(1.0, 2.0), backward_times=(2.0, 2.0)).costs(schedule.placement)
    assert result["transfers free"] == simulate(schedule, free).timeline.makespan
    assert set(result) == {"transfers free", "stage 1 balanced", "all stages balanced"}
    only_bytes = Settings(p2p_bytes=8.0, p2p_bandwidth=4.0).costs(schedule.placement)
    assert [what.change for what in what_ifs(simulate(schedule, only_bytes))] == ["transfers free"]
    lost = Settings(op_gap=0.5, message_time=0.25, step_time=3.0).costs(schedule.placement)
    assert {what.change: what.makespan for what in what_ifs(simulate(schedule, lost))} == {
        "nothing lost between ops": 9
    }


def by_reason(pieces, ranks):
    table = np.zeros((ranks, len(Reason)))
    np.add.at(table, (pieces.rank, pieces.reason), pieces.end - pieces.start)
    return table


@settings(max_examples=15, deadline=None)
@given(problems() | saving_problems())
def test_a_picture_of_long_gaps_has_fewer_pieces_and_the_same_sums(problem):
    schedule, costs = problem
    timeline = simulate(schedule, costs).timeline
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_module, "ONE_BY_ONE", 0)
        patch.setattr(idle_module, "_IN_A_GAP", 1)
        idle = idle_times(timeline, costs)
        drawn = idle.drawn
    np.testing.assert_allclose(
        by_reason(drawn, schedule.ranks), idle.totals(schedule.ranks), atol=1e-9 * timeline.makespan
    )
    assert (drawn.end > drawn.start).all()
    assert (np.lexsort((drawn.start, drawn.rank)) == np.arange(len(drawn))).all()


def simulated_ranks(ranks):
    """1F1B on so many ranks, in which the first waits for all others: its timeline and its costs."""
    schedule = STRATEGIES["1f1b"](STRATEGIES["1f1b"].shape(ranks, 2))
    costs = Settings(p2p_time=0.5).costs(schedule.placement)
    return simulate(schedule, costs).timeline, costs


def test_what_is_lost_on_many_ranks_is_summed_without_listing_it():
    timeline, costs = simulated_ranks(256)
    idle = idle_times(timeline, costs)
    np.testing.assert_allclose(idle.totals(256).sum(axis=1), timeline.idle, atol=1e-9 * timeline.idle.max())
    assert idle.spent.holders.sum() > 256 * 256 / 2
    assert "pieces" not in vars(idle)


def test_a_list_that_is_too_long_is_refused_and_its_sums_are_had(monkeypatch):
    monkeypatch.setattr(idle_module, "MOST_PIECES", 100)
    idle = idle_times(*simulated_ranks(32))
    assert idle.totals(32).sum() > 0
    with pytest.raises(ShapeError, match=r"too many idle pieces to list: at least .*, at most 100 are listed"):
        _ = idle.pieces
