import pickle

import numpy as np
import pytest

from pipeplan.model import Kind, Op, Schedule, alternate, concatenate, from_ops, is_constant, ops, overlap
from pipeplan.strategies import STRATEGIES


def words(columns):
    return " ".join(str(op) for op in columns)


def test_phrases_read_like_the_picture():
    forwards, backwards = ops(Kind.F, 0, range(4)), ops(Kind.B, 0, range(4))
    row = concatenate(forwards[:2], alternate(forwards[2:], backwards[:2]), backwards[2:])
    assert words(row) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3"


def test_a_shorter_phrase_drops_out():
    assert words(alternate(ops(Kind.F, 0, range(3)), ops(Kind.B, 1, [0]))) == "0F0 1B0 0F1 0F2"


def test_kinds_and_stages_broadcast():
    assert words(ops([Kind.I, Kind.W], 2, 5)) == "2I5 2W5"
    assert words(ops(Kind.F, [0, 4], 1, 1)) == "0F1.1 4F1.1"


def test_overlapped_pairs_keep_their_groups_apart():
    pairs = overlap(ops(Kind.F, 0, [1, 2]), ops(Kind.B, 0, [0, 1]))
    row = concatenate(pairs, ops(Kind.F, 0, [3]), pairs)
    assert row.group.tolist() == [0, 0, 1, 1, -1, 2, 2, 3, 3]


def test_pairs_need_phrases_of_one_length():
    with pytest.raises(ValueError, match="equal length, not 2 and 1"):
        overlap(ops(Kind.F, 0, [1, 2]), ops(Kind.B, 0, [0]))


def test_single_ops_become_columns_and_come_back():
    row = [Op(Kind.F, 0, 1, 2, 3), Op(Kind.REDUCE_GRAD, 4)]
    assert list(from_ops(row)) == row
    assert len(from_ops([])) == 0
    assert from_ops(row) == from_ops(row)
    assert from_ops(row) != from_ops(row[:1])


@pytest.mark.parametrize("name", ["1f1b", "interleaved-zb", "zbv", "v-min"])
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
    found = alternate(*voices)
    assert list(zip(found.microbatch.tolist(), found.stage.tolist(), strict=True)) == turns
