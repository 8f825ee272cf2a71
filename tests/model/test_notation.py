import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.foundation.errors import InvalidScheduleError, NotationError, ShapeError
from pipeplan.model import (
    Kind,
    Op,
    Placement,
    Schedule,
    format_cells,
    format_schedule,
    parse_cell,
    parse_schedule,
)
from pipeplan.model.op import COMMUNICATION_KINDS, COMPUTE_KINDS


def test_a_cell_is_one_op():
    for text, op in [
        ("2F0", Op(Kind.F, 2, 0)),
        ("11B7", Op(Kind.B, 11, 7)),
        ("3I1", Op(Kind.I, 3, 1)),
        ("3W1", Op(Kind.W, 3, 1)),
        ("0R4", Op(Kind.R, 0, 4)),
        ("0SEND_F1", Op(Kind.SEND_F, 0, 1)),
        ("1RECV_B12", Op(Kind.RECV_B, 1, 12)),
        ("5REDUCE_GRAD", Op(Kind.REDUCE_GRAD, 5)),
        ("2OFFLOAD0", Op(Kind.OFFLOAD, 2, 0)),
        ("2RELOAD0.1", Op(Kind.RELOAD, 2, 0, 1)),
        ("2F0.1", Op(Kind.F, 2, 0, 1)),
    ]:
        assert parse_cell(text) == (op,), text
        assert str(op) == text, text


def test_an_overlapped_pair_is_two_ops_of_one_group():
    assert parse_cell("(0F7;7B3)OVERLAP_F_B") == (Op(Kind.F, 0, 7, group=0), Op(Kind.B, 7, 3, group=0))


def test_anything_else_is_an_error():
    for text in [
        "1F0xyz",
        "F0",
        "1F",
        "1X0",
        "-1F0",
        "01F0",
        "1F00",
        "1UNSHARD3",
        "1f0",
        "1F0 2F0",
        "(0F7,7B3)OVERLAP_F_B",
        "(0F7;7B3;1F0)OVERLAP_F_B",
        "((0F7;7B3)OVERLAP_F_B;1F0)OVERLAP_F_B",
        "(7B3;0F7)OVERLAP_F_B",
        "(0F7;7F3)OVERLAP_F_B",
        "(0F7;7B3)",
        "1F99999999999",
        "１F0",
    ]:
        with pytest.raises(NotationError):
            parse_cell(text)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("0F0 0B0\n1F0 1B0 1Q0", NotationError, "rank 1, cell 2: '1Q0'"),
        ("0F0 0F0 0B0", NotationError, "duplicate: 0F0 is on rank 0 and again on rank 0"),
        ("0F0 0B0\n2F0 2B0", InvalidScheduleError, "no rank holds stage 1"),
        ("0F0 0F1 0B0\n0B1 1F0 1B0", InvalidScheduleError, "stage 0 is on rank 0 and on rank 1"),
    ],
)
def test_rows_that_are_no_schedule(text, error, message):
    with pytest.raises(error, match=message):
        parse_schedule(text)


def test_huge_numbers_cost_nothing():
    with pytest.raises(InvalidScheduleError, match="no rank holds stage 1"):
        parse_schedule("0F0 999999999F0")
    assert parse_schedule("0F9999999").microbatches == 10**7
    with pytest.raises(ShapeError, match="1000000000 microbatches need 1,000,000,000 forwards; at most 20,000,000"):
        parse_schedule("0F999999999")
    for slice_ in ("32768", "65536", "999999999"):
        with pytest.raises(ShapeError, match=f"an op's slice must be at most 32,767, not {slice_}"):
            parse_schedule(f"0F0.{slice_}")


def test_the_placement_is_read_off_the_ops():
    v = parse_schedule("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0")
    assert v.placement == Placement.v(2)
    both = parse_schedule("0F0 1F1 1B1 0B0\n0F1 1F0 1B0 0B1")
    assert both.placement == Placement.bidirectional(2)
    uneven = parse_schedule("0F0 1F0 1B0 0B0\n2F0 2B0")
    assert uneven.placement == Placement("custom", ((0, 0, 1),))


@st.composite
def rows(draw: st.DrawFn) -> Schedule:
    ranks, microbatches, slices = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    placement = draw(st.sampled_from([Placement.linear(ranks), Placement.v(ranks), Placement.loop(ranks, 3)]))
    identities = [
        Op(kind, stage, microbatch, part)
        for kind in (*COMPUTE_KINDS, *COMMUNICATION_KINDS)
        for stage in range(placement.stages)
        for microbatch in range(microbatches)
        for part in range(slices)
    ]
    chosen = draw(st.permutations(identities))
    cells = [" ".join(str(op) for op in chosen if placement.rank_of[0][op.stage] == rank) for rank in range(ranks)]
    return parse_schedule("\n".join(cells), placement=placement, microbatches=microbatches, slices=slices)


@given(rows())
def test_reader_and_writer_undo_each_other(schedule):
    again = parse_schedule(
        format_schedule(schedule),
        placement=schedule.placement,
        microbatches=schedule.microbatches,
        slices=schedule.slices,
    )
    assert again == schedule


def test_a_pair_is_one_cell():
    text = "0F0 (0F1;0B0)OVERLAP_F_B 0B1"
    schedule = parse_schedule(text)
    assert format_cells(schedule[0]) == text.split()
    assert schedule.joined.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([Op(Kind.F, 0, 0), Op(Kind.B, 0, 0, group=3)], "0B0 cannot be written: it overlaps"),
        ([Op(Kind.F, 0, 1, group=3), Op(Kind.B, 0, 0)], "0F1 cannot be written"),
        ([Op(Kind.F, 0, 1, group=3), Op(Kind.B, 0, 0, group=4)], "0F1 cannot be written"),
        ([Op(Kind.B, 0, 0, group=3), Op(Kind.F, 0, 1, group=3)], "one forward and one backward, in that order"),
        ([Op(Kind.F, 0, 1, group=3), Op(Kind.B, 0, 0, group=3), Op(Kind.W, 0, 0, group=3)], "0W0 cannot be written"),
        ([Op(Kind.F, 0)], "0F cannot be written: F needs a microbatch"),
        ([Op(Kind.UNSHARD, 0, 1)], "0UNSHARD1 cannot be written: UNSHARD belongs to a whole stage"),
    ],
)
def test_what_nobody_could_read_is_not_written(row, says):
    """Ops that overlap with none were lost, or paired with whatever stood next to them."""
    with pytest.raises(NotationError, match=says):
        format_cells(row)
