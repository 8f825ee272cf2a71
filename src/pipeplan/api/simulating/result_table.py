"""Table of a result: its description, how a search found it, its figures, and a row per rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET

from pipeplan.api.parts import activations_of, columns, facts, left_out, line, notes, shown_ranks, warnings
from pipeplan.model import counted
from pipeplan.readable import Times, percent, size_texts, sizes_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.api.parts import Part
    from pipeplan.api.simulating.result import OverLimitRecord, Result


def result_parts(result: Result) -> Iterator[RenderableType]:
    """Return the parts of a result's table, from top to bottom."""
    times = _times_of(result)
    yield line(_heading(result), "bold")
    if result.search is not None:
        from pipeplan.api.searching.search_words import search_table_parts  # few results were searched for

        yield from search_table_parts(result.search, result.costs, result.schedule.placement, result.limits)
    yield facts(_figures(result, times), above=1, below=1)
    yield _ranks(result, times)
    yield from left_out(result.ranks)
    if result.notes or result.warnings:
        yield line()
    yield from notes(result.notes)
    yield from warnings(result.warnings)


def over_limit_in_words(over: OverLimitRecord) -> str:
    """Return the warning about a schedule over its memory limit."""
    others = over.others
    more = f" ({counted(others, 'more rank')} {'is over its' if others == 1 else 'are over theirs'})" if others else ""
    needed, limit = (
        (f"{over.peak:,.6g} activations", f"{over.limit:,.6g}")
        if over.unit == "activations"
        else sizes_text(over.peak, over.limit)
    )
    return f"over the memory limit: rank {over.rank} needs {needed}, its limit is {limit}{more}"


def _heading(result: Result) -> str:
    schedule = result.schedule
    slices = f", {schedule.slices} slices" if schedule.slices > 1 else ""
    measured = ", measured" if result.timeline.source == "measured" else ""
    shape = f"{counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')} ({schedule.placement.name})"
    return f"{result.name}: {shape}, {counted(schedule.microbatches, 'microbatch')}{slices}{measured}"


def _figures(result: Result, times: Times) -> list[tuple[str, str]]:
    bubble = result.bubble
    return [
        ("makespan", times.text(result.makespan)),
        ("longest span", times.text(max(result.spans))),
        *_step_rows(result, times),
        ("bubble", f"{percent(bubble.idle_over_total)} (idle / total time)"),
        ("over ideal", f"{percent(bubble.over_ideal)} (idle / busy time)"),
        ("of span", f"{percent(bubble.span)} (idle within the longest span)"),
        ("lower bound", f"{times.text(result.lower_bound)} ({result.bound_reason})"),
        ("gap (placement)", _gap(result)),
    ]


def _times_of(result: Result) -> Times:
    every = (result.work, result.idle, result.spans, [result.makespan, result.lower_bound])
    return Times.of((value for values in every for value in values), result.time_unit)


def _gap(result: Result) -> str:
    if result.gap is None:
        return "none: over the memory limit"
    return percent(result.gap) + (": no schedule of this placement is shorter" if result.gap == 0 else "")


def _step_rows(result: Result, times: Times) -> list[tuple[str, str]]:
    if result.step is UNSET:
        return []
    return [
        ("step, with a barrier at its end", times.text(result.step.with_barrier)),
        ("step, without one", times.text(result.step.without_barrier)),
    ]


def _ranks(result: Result, times: Times) -> Part:
    peak_bytes = result.peak_bytes
    unit = f" ({times.unit})" if times.unit else ""
    held = ["peak\nactivations"] if peak_bytes is None else ["peak\nactivations", "peak\nmemory"]
    table = columns(
        "rank", f"busy{unit}", "idle", "span", *held, padding=1, least=["span", held[0]] if held[1:] else ["span"]
    )
    shown = shown_ranks(result.ranks)
    activations = activations_of([result.peak_activation[rank] for rank in shown])
    peaks = [] if peak_bytes is None else [size_texts([peak_bytes[rank] for rank in shown])]
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        busy_and_idle = times.parts((result.work[rank], result.idle[rank]))
        cells = [*busy_and_idle, times.number(result.spans[rank]), activations[place]]
        table.add_row(str(rank), *cells, *(peak[place] for peak in peaks))
    return table
