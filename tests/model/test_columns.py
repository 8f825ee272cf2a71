import pickle

import numpy as np
import pytest

from pipeplan.model import Kind, Schedule, alternate, concatenate, from_ops, is_constant, ops, overlap
from pipeplan.strategies import STRATEGIES


def test_overlapped_pairs_keep_their_groups_apart():
    pairs = overlap(ops(Kind.F, 0, [1, 2]), ops(Kind.B, 0, [0, 1]))
    row = concatenate(pairs, ops(Kind.F, 0, [3]), pairs)
    assert row.group.tolist() == [0, 0, 1, 1, -1, 2, 2, 3, 3]


def test_pairs_need_phrases_of_one_length():
    with pytest.raises(ValueError, match="equal length, not 2 and 1"):
        overlap(ops(Kind.F, 0, [1, 2]), ops(Kind.B, 0, [0]))


@pytest.mark.parametrize("name", ["1f1b", "zbv"])
def test_slices_and_groups_that_a_schedule_does_not_have_take_no_memory(name):
    schedule = STRATEGIES[name](STRATEGIES[name].shape(4, 8))
    assert is_constant(schedule.columns.slice)
    assert is_constant(schedule.columns.group)
    again = Schedule.from_rows(schedule.placement, 8, [from_ops(row) for row in schedule])
    assert schedule == again
    assert pickle.loads(pickle.dumps(schedule)) == schedule


@pytest.mark.parametrize("lengths", [(3, 3), (2, 5, 3), (0, 4), (1, 0, 2, 2)])
def test_voices_take_turns_until_they_end(lengths):
    voices = [ops(Kind.F, voice, np.arange(length)) for voice, length in enumerate(lengths)]
    turns = sorted((turn, voice) for voice, length in enumerate(lengths) for turn in range(length))
    row = alternate(*voices)
    assert list(zip(row.microbatch.tolist(), row.stage.tolist(), strict=True)) == turns
