"""Table of one schedule: its shape, its figures, its ranks, and with a search what it gained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from pipeplan.answers.headlined import ShownOptions, more_details, more_rows
from pipeplan.answers.parts import MOST_ROWS, activations_of, columns, facts, line, notes, shown_ranks, warnings
from pipeplan.answers.sharding import in_words
from pipeplan.answers.simulating.record import ResultRecord
from pipeplan.costs import UNIT_TIMES, Costs, Limits, Settings
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.readable import Times, memory_text, percent, size_texts
from pipeplan.model import Schedule, counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.answers.parts import Part


@dataclass(frozen=True, slots=True)
class Basis:
    """Values that a result was computed from; ``costs_name`` is empty for a measured timeline."""

    schedule: Schedule
    costs: Costs
    costs_name: str
    limits: Limits | None
    settings: Settings | None
    search: Any

    @property
    def layers_per_stage(self) -> tuple[int, ...] | UnsetType:
        """Number of layers of each stage, if a search decided them; the bound is then over all layouts."""
        layers: tuple[int, ...] | UnsetType = UNSET if self.search is None else self.search.layers_per_stage
        return layers


def result_parts(result: ResultRecord, basis: Basis, shown: ShownOptions) -> Iterator[RenderableType]:
    """Return the parts of a result's table, from top to bottom; those of a search have its ranks among the details."""
    every = (result.work, result.idle, result.spans, [result.makespan, result.lower_bound])
    times = Times.of((value for values in every for value in values), result.time_unit)
    search, placement = basis.search, basis.schedule.placement
    hidden = ["the longest span"] if result.ranks > MOST_ROWS else []
    yield line(shape_in_words(basis.schedule, basis.costs_name))
    figures = _figures(result, basis, times, shown)
    if search is not None:
        hidden = ["how it was found", "its costs", "the figures of each rank"]
        figures += [
            _peak(result),
            *required_service("search", "table_rows")(search, basis.costs, placement),
        ]
        if shown.verbose:
            yield facts(required_service("search", "details")(search, basis.costs, placement, basis.limits), above=1)
    yield facts(figures, above=1, below=1 if search is None or shown.verbose else 0)
    if search is None or shown.verbose or shown.all:
        ranks = shown_ranks(result.ranks, result.ranks if shown.all else MOST_ROWS)
        yield _ranks(result, ranks, times)
        yield from more_rows(result.ranks - len(ranks), "rank")
    remarks = [*notes(notes_shown(result.notes, shown)), *warnings(warnings_shown(result.warnings, result.headline))]
    yield from [line(), *remarks] if remarks else []
    if search is not None:
        yield line(required_service("search", "next_step")(search))
    yield from more_details(hidden, shown)


def notes_shown(texts: Iterable[str], shown: ShownOptions) -> list[str]:
    """Return the notes that are printed: without ``verbose`` not the one on unit times, which the costs' name says."""
    return [text for text in texts if shown.verbose or text != UNIT_TIMES]


def warnings_shown(texts: Iterable[str], headline: str) -> list[str]:
    """Return the warnings that are printed below a headline: those that it does not say."""
    return [text for text in texts if text not in headline]


def shape_in_words(schedule: Schedule, costs_name: str) -> str:
    """Return the ranks, stages and microbatches of a schedule, and the name of its costs, if there is one."""
    slices = f", {schedule.slices} slices" if schedule.slices > 1 else ""
    shape = f"{counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')} ({schedule.placement.name})"
    costs = f", {costs_name}" if costs_name else ""
    return f"{shape}, {counted(schedule.microbatches, 'microbatch')}{slices}{costs}"


def _figures(result: ResultRecord, basis: Basis, times: Times, shown: ShownOptions) -> list[tuple[str, str]]:
    all_layouts = basis.layers_per_stage is not UNSET
    left_out = "" if basis.search is None else basis.search.leaves_out
    where = _where(result, all_layouts) + (f", {left_out}" if left_out else "")
    return [
        ("makespan", times.text(result.makespan)),
        *([("longest span", times.text(max(result.spans)))] if shown.verbose else []),
        *_step_rows(result, times),
        ("bubble", f"{percent(result.bubble.idle_over_total)} (idle / total time)"),
        ("lower bound", f"{times.text(result.lower_bound)} {where} ({result.bound_reason})"),
        ("gap (all layouts)" if all_layouts else "gap", _gap(result, all_layouts, left_out)),
        *([] if result.sharding is UNSET else [("collectives", in_words(result.sharding, basis.settings))]),
    ]


def _peak(result: ResultRecord) -> tuple[str, str]:
    peaks = result.peak_activation if result.peak_bytes is None else result.peak_bytes
    rank = peaks.index(max(peaks))
    return "peak memory", f"{memory_text(peaks[rank], in_activations=result.peak_bytes is None)} on rank {rank}"


def _where(result: ResultRecord, all_layouts: bool) -> str:
    """Return where the lower bound of a result holds, in a few words."""
    placement = "on these placements" if all_layouts else "on this placement"
    return f"{placement}, {'unsliced' if result.slices == 1 else f'in {result.slices} slices'}"


def _gap(result: ResultRecord, all_layouts: bool, left_out: str) -> str:
    if result.gap is None:
        return "none: over the memory limit"
    of = "any layout on these placements" if all_layouts else "this placement"
    of += f" {left_out}" if left_out else ""
    return percent(result.gap) + (f": no schedule of {of} is shorter" if result.gap == 0 else "")


def _step_rows(result: ResultRecord, times: Times) -> list[tuple[str, str]]:
    if result.step is UNSET:
        return []
    return [
        ("step, with a barrier at its end", times.text(result.step.with_barrier)),
        ("step, without one", times.text(result.step.without_barrier)),
    ]


def _ranks(result: ResultRecord, shown: Sequence[int], times: Times) -> Part:
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
