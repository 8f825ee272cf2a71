"""Table of one schedule: its shape, its figures, its ranks, and with a search what it gained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from pipeplan.answers.headlined import MOST_ROWS, ShownOptions, more_details, more_ranks
from pipeplan.answers.parts import activations_of, columns, facts, line, notes, shown_ranks, warnings
from pipeplan.answers.sharding import in_words
from pipeplan.answers.simulating.result import Result, all_layouts
from pipeplan.costs import UNIT_TIMES
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.readable import Times, memory_text, percent, size_texts
from pipeplan.model import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.answers.parts import Part


def result_parts(result: Result, shown: ShownOptions) -> Iterator[RenderableType]:
    """Return the parts of a result's table, from top to bottom; those of a search have its ranks among the details."""
    every = (result.work, result.idle, result.spans, [result.makespan, result.lower_bound])
    times = Times.of((value for values in every for value in values), result.time_unit)
    search, hidden = result.search, ["the longest span"] if result.ranks > MOST_ROWS else []
    yield line(shape_in_words(result))
    figures = _figures(result, times, shown)
    if search is not None:
        hidden = ["how it was found", "its costs", "the figures of each rank"]
        figures += [
            _peak(result),
            *required_service("search", "table_rows")(search, result.costs, result.schedule.placement),
        ]
        if shown.verbose:
            yield facts(
                required_service("search", "details")(search, result.costs, result.schedule.placement, result.limits),
                above=1,
            )
    yield facts(figures, above=1, below=1 if search is None or shown.verbose else 0)
    if search is None or shown.verbose or shown.all:
        ranks = shown_ranks(result.ranks, result.ranks if shown.all else MOST_ROWS)
        yield _ranks(result, ranks, times)
        yield from more_ranks(result.ranks - len(ranks))
    said = [*notes(notes_shown(result.notes, shown)), *warnings(warnings_shown(result.warnings, result.headline))]
    yield from [line(), *said] if said else []
    if search is not None:
        yield line(required_service("search", "next_step")(search))
    yield from more_details(hidden, shown)


def notes_shown(texts: Iterable[str], shown: ShownOptions) -> list[str]:
    """Return the notes that are printed: without ``verbose`` not the one on unit times, which the costs' name says."""
    return [text for text in texts if shown.verbose or text != UNIT_TIMES]


def warnings_shown(texts: Iterable[str], headline: str) -> list[str]:
    """Return the warnings that are printed below a headline: those that it does not say."""
    return [text for text in texts if text not in headline]


def shape_in_words(result: Result) -> str:
    """Return the ranks, stages and microbatches of a result, and what its costs are called."""
    schedule = result.schedule
    slices = f", {schedule.slices} slices" if schedule.slices > 1 else ""
    shape = f"{counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')} ({schedule.placement.name})"
    costs = f", {result.costs.name}" if result.costs.name and result.timeline.source == "simulated" else ""
    return f"{shape}, {counted(schedule.microbatches, 'microbatch')}{slices}{costs}"


def _figures(result: Result, times: Times, shown: ShownOptions) -> list[tuple[str, str]]:
    bubble = result.bubble
    return [
        ("makespan", times.text(result.makespan)),
        *([("longest span", times.text(max(result.spans)))] if shown.verbose else []),
        *_step_rows(result, times),
        ("bubble", f"{percent(bubble.idle_over_total)} (idle / total time)"),
        ("lower bound", f"{times.text(result.lower_bound)} {_where(result)} ({result.bound_reason})"),
        ("gap" if all_layouts(result) is None else "gap (all layouts)", _gap(result)),
        *([] if result.sharding is UNSET else [("collectives", in_words(result.sharding, result._settings))]),
    ]


def _peak(result: Result) -> tuple[str, str]:
    peaks = result.peak_activation if result.peak_bytes is None else result.peak_bytes
    rank = peaks.index(max(peaks))
    return "peak memory", f"{memory_text(peaks[rank], in_activations=result.peak_bytes is None)} on rank {rank}"


def _where(result: Result) -> str:
    """Return where the lower bound of a result holds, in a few words."""
    placement = "on this placement" if all_layouts(result) is None else "on these placements"
    return f"{placement}, {'unsliced' if result.slices == 1 else f'in {result.slices} slices'}"


def _gap(result: Result) -> str:
    if result.gap is None:
        return "none: over the memory limit"
    of = "this placement" if all_layouts(result) is None else "any layout on these placements"
    return percent(result.gap) + (f": no schedule of {of} is shorter" if result.gap == 0 else "")


def _step_rows(result: Result, times: Times) -> list[tuple[str, str]]:
    if result.step is UNSET:
        return []
    return [
        ("step, with a barrier at its end", times.text(result.step.with_barrier)),
        ("step, without one", times.text(result.step.without_barrier)),
    ]


def _ranks(result: Result, shown: Sequence[int], times: Times) -> Part:
    peak_bytes = result.peak_bytes
    unit = f" ({times.unit})" if times.unit else ""
    in_bytes = {"peak\nmemory": peak_bytes, "peak\nparameters": result.peak_parameter_bytes or None}
    sizes = {name: values for name, values in in_bytes.items() if values is not None}
    held = ["peak\nactivations", *sizes]
    table = columns(
        "rank", f"busy{unit}", "idle", "span", *held, padding=1, least=["span", held[0]] if held[1:] else ["span"]
    )
    activations = activations_of([result.peak_activation[rank] for rank in shown])
    peaks = [size_texts([values[rank] for rank in shown]) for values in sizes.values()]
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        busy_and_idle = times.parts((result.work[rank], result.idle[rank]))
        cells = [*busy_and_idle, times.number(result.spans[rank]), activations[place]]
        table.add_row(str(rank), *cells, *(peak[place] for peak in peaks))
    return table
