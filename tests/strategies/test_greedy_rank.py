import pytest

from pipeplan.errors import InfeasibleError
from pipeplan.model import Kind, Placement, format_schedule
from pipeplan.strategies.greedy_rank import GreedyRank, RankCosts, greedy_ranks, to_schedule

COSTS = RankCosts(
    forward=3, backward_input=4, backward_weight=2, held=1, freed_by_weight=0.75, limit=2, unit="activations"
)


def rank_with_two_owed() -> GreedyRank:
    rank = greedy_ranks([COSTS], chunks=2)[0]
    rank.place_forward(0, arrival=5)
    rank.place_forward(1)
    rank.place_input(1)
    rank.place_input(0, arrival=17)
    return rank


def test_clock_memory_and_bubble_follow_the_ops():
    rank = rank_with_two_owed()
    assert (rank.clock, rank.memory, rank.bubble, rank.span) == (21, 1.5, 2, 16)
    assert (rank.forwards, rank.inputs) == ([[8], [11]], [[21], [15]])


def test_ws_are_placed_first_in_first_out():
    rank = rank_with_two_owed()
    rank.place_weight()
    assert rank.row[-1] == (Kind.W, 1, 0)
    rank.finish()
    assert rank.row[-1] == (Kind.W, 0, 0)
    assert (rank.clock, rank.memory) == (25, 0)


def test_ws_fill_a_wait_only_while_they_end_within_it():
    rank = rank_with_two_owed()
    rank.fill_wait(24.9)
    assert rank.clock == 23
    rank.fill_wait(25)
    assert rank.clock == 25


def test_room_is_made_with_no_more_ws_than_it_takes():
    rank = rank_with_two_owed()
    rank.make_room(0.5)
    assert len(rank.owed) == 2
    rank.make_room(1)
    assert len(rank.owed) == 1
    rank.make_room(3)
    assert not rank.owed


def test_an_op_over_the_cap_is_refused():
    with pytest.raises(InfeasibleError, match="rank 0 has no room for its next op after 4 ops"):
        rank_with_two_owed().place_forward(0)


def test_the_schedule_has_the_chunks_stages():
    rank = rank_with_two_owed()
    rank.finish()
    assert format_schedule(to_schedule([rank], Placement.v(1), 1)) == "0F0 1F0 1I0 0I0 1W0 0W0"
