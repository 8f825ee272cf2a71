"""What one rank's profiler recorded of a pipeline, whatever the profiler: ops with their times, in whole steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pipeplan.errors import FormatError
from pipeplan.formats.annotations import PREFIX, RESOLUTION, AnnotatedOp, with_stage
from pipeplan.formats.op_times import Recorded, op_times
from pipeplan.model import Floats, Kind

Groups = frozenset[tuple[int, ...]]
"""The ranks of process groups."""

_NEVER = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class RankTrace:
    """The pipeline ops of one rank, in order.

    Attributes
    ----------
    name
        Of the trace, for messages.
    rank, world_size
        Of the process that wrote it.
    host
        On which it ran.
    base
        The zero of its times, in nanoseconds of that host's clock.
    cells
        The ops in the text notation; an overlapped pair is one cell.
    start, end
        Of each cell, in microseconds since ``base``.
    steps
        The numbers of the cells of each step.
    beginnings
        The numbers of the steps that begin a recording; the others follow the one before at once.
    numbered
        Whether the cells have their stages' numbers.
    receives, sends
        Whether the host turns to receiving or sending inside the annotation of any forward.
    talks
        Whether the host turns to sending or receiving at all.
    groups
        The process groups that the rank is in.
    """

    name: str
    rank: int
    world_size: int
    host: str
    base: int
    cells: list[str]
    start: Floats
    end: Floats
    steps: list[list[int]]
    beginnings: frozenset[int]
    numbered: bool
    receives: bool
    sends: bool
    talks: bool
    groups: Groups

    def of_stage(self, stage: int) -> RankTrace:
        """The trace with the number of its stage in every cell."""
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
    """The trace of what was recorded of a rank.

    Parameters
    ----------
    name, rank, world_size, host, groups
        See :class:`RankTrace`.
    base
        The zero of the recorded times.
    receives, sends
        When the host turned to receiving and to sending, sorted.

    Raises
    ------
    FormatError
        For a part of a step, and for ops of which none takes any time.
    """
    start, end = op_times(recorded)
    if (end - start).max() <= 2 * RESOLUTION and not any(mark.span.end > mark.span.start for mark in recorded.marks):
        raise FormatError(
            f"{name}: none of its ops has a duration ('dur'); record the run with a profiler that times them"
        )
    # Times since an epoch leave no digits for what is below a microsecond.
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
    """The numbers of the marks of each step: an op's k-th occurrence belongs to the k-th step.

    An op of a whole stage, which may occur several times, belongs to the step of the op before it; an unshard to that of the
    op after it.
    """
    own = [number for number, mark in enumerate(marks) if not mark.ops[0].kind.is_stage_wide]
    keys = occurrences([marks[number].cell for number in own])
    turns = dict(zip(own, (turn for _, turn in keys), strict=True))
    steps: list[list[int]] = [[] for _ in range(1 + max(turns.values(), default=0))]
    counts = Counter(cell for cell, _ in keys)
    if counts and min(counts.values()) != len(steps):
        rare, times = counts.most_common()[-1]
        raise FormatError(
            f"{name}: {PREFIX}{rare} occurs {times} time(s), other ops {len(steps)} times; record whole steps"
        )
    before = _carried(turns, range(len(marks)))
    after = _carried(turns, reversed(range(len(marks))))
    for number, mark in enumerate(marks):
        early = mark.ops[0].kind in (Kind.UNSHARD,)
        steps[(after if early else before)[number]].append(number)
    return steps


def _carried(turns: dict[int, int], numbers: Iterable[int]) -> dict[int, int]:
    """Return the step of each mark, in this order: its own, or that of the last mark that has one."""
    found: dict[int, int] = {}
    last: int | None = None
    waiting = []
    for number in numbers:
        last = turns.get(number, last)
        if last is None:
            waiting.append(number)
        else:
            found[number] = last
    first = next(iter(found.values()), 0)
    return found | dict.fromkeys(waiting, first)


def occurrences(names: Iterable[str]) -> list[tuple[str, int]]:
    """Each name with the number of times that it came before."""
    seen: dict[str, int] = {}
    keys = []
    for name in names:
        keys.append((name, seen.get(name, 0)))
        seen[name] = seen.get(name, 0) + 1
    return keys


def joined(recordings: Sequence[RankTrace]) -> RankTrace:
    """The recordings of one rank as one, in order of time.

    Raises
    ------
    FormatError
        Where two are of the same time, or do not hold the same ops.
    """
    recordings = sorted(recordings, key=lambda each: each.base)
    for before, after in pairwise(recordings):
        if after.base - before.base < 1000 * float(before.end.max()):
            raise FormatError(
                f"{before.name} and {after.name} are both of rank {before.rank}, and of the same time; give one trace of "
                "every rank"
            )
        if (before.numbered, set(before.cells)) != (after.numbered, set(after.cells)):
            raise FormatError(
                f"{before.name} and {after.name} are both of rank {before.rank} and hold different ops: they are traces of "
                "different runs; name the folder of one"
            )
    first = recordings[0]
    shifts = [(each.base - first.base) / 1e3 for each in recordings]
    offsets = np.cumsum([0, *(len(each.cells) for each in recordings)]).tolist()
    return replace(
        first,
        cells=[cell for each in recordings for cell in each.cells],
        start=np.concatenate([each.start + shift for each, shift in zip(recordings, shifts, strict=True)]),
        end=np.concatenate([each.end + shift for each, shift in zip(recordings, shifts, strict=True)]),
        steps=[
            [number + offset for number in step]
            for each, offset in zip(recordings, offsets, strict=False)
            for step in each.steps
        ],
        beginnings=frozenset(np.cumsum([0, *(len(each.steps) for each in recordings[:-1])]).tolist()),
        receives=any(each.receives for each in recordings),
        sends=any(each.sends for each in recordings),
    )
