"""Messages between ranks: missing, superfluous, out of order, or waiting for each other on streams or where sends block."""

from typing import get_args

import pytest

from pipeplan.checking import check
from pipeplan.foundation.errors import DeadlockError
from pipeplan.model import Kind, Op, Placement, Schedule, Streams, dependencies, from_ops, parse_schedule
from pipeplan.passes import insert_communication
from tests.conformance import conformance
from tests.simulation.test_streams import STUCK

ROW_0 = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1"
ROW_1 = "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"


def problems_of(*rows: str) -> list[tuple[str, str, str]]:
    return [
        (problem.rule, problem.where, problem.message) for problem in check(parse_schedule("\n".join(rows))).problems
    ]


def test_a_hand_written_channel_out_of_order():
    """Rank 1 needs microbatch 1 first and receives it first, but rank 0 sends microbatch 0 first."""
    (problem,) = problems_of(ROW_0, "1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1")
    assert problem[:2] == ("channel", "rank 1, op 0 (1RECV_F1)")
    assert "message 1 there is 0SEND_F0" in problem[2]
    assert "gradients are silently wrong (2 of 2 messages" in problem[2]


@pytest.mark.parametrize(
    ("rows", "rule", "where", "says"),
    [
        (
            (ROW_0.replace(" 0SEND_F0", ""), ROW_1),
            "message",
            "rank 0",
            "0SEND_F0 is missing: rank 1 would take the next message of this channel for it, or wait forever at 1RECV_F0",
        ),
        (
            (ROW_0, ROW_1.replace(" 1RECV_F1", "")),
            "message",
            "rank 1",
            "1RECV_F1 is missing: 1F1 would run without its input, and the channel's next receive would take 0SEND_F1",
        ),
        (
            (ROW_0.replace(" 0RECV_B1", ""), ROW_1),
            "message",
            "rank 0",
            "0RECV_B1 is missing: the backward would run without its gradient, and the channel",
        ),
        (
            (ROW_0, ROW_1 + " 1SEND_F1"),
            "message",
            "rank 1, op 8 (1SEND_F1)",
            "stage 1 is at the end of the model and has no neighbor there; no rank would receive it",
        ),
        (("0RECV_F0 " + ROW_0, ROW_1), "message", "rank 0, op 0 (0RECV_F0)", "it would wait forever"),
        ((ROW_0 + " 0SEND_F1", ROW_1), "duplicate", "rank 0, op 8 (0SEND_F1)", "occurs twice"),
        ((ROW_0.replace("0F0 0SEND_F0", "0SEND_F0 0F0"), ROW_1), "order", "rank 0, op 0 (0SEND_F0)", "waits for 0F0"),
    ],
)
def test_what_is_wrong_and_what_would_happen(rows: tuple[str, str], rule: str, where: str, says: str):
    schedule = parse_schedule("\n".join(rows), keep_duplicates=True)
    (problem,) = check(schedule).problems
    assert (problem.rule, problem.where) == (rule, where)
    assert says in problem.message


def test_a_message_within_a_rank_is_one_too_many():
    text = "0F0 0SEND_F0 1RECV_F0 1F0 1B0 0B0"
    assert {(rule, where) for rule, where, _ in problems_of(text)} == {
        ("message", "rank 0, op 1 (0SEND_F0)"),
        ("message", "rank 0, op 2 (1RECV_F0)"),
    }


def deferred(schedule: Schedule) -> Schedule:
    """Every receive right before the op that needs it, with no thought for channels."""
    needs = dependencies(schedule)
    rows = []
    for first, stop in zip(schedule.offsets[:-1], schedule.offsets[1:], strict=True):
        row: list[Op] = []
        for position in range(first, stop):
            op = schedule.op(position)
            if op.kind in (Kind.RECV_F, Kind.RECV_B):
                continue
            source = int(needs.arrival[position])
            if source >= 0 and schedule.op(source).kind in (Kind.RECV_F, Kind.RECV_B):
                row.insert(len(row) - int(schedule.joined[position]), schedule.op(source))
            row.append(op)
        rows.append(from_ops(row))
    return Schedule.from_rows(schedule.placement, schedule.microbatches, rows)


def test_pytorchs_lowered_orders_are_right_until_their_receives_are_deferred():
    lowered = conformance("torch_orders.json")["lowered"]
    broken = set()
    for name, rows in lowered.items():
        schedule = parse_schedule("\n".join(rows))
        assert check(schedule).problems == (), name
        if any(problem.rule == "channel" for problem in check(deferred(schedule)).problems):
            broken.add(name.split("|")[0])
    assert broken >= {"ZBVZeroBubble", "InterleavedZeroBubble", "DualPipeV"}
    assert broken.isdisjoint({"GPipe", "1F1B"})


def test_a_bidirectional_placement_counts_messages_for_both_copies():
    one_copy = Placement.bidirectional(2)
    plan = parse_schedule("0F0 1F1 1B1 0B0\n0F1 1F0 1B0 0B1", placement=one_copy)
    lowered = insert_communication(plan)
    assert check(lowered).valid
    lost = lowered.keep(lowered.columns.kind != Kind.SEND_B)
    assert [problem.where for problem in check(lost).problems] == ["rank 1", "rank 0"]


CROSSED = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
"""Rank 0 sends microbatch 1 forward while rank 1 sends microbatch 0's gradient back."""


def test_two_ranks_that_send_to_each_other_are_a_note_with_buffered_sends():
    report = check(parse_schedule(CROSSED))
    assert report.valid
    assert [note.rule for note in report.notes] == ["rendezvous", "reduce-grad"]


def test_and_an_error_with_blocking_ones_the_cycle_spelled_out():
    report = check(parse_schedule(CROSSED), sends="blocking")
    (problem,) = report.problems
    assert (problem.rule, problem.where) == ("rendezvous", "rank 0, op 3 (0SEND_F1)")
    assert problem.message.endswith(
        "rank 0 sends at 0SEND_F1 and blocks until rank 1 reaches 1RECV_F1, which comes after 1SEND_B0; "
        "rank 1 sends at 1SEND_B0 and blocks until rank 0 reaches 0RECV_B0, which comes after 0SEND_F1"
    )
    with pytest.raises(DeadlockError, match=">0SEND_F1<"):
        report.require_valid()


LEVELS: tuple[Streams, ...] = get_args(Streams)


@pytest.mark.parametrize("level", ["rank", "direction"])
def test_a_deadlock_is_a_problem_with_its_circle(level):
    (problem,) = check(parse_schedule(STUCK), streams=level).problems
    assert problem.rule == "streams"
    assert "1RECV_F1 on rank 1 is behind 1SEND_F0 on its stream" in problem.message
    assert "2RECV_F0 on rank 0 is behind 0SEND_F1 on its stream" in problem.message


def test_it_is_none_where_each_edge_has_a_stream():
    report = check(parse_schedule(STUCK), streams="edge")
    assert report.valid
    assert not [note for note in report.notes if note.rule == "rendezvous"]


def test_an_op_can_be_part_of_the_circle():
    """Rank 0 posts the receive of a gradient before the send of the activation that it is of."""
    text = "0F0 0RECV_B0 0SEND_F0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0"
    (problem,) = check(parse_schedule(text), streams="rank").problems
    assert sorted(problem.message.partition("other: ")[2].split("; ")) == [
        "0SEND_F0 on rank 0 is behind 0RECV_B0 on its stream",
        "1F0 on rank 1 waits for 1RECV_F0",
        "1SEND_B0 on rank 1 is posted after 1F0",
    ]
    assert check(parse_schedule(text), streams="edge").valid
