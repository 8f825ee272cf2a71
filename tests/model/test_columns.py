import pytest

from pipeplan.model import Kind, Op, alternate, concatenate, from_ops, ops, overlap


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
    with pytest.raises(ValueError, match="one length, not 2 and 1"):
        overlap(ops(Kind.F, 0, [1, 2]), ops(Kind.B, 0, [0]))


def test_single_ops_become_columns_and_come_back():
    row = [Op(Kind.F, 0, 1, 2, 3), Op(Kind.REDUCE_GRAD, 4)]
    assert list(from_ops(row)) == row
    assert len(from_ops([])) == 0
    assert from_ops(row) == from_ops(row)
    assert from_ops(row) != from_ops(row[:1])
