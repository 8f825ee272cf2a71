import pytest

from pipeplan.model import format_schedule
from pipeplan.strategies.one_f_one_b import one_f_one_b
from pipeplan.strategies.seq1f1b import build_seq1f1b, seq1f1b
from tests.strategies.common_grid import assert_matches_common_grid
from tests.strategies.tables import documented_table, timing_table

SEQ1F1B = """\
rank 0 | 0F0   0F0.1 0F1   .     .     0B0.1 --    0F1.1 0B0   --    .     0B1.1 --    0B1   --
rank 1 | .     1F0   1F0.1 1B0.1 --    1F1   1B0   --    1F1.1 1B1.1 --    1B1   --    .     ."""


def test_table() -> None:
    assert timing_table(seq1f1b(seq1f1b.shape(2, 2))) == SEQ1F1B == documented_table(build_seq1f1b)


def test_one_slice_is_1f1b() -> None:
    assert seq1f1b(seq1f1b.shape(4, 6, slices=1)) == one_f_one_b(one_f_one_b.shape(4, 6))


def test_three_slices_of_one_microbatch_go_back_in_reverse() -> None:
    rows = format_schedule(seq1f1b(seq1f1b.shape(2, 1, slices=3))).splitlines()
    assert rows == ["0F0 0F0.1 0F0.2 0B0.2 0B0.1 0B0", "1F0 1F0.1 1F0.2 1B0.2 1B0.1 1B0"]


@pytest.mark.parametrize("slices", [1, 2, 4])
def test_bubble_shrinks_with_the_slices(slices: int) -> None:
    assert seq1f1b.bubble.value(seq1f1b.shape(5, 8, slices=slices)) == 12 / slices


def test_common_grid() -> None:
    assert_matches_common_grid(seq1f1b, "seq2")
