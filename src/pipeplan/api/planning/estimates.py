"""Estimates of configurations: step time, memory, and errors against measured runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from pipeplan.api.answers import AnswerRecord
from pipeplan.api.parts import columns, facts, figure, line, shown_ranks
from pipeplan.api.planning.configurations import in_words
from pipeplan.drawing import MEMORY_SHARES, TIME_SHARES, Share
from pipeplan.files import GIBIBYTE
from pipeplan.model import counted, one_line
from pipeplan.planner import Configuration, Estimate
from pipeplan.readable import change, percent
from pipeplan.records import Evidence, Record

if TYPE_CHECKING:
    from rich.console import RenderableType


class StepBreakdown(Record, frozen=True, kw_only=True):
    """Parts of a step's time, in seconds, which add up to it."""

    compute_s: float
    recompute_s: float
    tensor_s: float
    context_s: float
    expert_s: float
    bubble_s: float
    overhead_s: float
    data_s: float
    optimizer_s: float


class MemoryBreakdown(Record, frozen=True, kw_only=True):
    """Parts of a rank's peak memory, in GiB, which add up to it."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    transient: float
    buffers: float


class ErrorBarRecord(Record, frozen=True, kw_only=True):
    """Range of measured over predicted time in similar published runs, as factors and step times.

    ``coverage`` is the fraction of all published runs that lie within such a range of other sources' runs.
    """

    low: float
    high: float
    step_time_s: tuple[float, float]
    runs: tuple[str, ...]
    coverage: float = 0.0


ConfigurationRecord: Any = msgspec.defstruct(
    "ConfigurationRecord",
    [*get_type_hints(Configuration).items(), ("gpus", int), ("microbatches", int)],
    bases=(Record,),
    namespace={"__doc__": "What a configuration chooses, with the GPUs and microbatches that makes."},
    frozen=True,
    kw_only=True,
)


class EstimateRecord(Record, frozen=True, kw_only=True):
    """Prediction of one configuration: times in seconds, memory in GiB; ``docs/how-to/planning.md`` explains them."""

    step_time_s: float
    peak_memory_gib: float
    peak_memory_by_rank_gib: tuple[float, ...]
    breakdown: StepBreakdown
    memory_breakdown_by_rank_gib: tuple[MemoryBreakdown, ...]
    tokens_per_s: float
    flops: float
    mfu: float
    error_bar: ErrorBarRecord | None
    costs_from: dict[str, str]
    assumed: tuple[str, ...]
    configuration: ConfigurationRecord


def figures_of(estimate: Estimate) -> dict[str, Any]:
    """Return the fields of an :class:`EstimateRecord`."""
    by_rank = tuple(rank.total / GIBIBYTE for rank in estimate.memory)
    bar, chosen = estimate.error_bar, estimate.configuration
    return {
        "step_time_s": estimate.step_time,
        "peak_memory_gib": max(by_rank),
        "peak_memory_by_rank_gib": by_rank,
        "breakdown": StepBreakdown(**{f"{name}_s": value for name, value in asdict(estimate.time).items()}),
        "memory_breakdown_by_rank_gib": tuple(
            MemoryBreakdown(**{name: value / GIBIBYTE for name, value in asdict(rank).items()})
            for rank in estimate.memory
        ),
        "tokens_per_s": estimate.tokens_per_second,
        "flops": estimate.flops,
        "mfu": estimate.mfu,
        "error_bar": None
        if bar is None
        else ErrorBarRecord(
            low=bar.low,
            high=bar.high,
            step_time_s=(estimate.step_time * bar.low, estimate.step_time * bar.high),
            runs=bar.runs,
            coverage=bar.coverage,
        ),
        "costs_from": dict(estimate.costs_from),
        "assumed": estimate.assumed,
        "configuration": ConfigurationRecord(**asdict(chosen), gpus=chosen.gpus, microbatches=chosen.microbatches),
    }


class MeasuredFigures(Record, frozen=True, kw_only=True):
    """Measured figures of a real run, as far as its file has them."""

    step_time_s: float | UnsetType = UNSET
    peak_memory_gib: float | UnsetType = UNSET


class PredictionErrors(Record, frozen=True, kw_only=True):
    """Predicted over measured, less 1."""

    step_time: float | None
    peak_memory: float | None


class EstimatedRow(Record, frozen=True, kw_only=True, eq=False):
    """Prediction of a configuration in a file, next to its measured figures; ``refused`` is the reason if there is none."""

    id: str
    step_time_s: float | None
    peak_memory_gib: float | None
    peak_memory_by_rank_gib: tuple[float, ...] | None
    breakdown: StepBreakdown | None
    error_bar: ErrorBarRecord | None
    assumed: tuple[str, ...]
    refused: str | None
    memory_breakdown_by_rank_gib: tuple[MemoryBreakdown, ...] | UnsetType = UNSET
    tokens_per_s: float | UnsetType = UNSET
    flops: float | UnsetType = UNSET
    mfu: float | UnsetType = UNSET
    costs_from: dict[str, str] | UnsetType = UNSET
    configuration: ConfigurationRecord | UnsetType = UNSET
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


def estimated_row(
    id: str,
    estimate: Estimate | None,
    *,
    refused: str | None = None,
    source: str = "",
    assumed: Sequence[str] = (),
    measured: Mapping[str, float] = MappingProxyType({}),
) -> EstimatedRow:
    """Return the row of a configuration; ``measured`` has ``step_time_s`` and ``peak_memory_gib``, as far as known."""
    figures = dict.fromkeys(_REFUSED) if estimate is None else figures_of(estimate)
    figures["assumed"] = tuple(dict.fromkeys((*assumed, *(() if estimate is None else estimate.assumed))))
    if measured:
        figures["measured"] = MeasuredFigures(**measured)
        figures["error"] = PredictionErrors(
            step_time=_error(figures["step_time_s"], measured.get("step_time_s")),
            peak_memory=_error(figures["peak_memory_gib"], measured.get("peak_memory_gib")),
        )
    return EstimatedRow(id=id, refused=refused, **figures).holding(estimate=estimate, source=source)


_REFUSED = ("step_time_s", "peak_memory_gib", "peak_memory_by_rank_gib", "breakdown", "error_bar")
"""Figures that are None in a refused row."""


def _error(predicted: float | None, measured: float | None) -> float | None:
    return None if predicted is None or measured is None else predicted / measured - 1


@final
class Estimates(AnswerRecord, frozen=True, kw_only=True, eq=False):
    """Predictions of given configurations, in the order of the file.

    Iteration gives the rows; ``to_frame()`` has a row per configuration.
    """

    schema_name = "answer-estimate"

    rows: tuple[EstimatedRow, ...]

    def __iter__(self) -> Iterator[EstimatedRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, id: str) -> EstimatedRow:
        """Return the row of this id. Raises KeyError for another one."""
        return next((row for row in self.rows if row.id == id), None) or _missing(id)

    def table(self) -> Iterator[RenderableType]:
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

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [row.to_dict() for row in self.rows]

    def __repr__(self) -> str:
        refused = sum(row.refused is not None for row in self.rows)
        return f"<Estimates of {counted(len(self.rows) - refused, 'configuration')}, {refused} refused>"


def _missing(id: str) -> EstimatedRow:
    raise KeyError(id)


def _cells(row: EstimatedRow, estimate: Estimate, measured: bool) -> list[str]:
    times, peaks = [figure(estimate.step_time)], [f"{estimate.peak_bytes / GIBIBYTE:.1f}"]
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
        ("peak memory", f"{estimate.peak_bytes / GIBIBYTE:.1f} GiB"),
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
    table = columns("the step's time", "s", "share", padding=1)
    # All with the digits of the step: a part that rounds to zero with them is left out.
    digits = len(figure(estimate.step_time).partition(".")[2])
    for name, value in asdict(estimate.time).items():
        if round(value, digits):
            table.add_row(TIME_SHARES[name].title, f"{value:,.{digits}f}", percent(value / estimate.step_time))
    return table


def _held(estimate: Estimate, limit: float | None) -> RenderableType:
    held = [asdict(rank) for rank in estimate.memory]
    used = _used(held, MEMORY_SHARES)
    over = limit is not None and any(rank.total > limit for rank in estimate.memory)
    heading = "rank, GiB" if not over else f"rank, GiB (! over {(limit or 0) / GIBIBYTE:.1f})"
    titles = [share.title.replace(" ", "\n") for share in used.values()]
    table = columns(heading, *titles, "total", least=titles[::-1])
    shown = shown_ranks(len(held))
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        total = estimate.memory[rank].total
        mark = " !" if limit is not None and total > limit else ""
        parts = (f"{held[rank][name] / GIBIBYTE:.1f}" for name in used)
        table.add_row(f"{rank}{mark}", *parts, f"{total / GIBIBYTE:.1f}")
    return table


def _used(bars: Sequence[Mapping[str, float]], shares: Mapping[str, Share]) -> dict[str, Share]:
    return {name: share for name, share in shares.items() if any(bar[name] for bar in bars)}
