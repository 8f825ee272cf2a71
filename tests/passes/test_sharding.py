"""Where collectives stand by the rules of trainers, against rules that are written down again here."""

from collections.abc import Iterator

import pytest

from pipeplan.checking import check
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Kind, Op, Schedule, format_schedule, parse_schedule
from pipeplan.passes import (
    Lookahead,
    add_megatron_collectives,
    add_reduce_grad,
    add_unshard_reshard,
    without_collectives,
)
from pipeplan.passes.sharding import lookaheads
from pipeplan.strategies import strategy

SCHEDULES = (
    ("1f1b", 3, 5, 1),
    ("interleaved-1f1b", 2, 8, 4),
    ("interleaved-1f1b-overlap", 2, 8, 5),
    ("zbv", 2, 4, 2),
    ("looped-bfs", 2, 3, 6),
    ("dualpipe", 4, 8, None),
)


def named(name: str, ranks: int, microbatches: int, chunks: int | None) -> Schedule:
    rule = strategy(name)
    return rule(rule.shape(ranks, microbatches, chunks))


def cells(schedule: Schedule, rank: int) -> list[list[Op]]:
    """Return the ops of a row; the two of a pair are one cell."""
    result: list[list[Op]] = []
    joined = schedule.joined[schedule.offsets[rank] : schedule.offsets[rank + 1]]
    for op, goes_on in zip(schedule[rank], joined, strict=True):
        result[-1:] = [[*result[-1], op]] if goes_on else [*result[-1:], [op]]
    return result


def next_stages(row: list[list[Op]], count: int) -> list[int]:
    """Return the next different stages; both of a pair count if the limit is between them."""
    result: dict[int, None] = {}
    for cell in row:
        if len(result) >= count:
            break
        result |= dict.fromkeys(op.stage for op in cell)
    return list(result)


def by_windows(row: list[list[Op]], active: int, ahead: int) -> Iterator[str]:
    """Yield a row by PyTorch's rule: what is not among the next stages is freed, and the next few are gathered."""
    gathered: list[int] = []
    for place, cell in enumerate(row):
        kept = next_stages(row[place:], active)
        yield from (f"{stage}RESHARD" for stage in sorted(gathered) if stage not in kept)
        gathered = [stage for stage in gathered if stage in kept]
        fetched = [stage for stage in next_stages(row[place:], ahead) if stage not in gathered]
        yield from (f"{stage}UNSHARD" for stage in fetched)
        gathered += fetched
        yield from map(str, cell)
    yield from (f"{stage}RESHARD" for stage in sorted(gathered))


@pytest.mark.parametrize("name", SCHEDULES, ids=lambda name: name[0])
def test_pytorch_keeps_one_window_and_gathers_another(name: tuple[str, int, int, int | None]) -> None:
    schedule = named(*name)
    for active in range(1, 6):
        full = add_unshard_reshard(schedule, max_active_stages=active)
        for ahead in range(1, active + 1):
            placed = add_unshard_reshard(schedule, max_active_stages=active, unshard_lookahead=ahead)
            for rank in range(schedule.ranks):
                assert list(map(str, placed[rank])) == list(by_windows(cells(schedule, rank), active, ahead))
            # A shorter lookahead moves gathers, and changes neither their number nor where stages are freed.
            assert placed.keep(placed.columns.kind != Kind.UNSHARD) == full.keep(full.columns.kind != Kind.UNSHARD)
            assert placed.where(Kind.UNSHARD).size == full.where(Kind.UNSHARD).size
            assert without_collectives(add_reduce_grad(placed)) == schedule


def test_lookahead_of_each_rank() -> None:
    """The example in PyTorch's documentation of ``unshard_lookahead``, and what it refuses."""
    assert lookaheads(4, 4, "auto") == [2, 3, 4, 4]
    assert lookaheads(2, 3, "full") == lookaheads(2, 3, [3, 3]) == lookaheads(2, 3, 3)
    cases: tuple[tuple[int, Lookahead, str], ...] = (
        (0, "full", "max_active_stages must be at least 1, not 0"),
        (3, 4, "from 1 to max_active_stages, which is 3, not 4"),
        (3, [1, 0], "from 1 to max_active_stages, which is 3, not 0"),
        (3, [1, 2, 3], "3 values for 2 ranks"),
    )
    for active, ahead, message in cases:
        with pytest.raises(ShapeError, match=message):
            lookaheads(2, active, ahead)


def test_megatron_is_ahead_with_gathers_and_behind_with_reductions() -> None:
    """Rank 1 gathers its third chunk an op before rank 0 does, and reduces an op later (peers run the real rule)."""
    placed = add_megatron_collectives(named("interleaved-1f1b", 2, 4, 3))
    rows = [row.split() for row in format_schedule(placed).splitlines()]
    assert rows[0][:6] == ["0UNSHARD", "2UNSHARD", "0F0", "0F1", "4UNSHARD", "2F0"]
    assert rows[1][:5] == ["1UNSHARD", "3UNSHARD", "1F0", "5UNSHARD", "1F1"]
    assert [rows[0][rows[0].index(f"{stage}REDUCE_GRAD") - 1] for stage in (4, 2, 0)] == ["4B3", "2B3", "0B3"]
    assert [rows[1][rows[1].index(f"{stage}REDUCE_GRAD") - 1] for stage in (5, 3)] == ["3B2", "1B2"]
    assert rows[1][-4:] == ["1REDUCE_GRAD", "1RESHARD", "3RESHARD", "5RESHARD"]


def test_collectives_of_any_row() -> None:
    for name in SCHEDULES:
        schedule = named(*name)
        placed = add_megatron_collectives(schedule)
        assert without_collectives(placed) == schedule
        check(placed).require_valid()
        for rank in range(schedule.ranks):
            stages = {op.stage for op in schedule[rank]}
            for kind in (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD):
                assert sorted(op.stage for op in placed[rank] if op.kind == kind) == sorted(stages)
            ops = [(op.kind, op.stage) for op in placed[rank]]
            for stage in stages:
                mine = [kind for kind, of in ops if of == stage]
                assert (mine[0], mine[-1]) == (Kind.UNSHARD, Kind.RESHARD)
                assert mine.index(Kind.REDUCE_GRAD) > max(n for n, kind in enumerate(mine) if kind in (Kind.B, Kind.W))


def test_a_stage_of_two_ranks_is_gathered_on_both() -> None:
    placed = add_reduce_grad(add_unshard_reshard(parse_schedule("0F0 1F1 1B1 0B0\n1F0 0F1 0B1 1B0")))
    assert placed.where(Kind.UNSHARD).size == placed.where(Kind.REDUCE_GRAD).size == 4
