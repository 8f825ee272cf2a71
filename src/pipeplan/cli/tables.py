"""Answers as tables for a terminal: plain where the output is no terminal, within 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeplan.api import Comparison, Result

MOST_RANKS = 32
"""With more ranks than this only the first and the last are listed."""


def show(*parts: RenderableType) -> None:
    """Print to stdout; where that is no terminal, without the blanks that fill lines."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(Group(*parts))
        return
    with console.capture() as captured:
        console.print(Group(*parts))
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def number(value: float) -> str:
    """A time or a size for a table: ``1,234.5``, at most three decimals; none from 100,000 on."""
    if 0 < abs(value) < 1:
        return f"{value:.6g}"
    if abs(value) >= 100_000:
        return f"{value:,.0f}"
    text = f"{value:,.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def size(value: float) -> str:
    """Bytes as a person reads them: ``11.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names with what they are."""
    table = Table.grid(padding=(0, 3))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, Text(text))
    return table


def columns(*headings: str, padding: int = 0) -> Table:
    """A table whose first column is text, which is folded where the lines are too short, and whose others are numbers."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, padding), pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=place > 0, overflow="fold")
    return table


def result_parts(result: Result) -> tuple[RenderableType, ...]:
    """One result: what it is, its figures, its ranks."""
    schedule, timeline = result.schedule, result.timeline
    bubble = timeline.bubble
    unit = f" {timeline.unit}" if timeline.unit else ""
    slices = f", {schedule.slices} slices" if schedule.slices > 1 else ""
    heading = (
        f"{result.name}: {schedule.ranks} ranks, {schedule.stages} stages ({schedule.placement.name}), "
        f"{schedule.microbatches} microbatches{slices}"
    )
    figures = facts(
        [
            ("makespan", number(timeline.makespan) + unit),
            ("longest span", number(float(timeline.spans.max())) + unit),
            ("bubble, idle / total", f"{bubble.idle_over_total:.4f}"),
            ("bubble, over ideal", f"{bubble.over_ideal:.4f}"),
            ("bubble, of the longest span", f"{bubble.span:.4f}"),
            ("lower bound", f"{number(result.bound.value)}{unit} ({result.bound.reason})"),
            (
                "gap to the bound",
                "none: over the memory limit" if result.gap is None else f"{result.gap:.2%}",
            ),
        ]
    )
    return Text(heading, style="bold"), Padding(figures, (1, 0)), _ranks(result), *_warnings(result.warnings)


def _ranks(result: Result) -> Table:
    timeline, memory = result.timeline, result.memory
    peaks = ["peak activations"] if memory.peak_bytes is None else ["peak activations", "peak memory"]
    table = columns("rank", "busy", "idle", "span", *peaks, padding=1)
    shown = shown_ranks(timeline.schedule.ranks)
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        cells = [str(rank), *(number(float(values[rank])) for values in (timeline.work, timeline.idle, timeline.spans))]
        cells.append(number(float(memory.peak_activation[rank])))
        if memory.peak_bytes is not None:
            cells.append(size(float(memory.peak_bytes[rank])))
        table.add_row(*cells)
    return table


def shown_ranks(ranks: int) -> Sequence[int]:
    """The ranks that are listed."""
    if ranks <= MOST_RANKS:
        return range(ranks)
    return [*range(MOST_RANKS // 2), *range(ranks - MOST_RANKS // 2, ranks)]


def comparison_parts(comparison: Comparison) -> tuple[RenderableType, ...]:
    """A row a schedule, the ones over their memory cap marked, and why others are not there."""
    first = comparison.results[0]
    unit = f"\n({first.timeline.unit})" if first.timeline.unit else ""
    in_bytes = first.memory.peak_bytes is not None
    peak = "peak\nmemory" if in_bytes else "peak\nact."
    bubbles = "idle /\ntotal", "over\nideal", "of the\nspan"
    table = columns("schedule", "chunks", f"makespan{unit}", *bubbles, peak, "gap to\nbound")
    for result in comparison:
        table.add_row(*_row(result, in_bytes))
    heading = f"{first.schedule.ranks} ranks, {first.schedule.microbatches} microbatches"
    marked = [] if all(result.fits for result in comparison) else [Text("\n! over the memory limit")]
    return Text(f"{heading}\n", style="bold"), table, *marked, *_refused(comparison)


def _row(result: Result, in_bytes: bool) -> list[str]:
    bubble, bytes_ = result.timeline.bubble, result.memory.peak_bytes
    peak = number(float(result.memory.peak_activation.max()))
    return [
        result.name + ("" if result.fits else " !"),
        str(result.schedule.placement.chunks),
        number(result.makespan),
        f"{bubble.idle_over_total:.4f}",
        f"{bubble.over_ideal:.4f}",
        f"{bubble.span:.4f}",
        size(float(bytes_.max())) if in_bytes and bytes_ is not None else peak,
        "-" if result.gap is None else f"{result.gap:.1%}",
    ]


def _refused(comparison: Comparison) -> tuple[RenderableType, ...]:
    if not comparison.refused:
        return ()
    reasons = ((name, reason.splitlines()[0].removeprefix(f"{name}: ")) for name, reason in comparison.refused.items())
    lines = [Padding(Text(f"{name}: {reason}"), (0, 0, 0, 2)) for name, reason in reasons]
    return Text("\nnot possible here:"), *lines


def _warnings(warnings: Iterable[str]) -> tuple[RenderableType, ...]:
    return tuple(Text(f"warning: {warning}") for warning in warnings)
