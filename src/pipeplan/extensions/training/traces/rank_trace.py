"""Trace of one rank in a form that is independent of the profiler: ops with their times, in whole steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pipeplan.extensions.training.traces.annotations import PREFIX, RESOLUTION, AnnotatedOp, with_stage
from pipeplan.extensions.training.traces.op_times import Recorded, op_pieces, op_times
from pipeplan.extensions.training.traces.pieces import OpPieces
from pipeplan.foundation.errors import FormatError
from pipeplan.model import Floats, Kind

Groups = frozenset[tuple[int, ...]]
"""Ranks of process groups."""

_NEVER = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class RankTrace:
    """Pipeline ops of one rank, in order.

    Attributes
    ----------
    name
        Name of the trace, for messages.
    rank, world_size
        Rank of the process that wrote it, and number of processes.
    host
        Name of its host.
    base
        Zero of its times, in nanoseconds of that host's clock.
    cells
        Ops in the text notation; an overlapped pair is one cell.
    start, end
        Times of each cell, in microseconds since ``base``.
    pieces
        Pieces of each cell; None for messages, and without kernels of a GPU.
    steps
        Numbers of the cells of each step.
    beginnings
        Numbers of the steps that begin a recording; every other step directly follows the previous one.
    numbered
        True if the cells contain stages.
    receives, sends
        True if the host receives, or sends, inside the annotation of any forward.
    talks
        True if the host sends or receives at all.
    groups
        Process groups of the rank.
    """

    name: str
    rank: int
    world_size: int
    host: str
    base: int
    cells: list[str]
    start: Floats
    end: Floats
    pieces: list[OpPieces | None]
    steps: list[list[int]]
    beginnings: frozenset[int]
    numbered: bool
    receives: bool
    sends: bool
    talks: bool
    groups: Groups

    def of_stage(self, stage: int) -> RankTrace:
        """Return the trace with this stage in every cell."""
        return replace(self, cells=[with_stage(cell, stage) for cell in self.cells], numbered=True)


def rank_trace(
    name: str,
    recorded: Recorded,
    *,
    rank: int,
    world_size: int,
    host: str,
    base: int,
    groups: Groups = frozenset(),
    receives: Floats = _NEVER,
    sends: Floats = _NEVER,
) -> RankTrace:
    """Return the trace of one rank from what a profiler recorded."""
    start, end = op_times(recorded)
    if (end - start).max() <= 2 * RESOLUTION and not any(mark.span.end > mark.span.start for mark in recorded.marks):
        raise FormatError(
            f"{name}: no op has a duration ('dur'); record the run with a profiler that times annotations"
        )
    # Floats of times since an epoch have no digits left below a microsecond.
    zero = int(start.min())
    marks = recorded.marks
    return RankTrace(
        name=name,
        rank=rank,
        world_size=world_size,
        host=host,
        base=base + zero * 1000,
        cells=[mark.cell for mark in marks],
        start=start - zero,
        end=end - zero,
        pieces=op_pieces(recorded, start, end),
        steps=_steps(name, marks),
        beginnings=frozenset({0}),
        numbered=all(mark.numbered for mark in marks),
        receives=_in_a_forward(marks, receives),
        sends=_in_a_forward(marks, sends),
        talks=len(sends) + len(receives) > 0,
        groups=groups,
    )


def _in_a_forward(marks: Sequence[AnnotatedOp], times: Floats) -> bool:
    forwards = [mark.span for mark in marks if mark.ops[0].kind == Kind.F]
    first, stop = (np.searchsorted(times, [getattr(span, side) for span in forwards]) for side in ("start", "end"))
    return bool((stop > first).any())


def _steps(name: str, marks: Sequence[AnnotatedOp]) -> list[list[int]]:
    """Return the numbers of the marks of each step: an op's k-th occurrence belongs to the k-th step.

    A stage-wide op, which may occur several times, belongs to the step of the previous op; an unshard to that of the
    next op.
    """
    own = [number for number, mark in enumerate(marks) if not mark.ops[0].kind.is_stage_wide]
    keys = occurrences([marks[number].cell for number in own])
    turns = dict(zip(own, (turn for _, turn in keys), strict=True))
    steps: list[list[int]] = [[] for _ in range(1 + max(turns.values(), default=0))]
    counts = Counter(cell for cell, _ in keys)
    if counts and min(counts.values()) != len(steps):
        rare, times = counts.most_common()[-1]
        raise FormatError(
            f"{name}: {PREFIX}{rare} occurs {times} time(s), but other ops {len(steps)} times; record whole steps"
        )
    before = _carried(turns, range(len(marks)))
    after = _carried(turns, reversed(range(len(marks))))
    for number, mark in enumerate(marks):
        early = mark.ops[0].kind == Kind.UNSHARD
        steps[(after if early else before)[number]].append(number)
    return steps


def _carried(turns: dict[int, int], numbers: Iterable[int]) -> dict[int, int]:
    """Return the step of each mark, in this order: its own, or that of the last mark that has one."""
    steps: dict[int, int] = {}
    last: int | None = None
    waiting = []
    for number in numbers:
        last = turns.get(number, last)
        if last is None:
            waiting.append(number)
        else:
            steps[number] = last
    first = next(iter(steps.values()), 0)
    return steps | dict.fromkeys(waiting, first)


def occurrences(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return each name with the number of its earlier occurrences."""
    seen: dict[str, int] = {}
    keys = []
    for name in names:
        keys.append((name, seen.get(name, 0)))
        seen[name] = seen.get(name, 0) + 1
    return keys


def joined(recordings: Sequence[RankTrace]) -> RankTrace:
    """Join several recordings of one rank into one, in order of time.

    Raises FormatError if two of them are from the same time or have different ops.
    """
    recordings = sorted(recordings, key=lambda recording: recording.base)
    for before, after in pairwise(recordings):
        if after.base - before.base < 1000 * float(before.end.max()):
            raise FormatError(
                f"{before.name} and {after.name} are both of rank {before.rank} and overlap in time; pass one trace of "
                "every rank"
            )
        if (before.numbered, set(before.cells)) != (after.numbered, set(after.cells)):
            raise FormatError(
                f"{before.name} and {after.name} are both of rank {before.rank} but have different ops, so they are traces "
                "of different runs; name the folder of one run"
            )
    first = recordings[0]
    shifts = [(recording.base - first.base) / 1e3 for recording in recordings]
    offsets = np.cumsum([0, *(len(recording.cells) for recording in recordings)]).tolist()
    return replace(
        first,
        cells=[cell for recording in recordings for cell in recording.cells],
        start=np.concatenate([recording.start + shift for recording, shift in zip(recordings, shifts, strict=True)]),
        end=np.concatenate([recording.end + shift for recording, shift in zip(recordings, shifts, strict=True)]),
        pieces=[pieces for recording in recordings for pieces in recording.pieces],
        steps=[
            [number + offset for number in step]
            for recording, offset in zip(recordings, offsets, strict=False)
            for step in recording.steps
        ],
        beginnings=frozenset(np.cumsum([0, *(len(recording.steps) for recording in recordings[:-1])]).tolist()),
        receives=any(recording.receives for recording in recordings),
        sends=any(recording.sends for recording in recordings),
    )
