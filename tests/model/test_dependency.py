import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.checking import check
from pipeplan.costs import Settings
from pipeplan.errors import InvalidScheduleError
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
from pipeplan.model import dependency as dependency_module
from pipeplan.simulation import simulate
from pipeplan.strategies import STRATEGIES


def waits(text, **shape):
    """What each op waits for, by its text: {op: [sources]}."""
    schedule = parse_schedule(text, **shape)
    needs = dependencies(schedule)
    found = {}
    for position in range(len(schedule)):
        sources = [int(column[position]) for column in needs.all]
        found[str(schedule.op(position))] = [
            "missing" if source == MISSING else str(schedule.op(source)) for source in sources if source != NONE
        ]
    return found


def test_forward_backward_and_the_split_halves():
    assert waits("0F0 0I0 0W0\n1F0 1B0") == {
        "0F0": [],
        "0I0": ["1B0", "0F0"],
        "0W0": ["0I0"],
        "1F0": ["0F0"],
        "1B0": ["1F0"],
    }


def test_communication_stands_between():
    found = waits("0F0 0SEND_F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0")
    assert found["1F0"] == ["1RECV_F0"]
    assert found["1RECV_F0"] == ["0SEND_F0"]
    assert found["0SEND_F0"] == ["0F0"]
    assert found["0B0"] == ["0RECV_B0", "0F0"]
    assert found["0RECV_B0"] == ["1SEND_B0"]
    assert found["1SEND_B0"] == ["1B0"]


def test_recompute_stands_before_the_backward():
    found = waits("0F0 0R0 0B0\n1F0 1B0")
    assert found["0B0"] == ["1B0", "0R0"]
    assert found["0R0"] == ["0F0"]


def test_slices_go_forward_in_order_and_backward_in_reverse():
    found = waits("0F0.0 0F0.1 0B0.1 0B0\n1F0 1F0.1 1B0.1 1I0 1W0".replace(".0", ""))
    assert found["0F0.1"] == ["0F0"]
    assert found["1F0.1"] == ["0F0.1", "1F0"]
    assert found["1B0.1"] == ["1F0.1"]
    assert found["1I0"] == ["1F0", "1B0.1"]
    assert found["0B0"] == ["1I0", "0F0", "0B0.1"]


def test_what_is_not_there_is_missing():
    assert waits("0F0 0B0\n1F0")["0B0"] == ["missing", "0F0"]


def test_only_arrivals_from_other_ranks_cross():
    v = parse_schedule("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0")
    arrival = dependencies(v).arrival
    assert crosses_ranks(v, arrival).tolist() == [False, True, False, True, True, False, True, False]


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
        found = {int(column[position]) for column in needs.all} - {NONE}
        assert (source is None) == (not found)
        if source is not None:
            assert place[(*source, microbatch)] in found


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


def test_a_transfer_is_paid_between_different_ranks_only():
    assert Placement.v(3).crosses.tolist() == [[True, True, False, True, True]]
    assert Placement.bidirectional(2).crosses.tolist() == [[True], [True]]


def test_what_waits_for_what_is_worked_out_once_for_checker_and_simulator(monkeypatch):
    schedule = STRATEGIES["zb-h1"](STRATEGIES["zb-h1"].shape(2, 4))
    built, positions = [], dependency_module.Positions

    def counted(of):
        built.append(of)
        return positions(of)

    monkeypatch.setattr(dependency_module, "Positions", counted)
    assert check(schedule).valid
    simulate(schedule, Settings().costs(schedule.placement))
    assert len(built) == 1
    with pytest.raises(ValueError, match="read-only"):
        dependencies(schedule).arrival[0] = NONE
