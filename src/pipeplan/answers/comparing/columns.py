"""Table of a comparison: its columns, which of them are shown, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeplan.answers.parts import activations_of, columns
from pipeplan.costs import Options, option
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.foundation.readable import Times, percent, size_texts
from pipeplan.model import Need, needs_in_words, one_line

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part
    from pipeplan.answers.simulating.result import Result

COLUMNS = {
    "placement": "placement",
    "chunks": "chunks",
    "makespan": "makespan",
    "longest-span": "longest\nspan",
    "bubble": "bubble",
    "over-ideal": "over\nideal",
    "of-span": "of\nspan",
    "peak": "peak",
    "bound": "lower\nbound",
    "gap": "gap",
    "gap-any": "gap\n(any)",
}
"""Columns of the table by name, with their headings, in the order in which they are shown."""

DEFAULT_COLUMNS = ("chunks", "makespan", "bubble", "peak", "gap")

MEANINGS = {
    "bubble": "bubble: idle time / total time",
    "over-ideal": "over ideal: idle time / busy time",
    "of-span": "of span: idle time within the longest span",
    "gap": "gap: above the lower bound of the schedule's placement",
    "gap-any": "gap (any): above the best lower bound of any placement and number of chunks here",
}
"""Explanations of the columns that are ratios."""

_LEAST = ("of-span", "over-ideal", "placement", "chunks", "bound", "longest-span", "gap-any", "bubble", "gap")
"""Columns that narrow terminals drop, in this order."""


def columns_named(names: Iterable[str]) -> list[str]:
    """Return columns by name in the order of ``COLUMNS``; ``all`` selects all of them. Raises UnknownNameError."""
    requested = set(names)
    for name in requested - COLUMNS.keys() - {"all"}:
        raise UnknownNameError("column", name, [*COLUMNS, "all"], field="columns")
    return [name for name in COLUMNS if "all" in requested or name in requested]


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


MOST_ROWS = 200
"""Maximum number of listed schedules, the fastest first; the best one of each group is always listed."""

Group = tuple[Need, ...]
"""Needs of the schedules of a group that are not allowed."""


def rows_shown(groups: Sequence[Group]) -> list[int]:
    """Return the places of the listed schedules: the first ones, and the first one of each group."""
    return [place for place, group in enumerate(groups) if place < MOST_ROWS or groups.index(group) == place]


def table_of(
    results: Sequence[Result], least_gaps: Sequence[float | None], names: Sequence[str], groups: Sequence[Group]
) -> Part:
    """Return a row per result with the columns of these names, under what each further group needs.

    ``least_gaps`` are the gaps to the best bound, ``groups`` the group of each result.
    """
    times = times_of(results)
    in_bytes = results[0].peak_bytes is not None
    unit = f"\n({one_line(times.unit)})" if times.unit else ""
    headings = COLUMNS | {
        "makespan": f"makespan{unit}",
        "longest-span": f"longest\nspan{unit.replace(chr(10), ' ')}",
        "peak": "peak\nmemory" if in_bytes else "peak\nact.",
    }
    table = columns("schedule", *(headings[name] for name in names), least=[headings[name] for name in _LEAST])
    peaks = [result.peak for result in results]
    texts = size_texts(peaks) if in_bytes else activations_of(peaks)
    group: Group = ()
    for place in rows_shown(groups):
        result, least_gap, peak = results[place], least_gaps[place], texts[place]
        if groups[place] != group:
            group = groups[place]
            table.add_row(f"with {needs_in_words(group)}:")
        cells = {
            "placement": result.schedule.placement.name,
            "chunks": str(result.chunks),
            "makespan": times.number(result.makespan),
            "longest-span": times.number(result.timeline.longest_span),
            "bubble": percent(result.bubble.idle_over_total),
            "over-ideal": percent(result.bubble.over_ideal),
            "of-span": percent(result.bubble.span),
            "peak": peak,
            "bound": times.number(result.lower_bound),
            "gap": _gap(result.gap),
            "gap-any": _gap(least_gap),
        }
        mark = "" if result.fits else " !"
        table.add_row(one_line(result.name) + mark, *(cells[name] for name in names))
    return table


def times_of(results: Sequence[Result]) -> Times:
    """Return how the makespans and bounds of a comparison are written."""
    return Times.of(
        (value for result in results for value in (result.makespan, result.lower_bound)), results[0].time_unit
    )


def _gap(gap: float | None) -> str:
    return "-" if gap is None else percent(gap)
