from pipeplan.strategies.gpipe import build_gpipe, build_looped_bfs, gpipe, looped_bfs
from tests.strategies.tables import documented_table, timing_table
from tests.strategies.torch_orders import assert_matches_pytorch

GPIPE = """\
rank 0 | 0F0 0F1 0F2 .   .   .   .   .   .   0B0 --  0B1 --  0B2 --
rank 1 | .   1F0 1F1 1F2 .   .   .   1B0 --  1B1 --  1B2 --  .   .
rank 2 | .   .   2F0 2F1 2F2 2B0 --  2B1 --  2B2 --  .   .   .   ."""

LOOPED_BFS = """\
rank 0 | 0F0 0F1 2F0 2F1 .   .   .   2B1 --  2B0 --  0B1 --  0B0 --
rank 1 | .   1F0 1F1 3F0 3F1 3B1 --  3B0 --  1B1 --  1B0 --  .   ."""


def test_gpipe_table() -> None:
    assert timing_table(gpipe(gpipe.shape(3, 3))) == GPIPE == documented_table(build_gpipe)


def test_looped_bfs_table() -> None:
    assert timing_table(looped_bfs(looped_bfs.shape(2, 2))) == LOOPED_BFS == documented_table(build_looped_bfs)


def test_looped_bfs_with_one_chunk_runs_backwards_in_reverse() -> None:
    assert [str(op) for op in looped_bfs(looped_bfs.shape(1, 2, 1))[0]] == ["0F0", "0F1", "0B1", "0B0"]


def test_gpipe_is_pytorchs() -> None:
    assert_matches_pytorch(gpipe, "GPipe")


def test_looped_bfs_is_pytorchs() -> None:
    assert_matches_pytorch(looped_bfs, "LoopedBFS")
