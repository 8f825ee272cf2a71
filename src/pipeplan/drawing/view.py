"""The one view: what a picture of a timeline shows, neutral and in columns. Every renderer draws it and knows nothing else.

A view is lanes (the rows of a picture, one per rank), bars (one per op, in the order of the schedule's columns, so that bar
i is op i), links between bars and, where they are given, memory curves with their limit and gaps with their reasons. It
holds names and numbers only: colours are the theme's, sizes the renderer's. :meth:`View.to_json_dict` is the contract with
the interactive timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeplan.model import Bools, Floats, Kind, counted, one_line

Integers = NDArray[np.integer[Any]]

VERSION = 1
"""Of the JSON contract; a change that older readers cannot read raises it."""

WAITS = ("arrival", "own_stage", "previous_slice")
"""What a link stands for, by its code; see :class:`~pipeplan.model.Dependencies`."""


class LanePart(IntEnum):
    """The part of its lane that a bar fills."""

    FULL = 0
    """all of it"""
    UPPER = 1
    """the forward of an overlapped pair"""
    LOWER = 2
    """the backward of an overlapped pair"""
    STRIP = 3
    """a strip along the bottom: messages and stage-wide ops, which run beside compute"""
    TO_HOST = 4
    """the upper half of a band along the bottom: copies to the host, beside compute too"""
    FROM_HOST = 5
    """its lower half: copies back, at the same time"""


ColumnWriter = Callable[[NDArray[Any]], Any]
"""Turns a column of numbers into JSON."""


class _Table:
    """Columns of one length that go into JSON."""

    __slots__ = ()

    def to_json_dict(self, column: ColumnWriter = np.ndarray.tolist) -> dict[str, Any]:
        """Each column by its name: arrays as ``column`` writes them, names as lists."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: list(own) if isinstance(own, tuple) else column(own) for name, own in columns.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Lanes(_Table):
    """The ranks from top to bottom: label, first start, last end and busy time, arrays of shape (lanes,)."""

    label: tuple[str, ...]
    first_start: Floats
    last_end: Floats
    work: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bars(_Table):
    """One per op: arrays of shape (bars,), in the order of the schedule's columns.

    Attributes
    ----------
    lane, start, end, part
        Where it is drawn: its rank, its times, and the :class:`LanePart` of the lane.
    kind
        Code of its :class:`~pipeplan.model.Kind`.
    chunk, copy
        The chunk of its stage on its rank, and which copy of the model it belongs to (the direction, in bidirectional
        schedules); ``copy * chunks + chunk`` is its shade.
    stage, microbatch, slice, group
        As in the schedule; -1 for no microbatch and no group.
    """

    lane: Integers
    start: Floats
    end: Floats
    part: Integers
    kind: Integers
    chunk: Integers
    copy: Integers
    stage: Integers
    microbatch: Integers
    slice: Integers
    group: Integers

    def __len__(self) -> int:
        return len(self.start)

    @property
    def compute(self) -> Bools:
        """Whether each bar is a compute op; the others run beside these. Shape (bars,)."""
        chosen: Bools = self.part < LanePart.STRIP
        return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Links(_Table):
    """Dependencies: bar ``target`` waits for bar ``source``; ``why`` is a code of ``WAITS``. Shape (links,)."""

    source: Integers
    target: Integers
    why: Integers


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Curves:
    """Memory over time, a step curve per lane: ``level`` holds from ``time`` until the next one.

    Attributes
    ----------
    unit
        ``activations`` or ``bytes``.
    offsets
        Shape (lanes + 1,): lane r's steps are ``offsets[r]`` to ``offsets[r + 1]``. The first stands at time 0.
    time, level
        Shape (steps,); within a lane times increase strictly.
    peak
        The most each lane holds, shape (lanes,).
    limit
        The memory limit of each lane, shape (lanes,), or None.
    """

    unit: Literal["activations", "bytes"]
    offsets: Integers
    time: Floats
    level: Floats
    peak: Floats
    limit: Floats | None

    def of(self, lane: int) -> tuple[Floats, Floats]:
        """Return the times and levels of one lane."""
        here = slice(int(self.offsets[lane]), int(self.offsets[lane + 1]))
        return self.time[here], self.level[here]

    def to_json_dict(self, column: ColumnWriter = np.ndarray.tolist) -> dict[str, Any]:
        """Everything by its name; ``limit`` is null where there is none."""
        columns = {name: column(getattr(self, name)) for name in ("offsets", "time", "level", "peak")}
        return {"unit": self.unit, **columns, "limit": None if self.limit is None else column(self.limit)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IdleGaps(_Table):
    """Idle times and why: arrays of shape (gaps,).

    Attributes
    ----------
    lane, start, end
        Where and when a rank idles.
    reason
        Index into ``reasons``.
    cause
        The bar that was waited for, -1 where there is none.
    reasons
        The keys of the reasons, as the theme knows them (``pipeplan.drawing.theme.REASON_TITLES``).
    """

    lane: Integers
    start: Floats
    end: Floats
    reason: Integers
    cause: Integers
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Windows(_Table):
    """Windows of time in which a memory limit makes a rank idle, whatever the order of its ops: arrays of shape (windows,).

    Attributes
    ----------
    lane, start, end
        The rank, and when.
    idle, least
        How long the rank idles in each here, and how long it must at least.
    kind
        What bounds each: ``first``, ``trip``, ``last`` or ``owed``.
    """

    lane: Integers
    start: Floats
    end: Floats
    idle: Floats
    least: Floats
    kind: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ratios:
    """A ratio of each bar, which colours it: such as the time it took over the time that was planned.

    Attributes
    ----------
    values
        Shape (bars,); 1 is the middle of the scale, 0 stands for a bar without one.
    reach
        The upper end of the scale, above 1; the lower one is 1 over it.
    title, ends
        What the scale is called, and what is below 1 and what above.
    """

    values: Floats
    reach: float
    title: str = "measured / planned"
    ends: tuple[str, str] = ("faster", "slower")


@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """Everything that a picture of one timeline shows.

    Attributes
    ----------
    title, unit
        What it is called, and the unit of time (may be empty), each in one line.
    source
        Whether its times were simulated or measured, or are only places in each rank's order.
    makespan, idle_over_total
        From 0 to the last end; idle time over all time.
    chunks, copies
        How many shades there are of a kind: ``copies * chunks``.
    bound
        What no schedule within the limits is shorter than, and why, in words; may be empty.
    costs
        What the costs are called that it was simulated on; may be empty.
    ratios
        What colours the bars of a picture instead of their kinds.
    """

    title: str
    unit: str
    source: Literal["simulated", "measured", "order"]
    makespan: float
    idle_over_total: float
    chunks: int
    copies: int
    lanes: Lanes
    bars: Bars
    links: Links
    memory: Curves | None = None
    gaps: IdleGaps | None = None
    windows: Windows | None = None
    bound: str = ""
    costs: str = ""
    ratios: Ratios | None = None

    def __post_init__(self) -> None:
        for name in ("title", "unit", "costs", "bound"):
            object.__setattr__(self, name, one_line(getattr(self, name)))

    @property
    def shape(self) -> str:
        """Ranks, microbatches, and chunks and slices where there are several, in words: ``8 ranks, 24 microbatches``."""
        counts = [(len(self.lanes.label), "rank"), (_most(self.bars.microbatch), "microbatch")]
        several = [(self.chunks, "chunk"), (_most(self.bars.slice), "slice")]
        return ", ".join(counted(count, what) for count, what in [*counts, *(pair for pair in several if pair[0] > 1)])

    @property
    def shade(self) -> NDArray[np.int64]:
        """Each bar's place among the shades of its kind, shape (bars,)."""
        return self.bars.copy.astype(np.int64) * self.chunks + self.bars.chunk

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that occur, in the order of their codes."""
        return tuple(Kind(code) for code in np.unique(self.bars.kind).tolist())

    def to_json_dict(self, column: ColumnWriter = np.ndarray.tolist) -> dict[str, Any]:
        """The view as JSON: the written contract between Python and the interactive timeline.

        ::

            version                      1
            title, unit, source          strings; source: "simulated", "measured" or "order"
            makespan, idle_over_total    numbers
            chunks, copies               integers; a bar's shade is copy * chunks + chunk
            kinds, parts, waits          the names behind the codes of bars.kind, bars.part and links.why
            lanes    columns: label ("rank 0"), first_start, last_end, work
            bars     columns: lane, start, end, part, kind, chunk, copy, stage, microbatch, slice, group
            links    columns: source, target (indices of bars), why
            memory   null, or unit ("activations", "bytes"), peak and limit per lane (limit may be null), and the step
                     curves: lane r's are time[offsets[r]:offsets[r + 1]] and level[...]
            gaps     null, or columns lane, start, end, reason, cause (a bar or -1), and reasons: the keys behind reason
            bound    what no schedule within the limits is shorter than, and why; may be empty
            windows  null, or columns lane, start, end, idle, least and kind ("first", "trip", "last", "owed"): where a
                     limit makes a rank idle

        Columns are lists of one length, or whatever ``column`` makes of an array; the interactive timeline also reads
        those of :func:`pipeplan.drawing.html.packed`, which are a fifth as long. Within a lane, bars stand in the order in
        which the rank runs them, which is the one dependency that links leave out. Times are from 0, in ``unit``. Every
        number is finite.
        """
        return {
            "version": VERSION,
            **{name: getattr(self, name) for name in ("title", "unit", "source", "makespan", "idle_over_total")},
            "chunks": self.chunks,
            "copies": self.copies,
            "kinds": [kind.name for kind in Kind],
            "parts": [part.name.lower() for part in LanePart],
            "waits": list(WAITS),
            "lanes": self.lanes.to_json_dict(column),
            "bars": self.bars.to_json_dict(column),
            "links": self.links.to_json_dict(column),
            "memory": None if self.memory is None else self.memory.to_json_dict(column),
            "gaps": None if self.gaps is None else self.gaps.to_json_dict(column),
            "bound": self.bound,
            "windows": None if self.windows is None else self.windows.to_json_dict(column),
        }


def bar_names(bars: Bars, chosen: Sequence[int] | NDArray[np.intp]) -> list[str]:
    """The chosen bars in the op notation: ``3F7``, ``3F7.1``, ``3UNSHARD``."""
    names = [kind.name for kind in Kind]
    numbers = bar_numbers(bars, chosen)
    pairs = zip(bars.stage[chosen].tolist(), bars.kind[chosen].tolist(), numbers, strict=True)
    return [f"{stage}{names[kind]}{number}" for stage, kind, number in pairs]


def bar_numbers(bars: Bars, chosen: Sequence[int] | NDArray[np.intp]) -> list[str]:
    """The microbatches of the chosen bars, with their slice where it is not 0: ``7``, ``7.1``; empty for stage-wide ops."""
    pairs = zip(bars.microbatch[chosen].tolist(), bars.slice[chosen].tolist(), strict=True)
    return ["" if microbatch < 0 else f"{microbatch}.{part}" if part else f"{microbatch}" for microbatch, part in pairs]


def busy_until(start: Floats, end: Floats, times: Floats) -> Floats:
    """Return how long bars, which follow each other, have run until each time, in the shape of ``times``."""
    corners = np.stack((start, end), axis=1).ravel()
    done = np.stack((np.zeros(len(start)), end - start), axis=1)
    done[1:] += np.cumsum(end - start)[:-1, None]
    busy: Floats = np.interp(times, corners, done.ravel())
    return busy


def _most(numbers: Integers) -> int:
    return int(numbers.max(initial=-1)) + 1
