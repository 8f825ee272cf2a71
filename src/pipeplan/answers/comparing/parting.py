"""Where the orders of two schedules of one placement part, and what the difference costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeplan.answers.headlined import ShownOptions, more_rows
from pipeplan.answers.parts import MOST_ROWS, Part, columns, line
from pipeplan.answers.simulating.result import Result
from pipeplan.foundation.readable import Times, change, memory_text
from pipeplan.foundation.records import Record
from pipeplan.model import Bools, Timeline, counted, one_line
from pipeplan.simulation import compute_only


class RankParting(Record, frozen=True, kw_only=True):
    """First position at which a rank runs another op in either schedule.

    Attributes
    ----------
    rank, position
        The rank, and the position among its compute ops, from 0.
    ops
        The op of each schedule there, in text notation; None if the rank has no more ops.
    starts
        When each of them starts; None without an op.
    differing
        Number of positions of the rank at which the ops differ.
    """

    rank: int
    position: int
    ops: tuple[str | None, str | None]
    starts: tuple[float | None, float | None]
    differing: int


class Parting(Record, frozen=True, kw_only=True):
    """Where two orders of ops part. Messages, copies and collectives are not compared.

    Attributes
    ----------
    schedules
        Names of both, in the order of the comparison.
    identical
        True if every rank runs the same ops in the same order.
    ranks
        The ranks on which they part.
    differing, positions
        Number of positions at which the ops differ, of all ranks; number of all positions.
    makespan, peak
        By how much the second one takes longer, and by how much its fullest rank holds more than the first one's; negative
        for less.
    sentence
        All this in words.
    """

    schedules: tuple[str, str]
    identical: bool
    ranks: tuple[RankParting, ...]
    differing: int
    positions: int
    makespan: float
    peak: float
    sentence: str


def parting_of(results: Sequence[Result], names: Sequence[str]) -> Parting | None:
    """Return where two orders part; None for more or fewer of them, or if their ops are placed or sliced differently."""
    if len(results) != 2:
        return None
    first, second = (result.schedule for result in results)
    if first.placement.rank_of != second.placement.rank_of or first.slices != second.slices:
        return None
    pair = compute_only(results[0].timeline), compute_only(results[1].timeline)
    masks = [_differing(*pair, rank) for rank in range(first.ranks)]
    ranks = tuple(_parting(*pair, rank, mask) for rank, mask in enumerate(masks) if mask.any())
    differing, positions = (sum(int(count) for count in counts) for counts in zip(*map(_counts, masks), strict=True))
    named = (names[0], names[1])
    return Parting(
        schedules=named,
        identical=not ranks,
        ranks=ranks,
        differing=differing,
        positions=positions,
        makespan=results[1].makespan - results[0].makespan,
        peak=results[1].peak - results[0].peak,
        sentence=_sentence(results, named, ranks, differing, positions),
    )


def _counts(mask: Bools) -> tuple[int, int]:
    return int(mask.sum()), len(mask)


def _differing(first: Timeline, second: Timeline, rank: int) -> Bools:
    """Return a mask of the positions of a rank at which two timelines run different ops, as long as the longer one."""
    rows = [_cells(timeline, rank) for timeline in (first, second)]
    shorter, longer = sorted(map(len, rows))
    mask = np.ones(longer, np.bool_)
    mask[:shorter] = (rows[0][:shorter] != rows[1][:shorter]).any(axis=1)
    return mask


def _cells(timeline: Timeline, rank: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return kind, stage, microbatch, slice and overlap with the op before, of each op of a rank; shape (ops, 5)."""
    schedule = timeline.schedule
    row, joined = schedule.row(rank), schedule.joined[schedule.offsets[rank] : schedule.offsets[rank + 1]]
    return np.column_stack([row.kind, row.stage, row.microbatch, row.slice, joined]).astype(np.int64)


def _parting(first: Timeline, second: Timeline, rank: int, mask: Bools) -> RankParting:
    position = int(mask.argmax())
    one, other = (_op_at(timeline, rank, position) for timeline in (first, second))
    return RankParting(
        rank=rank,
        position=position,
        ops=(one[0], other[0]),
        starts=(one[1], other[1]),
        differing=int(mask.sum()),
    )


def _op_at(timeline: Timeline, rank: int, position: int) -> tuple[str | None, float | None]:
    begin, end = timeline.schedule.offsets[rank : rank + 2].tolist()
    place = begin + position
    return (str(timeline.schedule.op(place)), float(timeline.start[place])) if place < end else (None, None)


def _sentence(
    results: Sequence[Result], names: tuple[str, str], ranks: Sequence[RankParting], differing: int, positions: int
) -> str:
    if not ranks:
        return f"{names[0]} and {names[1]} are identical: every rank runs the same ops in the same order."
    where = min(ranks, key=lambda parting: min(start for start in parting.starts if start is not None))
    runs = " and ".join(f"{name} runs {op or 'nothing more'}" for name, op in zip(names, where.ops, strict=True))
    first, second = results
    times = Times.of((first.makespan, second.makespan), first.time_unit)
    longer = change(second.makespan / first.makespan - 1) if first.makespan else change(0.0)
    takes = f"{times.text(second.makespan)} instead of {times.text(first.makespan)} ({longer})"
    cost = f"{names[1]} takes {takes if longer != change(0.0) else 'as long'}"
    return (
        f"The orders differ on {len(ranks)} of {counted(first.ranks, 'rank')}, at {differing} of {positions} positions; "
        f"they part first on rank {where.rank} at position {where.position}, where {runs}. {cost}, {_held(first, second)}."
    )


def _held(first: Result, second: Result) -> str:
    more, in_activations = second.peak - first.peak, first.peak_bytes is None
    text = memory_text(abs(more), in_activations=in_activations)
    if text == memory_text(0.0, in_activations=in_activations):
        return "with the same memory on its fullest rank"
    return f"with {text} {'more' if more > 0 else 'less'} on its fullest rank"


def parting_parts(parting: Parting, times: Times, shown: ShownOptions) -> Iterator[Part]:
    """Return the sentence on where two orders part, and a row for each rank on which they do."""
    yield line()
    yield line(parting.sentence)
    if parting.identical:
        return
    unit = f" ({times.unit})" if times.unit else ""
    one, other = map(one_line, parting.schedules)
    table = columns("rank", "position", one, f"at{unit}", other, f"at{unit} ", "differing", padding=1)
    listed = parting.ranks if shown.all else parting.ranks[:MOST_ROWS]
    for rank in listed:
        cells = [
            text
            for op, start in zip(rank.ops, rank.starts, strict=True)
            for text in (op or "-", "-" if start is None else times.number(start))
        ]
        table.add_row(str(rank.rank), str(rank.position), *cells, str(rank.differing))
    yield line()
    yield table
    yield from more_rows(len(parting.ranks) - len(listed), "more rank")
