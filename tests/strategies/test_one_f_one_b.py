import pytest

from pipeplan.errors import ShapeError
from pipeplan.model import format_schedule
from pipeplan.strategies.one_f_one_b import (
    build_1f1b,
    build_1f1b_overlap,
    build_eager_1f1b,
    eager_1f1b,
    one_f_one_b,
    one_f_one_b_overlap,
)
from tests.strategies.common_grid import assert_matches_common_grid
from tests.strategies.tables import documented_table, timing_table
from tests.strategies.torch_orders import assert_matches_pytorch
from tests.strategies.visualizer import assert_matches_visualizer

ONE_F_ONE_B = """\
rank 0 | 0F0 0F1 0F2 .   .   .   .   0B0 --  0F3 0B1 --  .   0B2 --  .   0B3 --
rank 1 | .   1F0 1F1 .   .   1B0 --  1F2 1B1 --  1F3 1B2 --  .   1B3 --  .   .
rank 2 | .   .   2F0 2B0 --  2F1 2B1 --  2F2 2B2 --  2F3 2B3 --  .   .   .   ."""

EAGER = """\
rank 0 | 0F0 0F1 0F2 0F3 0F4 .   .   0B0 --  .   0B1 --  .   0B2 --  .   0B3 --  .   0B4 --
rank 1 | .   1F0 1F1 1F2 .   1B0 --  1F3 1B1 --  1F4 1B2 --  .   1B3 --  .   1B4 --  .   .
rank 2 | .   .   2F0 2B0 --  2F1 2B1 --  2F2 2B2 --  2F3 2B3 --  2F4 2B4 --  .   .   .   ."""

OVERLAP = """\
rank 0 | 0F0  0F1  0F2  .    .    (0F3 0B0) --   0B1  --   .    0B2  --   0B3  --
rank 1 | .    1F0  (1F1 1B0) --   (1F2 1B1) --   (1F3 1B2) --   1B3  --   .    ."""


def test_1f1b_table() -> None:
    assert timing_table(one_f_one_b(one_f_one_b.shape(3, 4))) == ONE_F_ONE_B == documented_table(build_1f1b)


def test_eager_table() -> None:
    assert timing_table(eager_1f1b(eager_1f1b.shape(3, 5))) == EAGER == documented_table(build_eager_1f1b)


def test_overlap_table() -> None:
    schedule = one_f_one_b_overlap(one_f_one_b_overlap.shape(2, 4))
    assert timing_table(schedule) == OVERLAP == documented_table(build_1f1b_overlap)


def test_1f1b_with_fewer_microbatches_than_ranks() -> None:
    rows = format_schedule(one_f_one_b(one_f_one_b.shape(3, 1))).splitlines()
    assert rows == ["0F0 0B0", "1F0 1B0", "2F0 2B0"]


def test_overlap_warm_up_takes_all_microbatches_where_they_are_few() -> None:
    rows = format_schedule(one_f_one_b_overlap(one_f_one_b_overlap.shape(3, 2))).splitlines()
    assert rows == ["0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1", "2F0 (2F1;2B0)OVERLAP_F_B 2B1"]


def test_chunks_are_refused() -> None:
    with pytest.raises(ShapeError, match="1f1b needs 1 chunk"):
        one_f_one_b.shape(4, 8, 2)


def test_1f1b_is_pytorchs() -> None:
    assert_matches_pytorch(one_f_one_b, "1F1B")


def test_1f1b_is_the_visualizers() -> None:
    assert_matches_visualizer(one_f_one_b, "1f1b")


def test_1f1b_on_the_common_grid() -> None:
    assert_matches_common_grid(one_f_one_b, "1f1b")


def test_overlap_is_the_visualizers() -> None:
    assert_matches_visualizer(one_f_one_b_overlap, "1f1b_overlap")
