"""A result and a comparison as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeplan.api.results import Result
from pipeplan.api.tables.parts import columns, facts, left_out, line, shown_ranks, sizes
from pipeplan.model import counted
from pipeplan.readable import Times, percent


def result_parts(result: Result) -> tuple[RenderableType, ...]:
    """One result: what it is, its figures, its ranks."""
    figures = _figures(result)
    story = _story(result)
    said = (*notes(result.notes), *warnings(result.warnings))
    return (
        line(_heading(result), "bold"),
        *story,
        Padding(facts(figures), (1, 0)),
        _ranks(result, times_of(result)),
        *left_out(result.schedule.ranks),
        *([Text("")] if said else []),
        *said,
    )


def _story(result: Result) -> list[RenderableType]:
    """Return the rows that say how a search found the schedule; empty without a search."""
    if result.search is None:
        return []
    from pipeplan.api.tables.searches import search_parts  # few results were searched for

    return list(search_parts(result))


def _heading(result: Result) -> str:
    """What it is."""
    schedule = result.schedule
    slices = f", {schedule.slices} slices" if schedule.slices > 1 else ""
    measured = ", measured" if result.timeline.source == "measured" else ""
    shape = f"{counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')} ({schedule.placement.name})"
    return f"{result.name}: {shape}, {counted(schedule.microbatches, 'microbatch')}{slices}{measured}"


def _figures(result: Result) -> list[tuple[str, str]]:
    """Its times, its bubble by every definition, and how short it could be."""
    timeline, times = result.timeline, times_of(result)
    bubble = timeline.bubble
    return [
        ("makespan", times.text(timeline.makespan)),
        ("longest span", times.text(timeline.longest_span)),
        *_step(result, times),
        ("bubble, idle / total", percent(bubble.idle_over_total)),
        ("bubble, over ideal", percent(bubble.over_ideal)),
        ("bubble, of the longest span", percent(bubble.span)),
        ("lower bound", f"{times.text(result.bound.value)} ({result.bound.reason})"),
        ("gap to the bound", _gap(result)),
    ]


def times_of(result: Result) -> Times:
    """How all times of one result are written."""
    timeline = result.timeline
    every = (timeline.work, timeline.idle, timeline.spans, [timeline.makespan, result.bound.value])
    return Times.of((float(value) for values in every for value in values), timeline.unit)


def _gap(result: Result) -> str:
    if result.gap is None:
        return "none: over the memory limit"
    return percent(result.gap) + (": no schedule of this placement is shorter" if result.gap == 0 else "")


def _step(result: Result, times: Times) -> list[tuple[str, str]]:
    """The whole step, where it adds anything behind its last op."""
    if not result.costs.overhead.step_time:
        return []
    return [
        ("step, with a barrier at its end", times.text(result.step_time())),
        ("step, without one", times.text(result.step_time(barrier=False))),
    ]


def _ranks(result: Result, times: Times) -> Table:
    timeline, memory = result.timeline, result.memory
    unit = f" ({times.unit})" if times.unit else ""
    held = ["peak\nactivations"] if memory.peak_bytes is None else ["peak\nactivations", "peak\nmemory"]
    table = columns(
        "rank", f"busy{unit}", "idle", "span", *held, padding=1, least=["span", held[0]] if held[1:] else ["span"]
    )
    shown = shown_ranks(timeline.schedule.ranks)
    activations = activations_of([float(memory.peak_activation[rank]) for rank in shown])
    peaks = [] if memory.peak_bytes is None else [sizes([float(memory.peak_bytes[rank]) for rank in shown])]
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        busy_and_idle = times.parts((float(timeline.work[rank]), float(timeline.idle[rank])))
        cells = [*busy_and_idle, times.number(float(timeline.spans[rank])), activations[place]]
        table.add_row(str(rank), *cells, *(peak[place] for peak in peaks))
    return table


def activations_of(values: Sequence[float]) -> list[str]:
    """Memory in activations, all with the same decimals."""
    form = Times.of(values, "")
    return [form.number(value) for value in values]


def notes(found: Iterable[str]) -> tuple[RenderableType, ...]:
    """What the reader should know of the figures above, a line each."""
    return tuple(line(f"note: {note}") for note in dict.fromkeys(found))


def warnings(found: Iterable[str]) -> tuple[RenderableType, ...]:
    """What may be wrong with the figures above, a line each."""
    return tuple(line(f"warning: {warning}") for warning in found)
