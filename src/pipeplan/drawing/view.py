"""The view: the content of a picture of a timeline, independent of the renderer, in columns.

A view consists of lanes (rows of a picture, one per rank), bars (one per op, in the order of the schedule's columns, so
bar i is op i), links between bars and, optionally, memory curves with their limit and idle gaps with their reasons. It
contains names and numbers only: colors belong to the theme, sizes to the renderer. :meth:`View.to_json_dict` is the
contract with the interactive timeline.
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
"""Version of the JSON contract, increased by changes that older readers cannot read."""

WAITS = ("arrival", "own_stage", "previous_slice", "collective")
"""Kinds of dependency of a link, by its code; see :class:`~pipeplan.model.Dependencies`, and for collectives
:func:`~pipeplan.model.collectives_awaited`."""


class LanePart(IntEnum):
    """Part of its lane that a bar fills."""

    FULL = 0
    """the whole lane"""
    UPPER = 1
    """the forward of an overlapped pair"""
    LOWER = 2
    """the backward of an overlapped pair"""
    STRIP = 3
    """a strip along the bottom: messages and stage-wide ops, which overlap compute"""
    TO_HOST = 4
    """the upper half of a band along the bottom: copies to the host, which overlap compute"""
    FROM_HOST = 5
    """the lower half of the band: copies back from the host"""
    COLLECTIVE = 6
    """a strip along the top: collectives that take time, which overlap compute"""


ColumnWriter = Callable[[NDArray[Any]], Any]
"""Function that turns a column of numbers into JSON."""


class _Table:
    """Base of columns that are written as JSON."""

    __slots__ = ()

    def to_json_dict(self, column: ColumnWriter = np.ndarray.tolist) -> dict[str, Any]:
        """Return each column by its name: arrays converted by ``column``, names as lists, a text unchanged."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {
            name: list(own) if isinstance(own, tuple) else own if isinstance(own, str) else column(own)
            for name, own in columns.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class Lanes(_Table):
    """Ranks from top to bottom: label, first start, last end and busy time, arrays of shape (lanes,)."""

    label: tuple[str, ...]
    first_start: Floats
    last_end: Floats
    work: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bars(_Table):
    """Bars, one per op: arrays of shape (bars,), in the order of the schedule's columns.

    Attributes
    ----------
    lane, start, end, part
        Its rank, its times, and the :class:`LanePart` of the lane that it fills.
    kind
        Code of its :class:`~pipeplan.model.Kind`.
    chunk, copy
        Chunk of its stage on its rank, and copy of the model (the direction, in bidirectional schedules);
        ``copy * chunks + chunk`` is its shade.
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
        """Mask of compute ops, which the other ops may overlap. Shape (bars,)."""
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
        Shape (lanes + 1,): lane r's steps are ``offsets[r]`` to ``offsets[r + 1]``. The first one is at time 0.
    time, level
        Shape (steps,); within a lane, times increase strictly.
    peak
        Peak of each lane, shape (lanes,).
    limit
        Memory limit of each lane, shape (lanes,), or None.
    parameters
        Part of ``level`` that is gathered parameters, shape (steps,), or None if there are none.
    """

    unit: Literal["activations", "bytes"]
    offsets: Integers
    time: Floats
    level: Floats
    peak: Floats
    limit: Floats | None
    parameters: Floats | None = None

    def of(self, lane: int) -> tuple[Floats, Floats]:
        """Return the times and levels of one lane."""
        here = slice(int(self.offsets[lane]), int(self.offsets[lane + 1]))
        return self.time[here], self.level[here]

    def to_json_dict(self, column: ColumnWriter = np.ndarray.tolist) -> dict[str, Any]:
        """Return all fields by name; ``limit`` and ``parameters`` are null if there are none."""
        columns = {name: column(getattr(self, name)) for name in ("offsets", "time", "level", "peak")}
        optional = {"limit": self.limit, "parameters": self.parameters}
        return {
            "unit": self.unit,
            **columns,
            **{name: None if values is None else column(values) for name, values in optional.items()},
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IdleGaps(_Table):
    """Idle times with their reasons: arrays of shape (gaps,).

    Attributes
    ----------
    lane, start, end
        Rank and time of the gap.
    reason
        Index into ``reasons``.
    cause
        Bar that the rank waits for, -1 if there is none.
    reasons
        Keys of the reasons, as :class:`~pipeplan.model.Reason` has them.
    """

    lane: Integers
    start: Floats
    end: Floats
    reason: Integers
    cause: Integers
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Windows(_Table):
    """Time windows in which a memory limit makes a rank idle in any order of its ops: arrays of shape (windows,).

    Attributes
    ----------
    lane, start, end
        Rank and time of the window.
    idle, least
        Idle time of the rank in the window, and its lower bound.
    kind
        Bound that determines the window: ``first``, ``trip``, ``last`` or ``owed``.
    """

    lane: Integers
    start: Floats
    end: Floats
    idle: Floats
    least: Floats
    kind: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PairLanes(_Table):
    """Compute and communication lanes of overlapped pairs, once for each pair of stages.

    Attributes
    ----------
    communication
        Kinds of the communication in words: ``all-to-all``.
    forward, backward, inputs
        Stages of the forward and the backward, and 1 if the backward is an I; shape (pairs,).
    time, exposed, hidden
        Time of the pair, and its communication without and beside computation; shape (pairs,).
    offsets
        Shape (pairs + 1,): the pieces of pair i are ``offsets[i]`` to ``offsets[i + 1]``.
    lane, kind, begin, end
        Lane of each piece (0: computation, 1: communication), kind of its op, and its times from the start of the pair, by
        which the pieces of a pair are sorted; shape (pieces,).
    """

    communication: str
    forward: Integers
    backward: Integers
    inputs: Integers
    time: Floats
    exposed: Floats
    hidden: Floats
    offsets: Integers
    lane: Integers
    kind: Integers
    begin: Floats
    end: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OpCosts(_Table):
    """Costs with which a page computes the times of another order of the same ops: rows of a table.

    A page knows transfers that only delay the op that needs them.

    Attributes
    ----------
    index
        Row of each bar, shape (bars,).
    duration, before, behind
        Time of the op, and the overhead that occupies its rank before its start and after its end, shape (rows,).
    delay
        Time of the message with its result to another rank, shape (rows,).
    held
        Memory that it allocates, or frees if it is negative, in the unit of the view's memory, shape (rows,).
    base
        Memory that each lane holds throughout, shape (lanes,).
    """

    index: Integers
    duration: Floats
    before: Floats
    behind: Floats
    delay: Floats
    held: Floats
    base: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ratios:
    """A ratio of each bar that determines its color, such as measured over planned time.

    Attributes
    ----------
    values
        Shape (bars,); 1 is the middle of the scale, 0 means no ratio.
    reach
        Upper end of the scale, above 1; the lower end is its reciprocal.
    title, ends
        Title of the scale, and the meanings of values below and above 1.
    """

    values: Floats
    reach: float
    title: str = "measured / planned"
    ends: tuple[str, str] = ("faster", "slower")


@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """Content of a picture of one timeline.

    Attributes
    ----------
    title, unit
        Title, and unit of time (may be empty), each in one line.
    source
        ``simulated`` or ``measured`` times, or ``order`` for positions in each rank's order.
    makespan, idle_over_total
        Time from 0 to the last end; idle time over total time.
    chunks, copies
        Numbers of chunks and copies; a kind has ``copies * chunks`` shades.
    bound
        Lower bound for all schedules within the limits, and its reason, in words; may be empty.
    costs
        Name of the costs of the simulation; may be empty.
    ratios
        Ratios that determine the colors of bars in place of their kinds.
    order
        Costs with which a page simulates another order of the ops; None if a page cannot.
    pairs
        Lanes of overlapped pairs; None if there are none, or their segments are unknown.
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
    order: OpCosts | None = None
    pairs: PairLanes | None = None

    def __post_init__(self) -> None:
        for name in ("title", "unit", "costs", "bound"):
            object.__setattr__(self, name, one_line(getattr(self, name)))

    @property
    def shape(self) -> str:
        """Ranks, microbatches, and chunks and slices if there are several, as text: ``8 ranks, 24 microbatches``."""
        counts = [(len(self.lanes.label), "rank"), (_most(self.bars.microbatch), "microbatch")]
        several = [(self.chunks, "chunk"), (_most(self.bars.slice), "slice")]
        return ", ".join(counted(count, what) for count, what in [*counts, *(pair for pair in several if pair[0] > 1)])

    @property
    def shade(self) -> NDArray[np.int64]:
        """Index of each bar among the shades of its kind, shape (bars,)."""
        return self.bars.copy.astype(np.int64) * self.chunks + self.bars.chunk

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds that occur, in the order of their codes."""
        return tuple(Kind(code) for code in np.unique(self.bars.kind).tolist())

    def to_json_dict(self, column: ColumnWriter = np.ndarray.tolist) -> dict[str, Any]:
        """Return the view as JSON: the contract between Python and the interactive timeline.

        ::

            version                      1
            title, unit, source          strings; source: "simulated", "measured" or "order"
            makespan, idle_over_total    numbers
            chunks, copies               integers; a bar's shade is copy * chunks + chunk
            kinds, parts, waits          the names of the codes of bars.kind, bars.part and links.why
            lanes    columns: label ("rank 0"), first_start, last_end, work
            bars     columns: lane, start, end, part, kind, chunk, copy, stage, microbatch, slice, group
            links    columns: source, target (indices of bars), why
            memory   null, or unit ("activations", "bytes"), peak and limit per lane (limit may be null), and the step
                     curves: lane r's are time[offsets[r]:offsets[r + 1]] and level[...]; parameters[...] is the part of
                     level that is gathered parameters (may be null)
            gaps     null, or columns lane, start, end, reason, cause (a bar or -1), and reasons: the keys of its codes
            bound    lower bound for all schedules within the limits, with its reason; may be empty
            windows  null, or columns lane, start, end, idle, least and kind ("first", "trip", "last", "owed"): where a
                     limit makes a rank idle
            order    null, or columns index (per bar), duration, before, behind, delay, held (rows of a table) and base (per
                     lane): with which a page simulates another order
            pairs    absent, or the fields of PairLanes

        Columns are lists of equal length, or results of ``column``; the interactive timeline also reads those of
        ``packed``, which are a fifth as long. Within a lane, bars are in the order in which the
        rank runs them; links do not contain this dependency. Times start at 0, in ``unit``. All numbers are finite.
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
            "order": None if self.order is None else self.order.to_json_dict(column),
            **({} if self.pairs is None else {"pairs": self.pairs.to_json_dict(column)}),
        }


def bar_names(bars: Bars, chosen: Sequence[int] | NDArray[np.intp]) -> list[str]:
    """Return the names of the chosen bars in the op notation: ``3F7``, ``3F7.1``, ``3UNSHARD``."""
    names = [kind.name for kind in Kind]
    numbers = bar_numbers(bars, chosen)
    pairs = zip(bars.stage[chosen].tolist(), bars.kind[chosen].tolist(), numbers, strict=True)
    return [f"{stage}{names[kind]}{number}" for stage, kind, number in pairs]


def bar_numbers(bars: Bars, chosen: Sequence[int] | NDArray[np.intp]) -> list[str]:
    """Return the microbatches of the chosen bars, with a slice other than 0: ``7``, ``7.1``; empty for stage-wide ops."""
    pairs = zip(bars.microbatch[chosen].tolist(), bars.slice[chosen].tolist(), strict=True)
    return ["" if microbatch < 0 else f"{microbatch}.{part}" if part else f"{microbatch}" for microbatch, part in pairs]


def busy_until(start: Floats, end: Floats, times: Floats) -> Floats:
    """Return how long successive bars have run until each time, in the shape of ``times``."""
    corners = np.stack((start, end), axis=1).ravel()
    done = np.stack((np.zeros(len(start)), end - start), axis=1)
    done[1:] += np.cumsum(end - start)[:-1, None]
    busy: Floats = np.interp(times, corners, done.ravel())
    return busy


def _most(numbers: Integers) -> int:
    return int(numbers.max(initial=-1)) + 1
