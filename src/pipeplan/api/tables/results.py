"""A result and a comparison as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeplan.api.comparisons import Comparison
from pipeplan.api.results import Result
from pipeplan.api.tables.parts import columns, facts, line, number, shown_ranks, size
from pipeplan.api.tables.searches import search_parts
from pipeplan.model import one_line


def result_parts(result: Result) -> tuple[RenderableType, ...]:
    """One result: what it is, its figures, its ranks."""
    schedule, timeline = result.schedule, result.timeline
    bubble = timeline.bubble
    unit = f" {timeline.unit}" if timeline.unit else ""
    slices = f", {schedule.slices} slices" if schedule.slices > 1 else ""
    heading = (
        f"{result.name}: {schedule.ranks} ranks, {schedule.stages} stages ({schedule.placement.name}), "
        f"{schedule.microbatches} microbatches{slices}{', measured' if timeline.source == 'measured' else ''}"
    )
    figures = facts(
        [
            ("makespan", number(timeline.makespan) + unit),
            ("longest span", number(float(timeline.spans.max())) + unit),
            *_step(result, unit),
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
    story = [] if result.search is None else search_parts(result.search)
    return (
        line(heading, "bold"),
        Padding(figures, (1, 0)),
        _ranks(result),
        *story,
        *_notes(result.notes),
        *_warnings(result.warnings),
    )


def _step(result: Result, unit: str) -> list[tuple[str, str]]:
    """The whole step, where it adds anything behind its last op."""
    if not result.costs.overhead.step_time:
        return []
    return [
        ("step, with a barrier at its end", number(result.step_time()) + unit),
        ("step, without one", number(result.step_time(barrier=False)) + unit),
    ]


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


def comparison_parts(comparison: Comparison) -> tuple[RenderableType, ...]:
    """A row a schedule, the ones over their memory limit marked, and why others are not there."""
    first = comparison.results[0]
    unit = f"\n({one_line(first.timeline.unit)})" if first.timeline.unit else ""
    in_bytes = first.memory.peak_bytes is not None
    peak = "peak\nmemory" if in_bytes else "peak\nact."
    bubbles = "idle /\ntotal", "over\nideal", "of the\nspan"
    table = columns("schedule", "chunks", f"makespan{unit}", *bubbles, peak, "gap to\nbound")
    for result in comparison:
        table.add_row(*_row(result, in_bytes))
    heading = f"{first.schedule.ranks} ranks, {first.schedule.microbatches} microbatches"
    marked = [] if all(result.fits for result in comparison) else [Text("\n! over the memory limit")]
    return Text(f"{heading}\n", style="bold"), table, *marked, *_refused(comparison), *_below(comparison)


def _below(comparison: Comparison) -> tuple[RenderableType, ...]:
    """Notes that any schedule has, and warnings, apart by a line; being over the limit is marked already."""
    notes = _notes(note for result in comparison for note in result.notes)
    return (Text(""), *notes) if notes else ()


def _row(result: Result, in_bytes: bool) -> list[str]:
    bubble, bytes_ = result.timeline.bubble, result.memory.peak_bytes
    peak = number(float(result.memory.peak_activation.max()))
    return [
        one_line(result.name) + ("" if result.fits else " !"),
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
    lines = [Padding(line(f"{name}: {reason}"), (0, 0, 0, 2)) for name, reason in reasons]
    return Text("\nnot possible here:"), *lines


def _notes(notes: Iterable[str]) -> tuple[RenderableType, ...]:
    return tuple(line(f"note: {note}") for note in dict.fromkeys(notes))


def _warnings(warnings: Iterable[str]) -> tuple[RenderableType, ...]:
    return tuple(line(f"warning: {warning}") for warning in warnings)
