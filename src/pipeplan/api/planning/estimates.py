"""Estimates of configurations: step time, memory, and errors against measured runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, fields

from pipeplan.api.answers import Listing
from pipeplan.api.parts import columns, facts, figure, line, shown_ranks
from pipeplan.api.planning.configurations import in_words
from pipeplan.files import GIBIBYTE
from pipeplan.model import counted, one_line
from pipeplan.planner import Estimate, GpuMemory, RunRow, StepTime
from pipeplan.readable import change, percent
from pipeplan.records import Evidence, Record, holding, optional_fields, titles_of

if TYPE_CHECKING:
    from rich.console import RenderableType


class MeasuredFigures(Record, frozen=True, kw_only=True):
    """Measured figures of a real run, as far as its file has them."""

    step_time_s: float | UnsetType = UNSET
    peak_memory_gib: float | UnsetType = UNSET


class PredictionErrors(Record, frozen=True, kw_only=True):
    """Predicted over measured, less 1."""

    step_time: float | None
    peak_memory: float | None


_NULL = ("step_time_s", "peak_memory_gib", "peak_memory_by_rank_gib", "breakdown", "error_bar")
"""Keys of an estimate that are null in a refused row; the others are left out."""


def _row_figures() -> Any:
    """Return the keys of a row: its id, the reason if there is no estimate, and the keys of an estimate."""
    keys = {field.encode_name: field.type for field in fields(Estimate)}
    return msgspec.defstruct(
        "RowFigures",
        [
            ("id", str),
            *((name, keys[name] | None) for name in _NULL),
            ("assumed", keys["assumed"]),
            ("refused", str | None),
            *optional_fields(Estimate, without=(*_NULL, "assumed")),
        ],
        bases=(Record,),
        frozen=True,
        kw_only=True,
    )


if TYPE_CHECKING:

    class RowFigures(Record, frozen=True, kw_only=True):
        """Keys of an estimate in a row."""

        id: str
        assumed: tuple[str, ...]
        refused: str | None

        def __getattr__(self, name: str) -> Any: ...

else:
    RowFigures = _row_figures()


class EstimatedRow(RowFigures, frozen=True, kw_only=True, eq=False):
    """Prediction of a configuration in a file, next to its measured figures; ``refused`` is the reason if there is none."""

    measured: MeasuredFigures | UnsetType = UNSET
    error: PredictionErrors | UnsetType = UNSET

    estimate = Evidence[Estimate | None]()
    """The prediction as the planner made it; None if it is refused."""

    source = Evidence[str]()
    """Publication of a published run; empty for other configurations."""

    @property
    def time_error(self) -> float | None:
        """Predicted over measured step time, less 1; None without both."""
        return None if self.error is UNSET else self.error.step_time

    @property
    def memory_error(self) -> float | None:
        """Predicted over measured peak memory, less 1; None without both."""
        return None if self.error is UNSET else self.error.peak_memory


def estimated_row(row: RunRow, estimate: Estimate | None, refused: str | None = None) -> EstimatedRow:
    """Return the row of a configuration, with its estimate or the reason why there is none."""
    figures = dict.fromkeys(_NULL) if estimate is None else _by_key(estimate)
    figures["assumed"] = tuple(dict.fromkeys((*row.assumed, *(() if estimate is None else estimate.assumed))))
    step_time, peak_bytes = row.measured.step_time, row.measured.peak_bytes
    peak = None if peak_bytes is None else peak_bytes / GIBIBYTE
    if estimate is not None and (step_time is not None or peak is not None):
        figures["measured"] = MeasuredFigures(
            step_time_s=UNSET if step_time is None else step_time, peak_memory_gib=UNSET if peak is None else peak
        )
        figures["error"] = PredictionErrors(
            step_time=None if step_time is None else estimate.step_time / step_time - 1,
            peak_memory=None if peak is None else estimate.peak_memory_gib / peak - 1,
        )
    return holding(EstimatedRow(id=row.id, refused=refused, **figures), estimate=estimate, source=row.source)


def _by_key(estimate: Estimate) -> dict[str, Any]:
    names = zip(Estimate.__struct_encode_fields__, Estimate.__struct_fields__, strict=True)
    return {key: getattr(estimate, name) for key, name in names}


@final
class Estimates(Listing[EstimatedRow], frozen=True, kw_only=True, eq=False):
    """Predictions of given configurations, in the order of the file.

    Iteration gives the rows; ``to_frame()`` has a row per configuration.
    """

    _listed = "rows"
    noun = "configuration"
    name_attribute = "id"

    rows: tuple[EstimatedRow, ...]

    def _table(self) -> Iterator[RenderableType]:
        """Return one configuration in full; for several, a row per configuration, with measured figures if there are any."""
        if len(self) == 1:
            yield from _one(self.rows[0])
            return
        measured = any(row.measured is not UNSET for row in self)
        figures = ("meas-\nured", "error", "meas-\nured", "error") if measured else ()
        table = columns("configuration", "step\n(s)", *figures[:2], "peak\n(GiB)", *figures[2:])
        for row in self:
            if row.estimate is not None:
                table.add_row(*_cells(row, row.estimate, measured))
        yield table
        yield from _errors(self.rows)
        if refused := [row for row in self if row.estimate is None]:
            yield line()
            yield line("not estimated:")
            yield from (line(f"{row.id}: {row.refused}", indent=2) for row in refused)

    def __repr__(self) -> str:
        refused = sum(row.refused is not None for row in self.rows)
        return f"<Estimates of {counted(len(self.rows) - refused, 'configuration')}, {refused} refused>"


def _cells(row: EstimatedRow, estimate: Estimate, measured: bool) -> list[str]:
    times, peaks = [figure(estimate.step_time)], [f"{estimate.peak_memory_gib:.1f}"]
    if measured:
        figures = MeasuredFigures() if row.measured is UNSET else row.measured
        times += _beside(figures.step_time_s, row.time_error)
        peaks += _beside(figures.peak_memory_gib, row.memory_error)
    return [one_line(row.id), *times, *peaks]


def _beside(value: float | UnsetType, error: float | None) -> tuple[str, str]:
    return ("", "") if value is UNSET or error is None else (figure(value), change(error))


def _errors(rows: Sequence[EstimatedRow]) -> Iterator[RenderableType]:
    """Return the errors by source: one mean over runs of all kinds would say little."""
    table = columns("error by source", "runs", "step", "signed", "runs", "peak", "signed", padding=1)
    for source in dict.fromkeys(row.source for row in rows if row.measured is not UNSET):
        of_source = [row for row in rows if row.source == source]
        cells = [
            *_mean([row.time_error for row in of_source if row.time_error is not None]),
            *_mean([row.memory_error for row in of_source if row.memory_error is not None]),
        ]
        table.add_row(one_line(source) or "this file", *cells)
    if table.rows:
        yield line()
        yield table


def _mean(errors: Sequence[float]) -> tuple[str, str, str]:
    """Return the number of errors, and their mean without and with their signs."""
    if not errors:
        return "", "", ""
    return str(len(errors)), percent(sum(map(abs, errors)) / len(errors)), change(sum(errors) / len(errors))


def _one(row: EstimatedRow) -> Iterator[RenderableType]:
    estimate = row.estimate
    if estimate is None:
        yield line(f"{row.id}: {row.refused}")
        return
    yield line(f"{row.id}: {in_words(estimate.configuration)}", "bold")
    rows = [
        ("step", step_in_words(estimate)),
        ("tokens/s", f"{estimate.tokens_per_second:,.0f}"),
        ("MFU", percent(estimate.mfu)),
        ("peak memory", f"{estimate.peak_memory_gib:.1f} GiB"),
    ]
    measured = MeasuredFigures() if row.measured is UNSET else row.measured
    for name, value, error in (
        ("step, measured", measured.step_time_s, row.time_error),
        ("peak, measured", measured.peak_memory_gib, row.memory_error),
    ):
        if value is not UNSET and error is not None:
            rows.append((name, f"{figure(value)}; the prediction is off by {change(error)}"))
    yield facts(rows, above=1, below=1)
    yield from estimate_parts(estimate)
    for assumed in row.assumed:
        yield line(f"assumed: {assumed}")


def step_in_words(estimate: Estimate) -> str:
    """Return the step time with its error bar, if there is one."""
    bar = estimate.error_bar
    if bar is None:
        return f"{figure(estimate.step_time)} s"
    share = f"{bar.coverage:.0%} " if bar.coverage else ""
    low, high = figure(estimate.step_time * bar.low), figure(estimate.step_time * bar.high)
    return f"{figure(estimate.step_time)} s ({share}interval {low}-{high} s)"


def estimate_parts(estimate: Estimate, limit: float | None = None) -> Iterator[RenderableType]:
    """Return the tables of the step's time and of each rank's memory."""
    yield _spent(estimate)
    yield line()
    yield _held(estimate, limit)
    yield line()


def _spent(estimate: Estimate) -> RenderableType:
    table = columns("the step's time, mean of all ranks", "s", "share", padding=1)
    # All with the digits of the step: a part that rounds to zero with them is left out.
    digits = len(figure(estimate.step_time).partition(".")[2])
    titles = titles_of(StepTime)
    for name, value in asdict(estimate.time).items():
        if round(value, digits):
            table.add_row(titles[name], f"{value:,.{digits}f}", percent(value / estimate.step_time))
    return table


def _held(estimate: Estimate, limit: float | None) -> RenderableType:
    held = [asdict(rank) for rank in estimate.memory]
    used = {name: title for name, title in titles_of(GpuMemory).items() if any(rank[name] for rank in held)}
    totals, most = estimate.peak_memory_by_rank_gib, inf if limit is None else limit / GIBIBYTE
    heading = "rank, GiB" if max(totals) <= most else f"rank, GiB (! over {most:.1f})"
    titles = [title.replace(" ", "\n") for title in used.values()]
    table = columns(heading, *titles, "total", least=titles[::-1])
    shown = shown_ranks(len(held))
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        mark = " !" if totals[rank] > most else ""
        parts = (f"{held[rank][name]:.1f}" for name in used)
        table.add_row(f"{rank}{mark}", *parts, f"{totals[rank]:.1f}")
    return table
