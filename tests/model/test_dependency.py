import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.foundation.errors import InvalidScheduleError
from pipeplan.model import (
    MISSING,
    NONE,
    Kind,
    Op,
    Placement,
    Schedule,
    crosses_ranks,
    dependencies,
    from_ops,
    parse_schedule,
    source_of,
)


def waits(text):
    """What each op waits for, by its text: {op: [sources]}."""
    schedule = parse_schedule(text)
    needs = dependencies(schedule)
    sources = {}
    for position in range(len(schedule)):
        columns = [int(column[position]) for column in needs.all]
        sources[str(schedule.op(position))] = [
            "missing" if source == MISSING else str(schedule.op(source)) for source in columns if source != NONE
        ]
    return sources


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0F0 0I0 0W0\n1F0 1B0", {"0F0": [], "0I0": ["1B0", "0F0"], "0W0": ["0I0"], "1F0": ["0F0"], "1B0": ["1F0"]}),
        (
            "0F0 0SEND_F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0",
            {
                "1F0": ["1RECV_F0"],
                "1RECV_F0": ["0SEND_F0"],
                "0SEND_F0": ["0F0"],
                "0B0": ["0RECV_B0", "0F0"],
                "0RECV_B0": ["1SEND_B0"],
                "1SEND_B0": ["1B0"],
            },
        ),
        ("0F0 0R0 0B0\n1F0 1B0", {"0B0": ["1B0", "0R0"], "0R0": ["0F0"]}),
        (
            "0F0 0F0.1 0B0.1 0B0\n1F0 1F0.1 1B0.1 1I0 1W0",
            {
                "0F0.1": ["0F0"],
                "1F0.1": ["0F0.1", "1F0"],
                "1B0.1": ["1F0.1"],
                "1I0": ["1F0", "1B0.1"],
                "0B0": ["1I0", "0F0", "0B0.1"],
            },
        ),
        ("0F0 0B0\n1F0", {"0B0": ["missing", "0F0"]}),
    ],
    ids=["halves of a backward", "messages", "recomputation", "slices", "a missing op"],
)
def test_what_an_op_waits_for(text, expected):
    sources = waits(text)
    assert {op: sources[op] for op in expected} == expected


def test_only_arrivals_from_other_ranks_cross():
    v = parse_schedule("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0")
    arrival = dependencies(v).arrival
    assert crosses_ranks(v, arrival).tolist() == [False, True, False, True, True, False, True, False]
    both = parse_schedule("0F0 1F1 1B1 0B0\n0F1 1F0 1B0 0B1")  # the first forward of rank 1 awaits nothing
    assert crosses_ranks(both, dependencies(both).arrival).tolist() == [
        False,
        True,
        False,
        True,
        False,
        True,
        False,
        True,
    ]


def test_a_few_ops_of_a_huge_shape_do_not_allocate_it():
    with pytest.raises(InvalidScheduleError, match="incomplete"):
        dependencies(parse_schedule("0F9999999"))


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_what_a_stage_waits_for_last_is_what_its_op_waits_for(ranks, chunks, microbatches, split):
    """Stage by stage as op by op: the source is among the op's, and the op's others come before the source."""
    placement = Placement.wave(ranks, chunks)
    schedule = depth_first(placement, microbatches, split=split)
    needs = dependencies(schedule)
    place = {
        key: position for position, key in enumerate((op.kind, op.stage, op.microbatch) for op in schedule.columns)
    }
    for (kind, stage, microbatch), position in place.items():
        source = source_of(kind, stage, placement.stages, backward=Kind.I if split else Kind.B)
        sources = {int(column[position]) for column in needs.all} - {NONE}
        assert (source is None) == (not sources)
        if source is not None:
            assert place[(*source, microbatch)] in sources


def depth_first(placement, microbatches, *, split):
    """Each microbatch all the way down and back, on every rank in that order."""
    backward = (Kind.I, Kind.W) if split else (Kind.B,)
    rows: list[list[Op]] = [[] for _ in range(placement.ranks)]
    for microbatch in range(microbatches):
        for stage in range(placement.stages):
            rows[placement.rank_of[0][stage]].append(Op(Kind.F, stage, microbatch))
        for stage in reversed(range(placement.stages)):
            rows[placement.rank_of[0][stage]] += [Op(kind, stage, microbatch) for kind in backward]
    return Schedule.from_rows(placement, microbatches, [from_ops(row) for row in rows])
