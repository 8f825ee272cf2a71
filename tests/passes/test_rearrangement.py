import pytest
from hypothesis import given, settings

from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import parse_schedule
from pipeplan.passes import Rearrangement, merge_backward, retime, split_backward
from tests.passes.plans import PLANS

PLAN = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")


@given(PLANS)
@settings(max_examples=20, deadline=None)
def test_passes_are_done_in_their_order(schedule):
    assert not Rearrangement()
    assert Rearrangement()(schedule) is schedule
    wanted = Rearrangement(split_backward=True, retime=True, merge_backward=True)
    assert wanted(schedule) == merge_backward(retime(split_backward(schedule)))


def test_what_undoes_itself_is_refused():
    with pytest.raises(InputError, match="split_backward and merge_backward undo each other"):
        Rearrangement(split_backward=True, merge_backward=True)


def test_nothing_to_retime_is_said():
    with pytest.raises(ShapeError, match=r"no weight backwards \(W\) to retime: add split_backward"):
        Rearrangement(retime=True)(PLAN)
