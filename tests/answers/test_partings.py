"""Where the orders of two schedules part, and what that costs."""

import json
from pathlib import Path
from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.model import parse_cell


def swapped(path: Path, name: str, rank: int, position: int) -> Path:
    """Write the schedule of a file with two neighbouring ops of a rank in the other order."""
    rows = [row.split(",") for row in path.read_text().strip().split("\n")]
    rows[rank][position : position + 2] = rows[rank][position + 1], rows[rank][position]
    other = path.with_name(name)
    other.write_text("\n".join(map(",".join, rows)) + "\n")
    return other


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    one = tmp_path / "one.csv"
    one.write_text(pipeplan.export("1f1b", to="torch-csv", ranks=4, microbatches=8).text)
    return one, swapped(one, "other.csv", rank=0, position=3)


def test_two_files_are_compared_op_by_op(files):
    table = pipeplan.compare(*files)
    parting, (first, second) = table.parting, table.results
    assert parting is not None
    assert (parting.schedules, parting.identical) == (("one", "other"), False)
    assert (parting.differing, parting.positions) == (2, 64)
    assert parting.makespan == second.makespan - first.makespan == 3
    assert parting.peak == second.peak - first.peak == 0
    (rank,) = parting.ranks
    assert (rank.rank, rank.position, rank.ops, rank.differing) == (0, 3, ("0F3", "0B0"), 2)
    for result, op, start in zip((first, second), rank.ops, rank.starts, strict=True):
        row = list(result.schedule[rank.rank])
        assert row[rank.position] == parse_cell(str(op))[0]
        assert start == result.timeline.start[rank.position]
    assert parting.sentence == (
        "The orders differ on 1 of 4 ranks, at 2 of 64 positions; they part first on rank 0 at position 3, where one runs "
        "0F3 and other runs 0B0. other takes 36 instead of 33 (+9.1%), with the same memory on its fullest rank."
    )


def test_every_rank_that_differs_has_its_first_position():
    parting = pipeplan.compare("1f1b", "zb-h1", ranks=4, microbatches=8).parting
    assert parting is not None
    assert [rank.rank for rank in parting.ranks] == [0, 1, 2, 3]
    rows = [list(pipeplan.simulate(name, ranks=4, microbatches=8).schedule) for name in parting.schedules]
    for rank in parting.ranks:
        one, other = (schedule[rank.rank] for schedule in rows)
        assert one[: rank.position] == other[: rank.position]
        assert one[rank.position] != other[rank.position]
    assert parting.positions == sum(max(len(one), len(other)) for one, other in zip(*rows, strict=True))


def test_the_same_order_is_said_to_be_the_same(files, capsys):
    one, _ = files
    table = pipeplan.compare(one, "1f1b")
    assert table.headline == "1f1b and one are the same order: 33, 22.2% above the bound"
    assert table.parting is not None
    assert table.parting.identical
    assert table.parting.ranks == ()
    table.print()
    assert "1f1b and one are identical: every rank runs the same ops in the same order." in capsys.readouterr().out


def test_orders_of_one_placement_part_and_no_others():
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8}
    for schedules in (("1f1b",), ("1f1b", "zbv"), ("1f1b", "gpipe", "zb-h1"), ("1f1b", "seq1f1b"), ()):
        assert pipeplan.compare(*schedules, **shape).parting is None
    assert pipeplan.compare("zbv", "v-half", **shape).parting is not None


def test_the_shell_shows_the_parting_and_json_has_it(files, capsys):
    assert main(["compare", *map(str, files), "--no-visualization"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["0", "3", "0F3", "3", "0B0", "10", "2"] for line in lines)
    main(["compare", *map(str, files), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["parting"]["ranks"][0]["ops"] == ["0F3", "0B0"]
    assert document["parting"]["ranks"][0]["starts"] == [3, 10]


def test_overlap_is_part_of_the_order_and_messages_are_not():
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, "communication": "streams", "p2p_time": 0.1}
    same = pipeplan.compare("1f1b", "1f1b", **shape).parting
    assert same is not None
    assert same.identical
    overlapped = pipeplan.compare("eager-1f1b", "1f1b-overlap", ranks=4, microbatches=8).parting
    assert overlapped is not None
    assert not overlapped.identical
