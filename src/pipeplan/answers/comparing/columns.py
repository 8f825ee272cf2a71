"""Table of a comparison: its columns, declared once, its rows, and the sentences on the best schedule and the least bound.

A row of :data:`COLUMNS` is all that a column is: the terminal, ``--columns`` and its help, notebooks and data frames read
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeplan.answers.parts import TableColumns, activations_of
from pipeplan.answers.published import Allowed, kind_in_words
from pipeplan.answers.simulating.result import Result, bound_is_of_recomputed
from pipeplan.costs import Options, option
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.foundation.readable import Times, percent, size_texts
from pipeplan.foundation.records import Record
from pipeplan.model import Need, counted, counted_either, needs_in_words, one_line


def times_of(results: Sequence[Result]) -> Times:
    """Return how the makespans and bounds of a comparison are written."""
    return Times.of(
        (value for result in results for value in (result.makespan, result.lower_bound)), results[0].time_unit
    )


def _times(values: Sequence[float], results: Sequence[Result]) -> list[str]:
    return [*map(times_of(results).number, values)]


def _shares(values: Sequence[float | None], _: Sequence[Result]) -> list[str]:
    return ["-" if value is None else percent(value) for value in values]


def _plain(values: Sequence[object], _: Sequence[Result]) -> list[str]:
    return [*map(str, values)]


def _peaks(values: Sequence[float], results: Sequence[Result]) -> list[str]:
    return activations_of(values) if results[0].peak_bytes is None else size_texts(values)


def _time_unit(results: Sequence[Result]) -> str:
    unit = times_of(results).unit
    return f"({one_line(unit)})" if unit else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Column of the table.

    Attributes
    ----------
    title
        Heading, with a line break where it has two lines.
    unit
        Function from all results to the unit that the heading adds; may return nothing.
    value
        Value of a result, as data frames have it.
    texts
        Function from the values of the column, and all results, to the cells.
    weight
        Importance: narrow terminals drop the least important columns first.
    default
        Whether the table shows the column unless ``--columns`` says otherwise.
    key
        Name in data frames; None: the name with underscores; empty: not in data frames, which have the value in parts.
    meaning
        Explanation below the table; may be empty.
    """

    title: str
    value: Callable[[Result], Any]
    texts: Callable[[Sequence[Any], Sequence[Result]], list[str]]
    weight: int
    unit: Callable[[Sequence[Result]], str] = lambda results: ""
    default: bool = False
    key: str | None = None
    meaning: str = ""

    def heading(self, results: Sequence[Result]) -> str:
        """Return the heading of the column for these results."""
        unit = self.unit(results)
        return f"{self.title}{' ' if chr(10) in self.title else chr(10)}{unit}" if unit else self.title


COLUMNS = {
    "placement": Column(
        title="placement", value=lambda result: result.schedule.placement.name, texts=_plain, weight=3,
    ),
    "chunks": Column(title="chunks", value=lambda result: result.chunks, texts=_plain, weight=4),
    "makespan": Column(
        title="makespan", unit=_time_unit, value=lambda result: result.makespan, texts=_times, weight=11, default=True,
    ),
    "longest-span": Column(
        title="longest\nspan", unit=_time_unit, value=lambda result: result.timeline.longest_span, texts=_times, weight=6,
    ),
    "bubble": Column(
        title="bubble", value=lambda result: result.bubble.idle_over_total, texts=_shares, weight=8, default=True,
        key="idle_over_total", meaning="bubble: idle time / total time",
    ),
    "over-ideal": Column(
        title="over\nideal", value=lambda result: result.bubble.over_ideal, texts=_shares, weight=2,
        meaning="over ideal: idle time / busy time",
    ),
    "of-span": Column(
        title="of\nspan", value=lambda result: result.bubble.span, texts=_shares, weight=1,
        key="span_bubble", meaning="of span: idle time within the longest span",
    ),
    "peak": Column(
        title="peak", unit=lambda results: "act." if results[0].peak_bytes is None else "memory",
        value=lambda result: result.peak, texts=_peaks, weight=10, default=True, key="",
    ),
    "bound": Column(
        title="lower\nbound", value=lambda result: result.lower_bound, texts=_times, weight=5, key="lower_bound",
    ),
    "gap": Column(
        title="gap", value=lambda result: result.gap, texts=_shares, weight=9, default=True,
        meaning="gap: above the lower bound of the schedule's placement",
    ),
    "gap-any": Column(
        title="gap\n(any)", value=lambda result: result.least_gap, texts=_shares, weight=7, key="least_gap",
        meaning="gap (any): above the best lower bound of any placement and number of chunks here",
    ),
}  # fmt: skip
"""Columns of the table by name, in the order in which they are shown."""

DEFAULT_COLUMNS = tuple(name for name, column in COLUMNS.items() if column.default)


def columns_named(names: Iterable[str]) -> list[str]:
    """Return columns by name in the order of ``COLUMNS``; ``all`` selects all of them. Raises UnknownNameError."""
    requested = set(names)
    for name in requested - COLUMNS.keys() - {"all"}:
        raise UnknownNameError("column", name, [*COLUMNS, "all"], field="columns")
    return [name for name in COLUMNS if "all" in requested or name in requested]


def frame_of(result: Result) -> dict[str, Any]:
    """Return the values of a result by the names that the columns have in data frames."""
    keys = {name: name.replace("-", "_") if column.key is None else column.key for name, column in COLUMNS.items()}
    return {keys[name]: column.value(result) for name, column in COLUMNS.items() if keys[name]}


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(Options):
    """Columns of the table."""

    columns: tuple[str, ...] = option(
        DEFAULT_COLUMNS,
        kind="names",
        group="output",
        default=",".join(DEFAULT_COLUMNS),
        help=f"Columns of the table: all, or some of {', '.join(COLUMNS)}; repeatable, or with commas.",
    )

    @property
    def names(self) -> list[str]:
        """The requested columns in their order. Raises UnknownNameError for an unknown one."""
        return columns_named(part for text in self.columns for part in text.replace(",", " ").split())


Group = tuple[Need, ...]
"""Needs of the schedules of a group that are not allowed."""


def rows_shown(groups: Sequence[Group], fits: Sequence[bool], most: int) -> list[int]:
    """Return the places of the listed schedules: the first one of each group, then those that fit, then the others."""

    def importance(place: int) -> tuple[bool, bool, int]:
        return groups.index(groups[place]) != place, not fits[place], place

    return sorted(sorted(range(len(groups)), key=importance)[:most])


def table_of(
    results: Sequence[Result], names: Sequence[str], groups: Sequence[Group], places: Sequence[int]
) -> TableColumns:
    """Return a row for each place with the columns of these names, under what each further group needs."""
    headings = {name: COLUMNS[name].heading(results) for name in names}
    least = sorted(names, key=lambda name: COLUMNS[name].weight)
    table = TableColumns(["schedule", *headings.values()], least=[headings[name] for name in least])
    cells = [COLUMNS[name].texts([COLUMNS[name].value(result) for result in results], results) for name in names]
    group: Group = ()
    for place in places:
        if groups[place] != group:
            group = groups[place]
            table.add_row(f"with {needs_in_words(group)}:")
        mark = "" if results[place].fits else " !"
        table.add_row(one_line(results[place].name) + mark, *(column[place] for column in cells))
    return table


class LeastBound(Record, frozen=True, kw_only=True):
    """Least lower bound of all placements that were compared: no schedule that it ``covers`` can be shorter.

    ``covers`` names the schedules on these placements that need nothing but what is allowed; ``sentence`` is the bound in
    words, with the gap of the best schedule.
    """

    value: float
    covers: str
    sentence: str
    reason: str
    placement: str
    chunks: int
    slices: int
    recomputing: bool


class BoundsByNeeds:
    """Least lower bounds of results: for each, that of the schedules that need no more than it, or than is allowed."""

    def __init__(self, results: Sequence[Result], allowed: Allowed) -> None:
        self._results, self._allowed = results, allowed
        # Results share a few sets of needs, and there may be thousands of results.
        self._least: dict[Allowed, Result] = {}

    def covered(self, result: Result) -> list[Result]:
        """Return the results that need nothing but what is allowed, or what this one needs."""
        needs = self._allowed.union(result.needs)
        return [other for other in self._results if needs.issuperset(other.needs)]

    def least(self, result: Result) -> Result:
        """Return the result with the least bound of those that need nothing but what is allowed, or what this one needs."""
        needs = self._allowed.union(result.needs)
        if needs not in self._least:
            self._least[needs] = min(self.covered(result), key=lambda other: other.lower_bound)
        return self._least[needs]

    def gap(self, result: Result) -> float | None:
        """Return how far a result is above its least bound, as a share of it; None over the memory limit."""
        return self.least(result).bound.gap_of(result.makespan) if result.fits else None

    def record(self) -> LeastBound:
        """Return the least bound of the first result."""
        first = self._results[0]
        covered, least = self.covered(first), self.least(first)
        needs = {need for result in covered for need in result.needs}
        within = "" if first.limits is None else ", within the memory limit"
        kind = kind_in_words(needs, {result.slices for result in covered})
        chunks = counted_either({result.chunks for result in covered}, "chunk")
        placements = placements_in_words(covered)
        covers = f"schedules {kind}, on {placements}, with {chunks} per rank{within}"
        where = f"{least.schedule.placement.name}, {counted(least.chunks, 'chunk')} per rank"
        where += f", {least.slices} slices" if least.slices > 1 else ""
        where += ", recomputing the same stages" if bound_is_of_recomputed(least) else ""
        value, gap = times_of(self._results).text(least.lower_bound), self.gap(first)
        above = "" if gap is None else f": {first.name} is {_above(gap)}"
        return LeastBound(
            value=least.lower_bound,
            covers=covers,
            sentence=f"No schedule{covers.removeprefix('schedules')}, can be shorter than {value} ({where}){above}.",
            reason=least.bound_reason,
            placement=least.schedule.placement.name,
            chunks=least.chunks,
            slices=least.slices,
            recomputing=bound_is_of_recomputed(least),
        )


def placements_in_words(results: Iterable[Result]) -> str:
    """Return the placements of results as alternatives, each once: ``the placements linear, loop or v``."""
    *others, last = dict.fromkeys(result.schedule.placement.name for result in results)
    return f"the placements {', '.join(others)} or {last}" if others else f"the placement {last}"


def _above(gap: float) -> str:
    if gap == 0:
        return "that short"
    return f"{percent(gap) if gap >= LEAST_SHOWN else f'less than {percent(LEAST_SHOWN)}'} above it"


LEAST_SHOWN = 1e-3
"""Smallest gap, as a fraction, that is shown as a number."""
