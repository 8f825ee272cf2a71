import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Kind, Schedule, dependencies, format_schedule, parse_schedule
from pipeplan.passes import insert_communication, without_communication
from pipeplan.simulation import simulate
from pipeplan.strategies import STRATEGIES
from tests.conformance import conformance

PLAN = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"


def channels(schedule: Schedule) -> dict[tuple[int, int], tuple[list[str], list[str]]]:
    """For each pair of ranks: the messages in the order sent, and in the order received, each by its sender's text."""
    needs = dependencies(schedule)
    receives = schedule.where(Kind.RECV_F, Kind.RECV_B)
    sends = needs.arrival[receives]
    result = {}
    for sender, receiver in {
        (int(schedule.rank[s]), int(schedule.rank[r])) for s, r in zip(sends, receives, strict=True)
    }:
        mine = (schedule.rank[sends] == sender) & (schedule.rank[receives] == receiver)
        received = [str(schedule.op(int(s))) for s in sends[mine]]
        result[sender, receiver] = ([str(schedule.op(int(s))) for s in np.sort(sends[mine])], received)
    return result


def test_receives_stand_as_soon_as_the_message_can_be_there():
    assert format_schedule(insert_communication(parse_schedule(PLAN))) == (
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1"
    )


def test_receives_stand_right_before_their_consumer():
    assert format_schedule(insert_communication(parse_schedule(PLAN), receives="late")) == (
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
    )


def test_what_deadlocks_is_refused():
    with pytest.raises(DeadlockError):
        insert_communication(parse_schedule("0F0 0B0 0F1 0B1\n1F0 1F1 1B1 1B0"))


def schedules():
    """Of every strategy; BitPipe needs a multiple of the ranks' number of microbatches."""
    drawn = st.tuples(
        st.sampled_from(sorted(STRATEGIES)), st.sampled_from([2, 4, 6]), st.sampled_from([12, 14, 16, 18])
    )
    rules = drawn.map(lambda names: (STRATEGIES[names[0]], STRATEGIES[names[0]].shape(*names[1:])))
    return rules.filter(lambda found: found[0].accepts(found[1])).map(lambda found: found[0](found[1]))


@settings(max_examples=40, deadline=None)
@given(schedules(), st.sampled_from(["early", "late"]))
def test_every_channel_is_first_in_first_out(schedule, receives):
    lowered = insert_communication(schedule, receives=receives)
    assert check(lowered).problems == ()
    assert without_communication(lowered) == schedule
    for sent, received in channels(lowered).values():
        assert sent == received


@settings(max_examples=30, deadline=None)
@given(schedules(), st.floats(0, 2))
def test_early_receives_never_block_each_other_and_cost_nothing_extra_when_transfers_are_free(schedule, latency):
    lowered = insert_communication(schedule)
    free = Settings().costs(schedule.placement)
    blocked = simulate(lowered, free, communication="blocking").timeline.makespan
    assert blocked >= simulate(schedule, free).timeline.makespan - 1e-9
    paid = Settings(p2p_time=latency).costs(schedule.placement)
    edge = simulate(schedule, paid).timeline.makespan
    assert simulate(lowered, paid).timeline.makespan == pytest.approx(edge)
    assert simulate(lowered, paid, communication="blocking").timeline.makespan >= edge - 1e-9
    assert simulate(lowered, paid, communication="contended").timeline.makespan >= edge - 1e-9


def test_the_same_messages_as_pytorch():
    """As torch lowers them: the same sends and receives, on the same ranks."""
    for key, rows in conformance("torch_orders.json")["lowered"].items():
        compute = [[cell for cell in row.split() if "UNSHARD" not in cell and "RESHARD" not in cell] for row in rows]
        compute = [[cell for cell in row if "REDUCE_GRAD" not in cell] for row in compute]
        theirs = parse_schedule("\n".join(" ".join(row) for row in compute))
        for receives in ("early", "late"):
            ours = insert_communication(theirs, receives=receives)
            assert [sorted(map(str, row)) for row in ours] == [sorted(map(str, row)) for row in theirs], key
            for sent, received in channels(ours).values():
                assert sent == received


@given(schedules(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_transfers_that_are_sent_later_keep_their_channels_in_order_and_block_nobody_for_ever(schedule, seed):
    compute = without_communication(schedule)
    delays = np.random.default_rng(seed).integers(0, 9, len(compute))
    lowered = insert_communication(schedule, delays=delays)
    assert check(lowered, sends="blocking").valid
    assert without_communication(lowered) == compute
    assert all(sent == received for sent, received in channels(lowered).values())


def test_a_transfer_is_sent_no_later_than_right_before_its_consumer():
    text = format_schedule(insert_communication(parse_schedule(PLAN), delays=np.full(8, 99)))
    assert text.split("\n")[1] == "1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1"
