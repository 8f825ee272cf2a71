"""Estimates of given configurations for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.planning.configurations import in_words
from pipeplan.api.tables.parts import columns, facts, figure, line
from pipeplan.api.tables.plans import estimate_parts, step_in_words
from pipeplan.files import GIBIBYTE
from pipeplan.model import one_line
from pipeplan.readable import change, percent

if TYPE_CHECKING:
    from pipeplan.api.planning.estimates import EstimatedRow, Estimates


def estimates_parts(estimates: Estimates) -> Iterator[RenderableType]:
    """One configuration in full; several as a row each, beside what was measured."""
    if len(estimates) == 1:
        yield from _one(estimates.rows[0])
        return
    measured = any(row.measured for row in estimates)
    beside = ("meas-\nured", "error", "meas-\nured", "error") if measured else ()
    table = columns("configuration", "step\n(s)", *beside[:2], "peak\n(GiB)", *beside[2:])
    refused = [row for row in estimates if row.estimate is None]
    for row in estimates:
        if row.estimate is not None:
            table.add_row(*_cells(row, measured))
    yield table
    yield from _errors(estimates)
    if refused:
        yield Text("\nnot estimated:")
        yield from (Padding(line(f"{row.id}: {row.refused}"), (0, 0, 0, 2)) for row in refused)


def _cells(row: EstimatedRow, measured: bool) -> list[str]:
    found = row.estimate
    assert found is not None
    times, peaks = [figure(found.step_time)], [f"{found.peak_bytes / GIBIBYTE:.1f}"]
    if measured:
        times += _beside(row.measured.get("step_time_s"), row.time_error)
        peaks += _beside(row.measured.get("peak_memory_gib"), row.memory_error)
    return [one_line(row.id), *times, *peaks]


def _beside(value: float | None, error: float | None) -> tuple[str, str]:
    return ("", "") if value is None or error is None else (figure(value), change(error))


def _errors(estimates: Estimates) -> Iterator[RenderableType]:
    """How far off they are by source: one mean over runs of all kinds would say little."""
    table = columns("error by source", "runs", "step", "signed", "runs", "peak", "signed", padding=1)
    for source in dict.fromkeys(row.source for row in estimates if row.measured):
        rows = [row for row in estimates if row.source == source]
        cells = [
            *_mean([row.time_error for row in rows if row.time_error is not None]),
            *_mean([row.memory_error for row in rows if row.memory_error is not None]),
        ]
        table.add_row(one_line(source) or "this file", *cells)
    if table.row_count:
        yield Text("")
        yield table


def _mean(errors: Sequence[float]) -> tuple[str, str, str]:
    """How many, and their mean without and with their signs."""
    if not errors:
        return "", "", ""
    return str(len(errors)), percent(sum(map(abs, errors)) / len(errors)), change(sum(errors) / len(errors))


def _one(row: EstimatedRow) -> Iterator[RenderableType]:
    found = row.estimate
    if found is None:
        yield line(f"{row.id}: {row.refused}")
        return
    yield line(f"{row.id}: {in_words(found.configuration)}", "bold")
    rows = [
        ("step", step_in_words(found)),
        ("tokens a second", f"{found.tokens_per_second:,.0f}"),
        ("MFU", percent(found.mfu)),
        ("peak memory", f"{found.peak_bytes / GIBIBYTE:.1f} GiB"),
    ]
    for name, value, error in (
        ("step, measured", row.measured.get("step_time_s"), row.time_error),
        ("peak, measured", row.measured.get("peak_memory_gib"), row.memory_error),
    ):
        if value is not None and error is not None:
            rows.append((name, f"{figure(value)}; the prediction is off by {change(error)}"))
    yield Padding(facts(rows), (1, 0))
    yield from estimate_parts(found)
    for assumed in dict.fromkeys((*row.assumed, *found.assumed)):
        yield line(f"assumed: {assumed}")
