"""Estimates of configurations: step time and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, final

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, astuple

from pipeplan.answers.answers import Listing
from pipeplan.answers.headlined import BRIEF, HeadlinedAnswer, ShownOptions, more_details, more_rows
from pipeplan.answers.parts import MOST_ROWS, columns, facts, figure, line, shown_ranks
from pipeplan.extensions.planning import Configuration, CostsFrom, ErrorBar, Estimate, GpuMemory, StepTime
from pipeplan.extensions.planning.choice.comparing import LEAST_GIB
from pipeplan.extensions.planning.choice.describing import in_words
from pipeplan.extensions.planning.choice.sentences import step_with_error, what_in_words
from pipeplan.extensions.planning.configuration import ConfigurationRecord
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.plan_records import Assumption
from pipeplan.extensions.planning.runs.comparing import MeasuredStep
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.readable import percent
from pipeplan.foundation.records import Evidence, Record, holding, titles_of
from pipeplan.model import counted, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType


class EstimatedRow(Record, frozen=True, kw_only=True, eq=False):
    """Prediction of a configuration in a file; ``refused`` is the reason if there is none.

    ``assumptions`` are there if it is the only configuration.
    """

    # The keys are those of an estimate. In a refused row, the first ones are null and the last ones are left out.
    id: str
    step_time_s: float | None
    peak_memory_gib: float | None
    peak_memory_by_rank_gib: tuple[float, ...] | None
    breakdown: StepTime | None
    error_bar: ErrorBar | None
    assumed: tuple[str, ...]
    refused: str | None
    memory_breakdown_by_rank_gib: tuple[GpuMemory, ...] | UnsetType = UNSET
    tokens_per_s: float | UnsetType = UNSET
    flops: float | UnsetType = UNSET
    mfu: float | UnsetType = UNSET
    costs_from: dict[str, CostsFrom] | UnsetType = UNSET
    configuration: ConfigurationRecord | UnsetType = UNSET
    assumptions: tuple[Assumption, ...] | UnsetType = UNSET
    measured: MeasuredStep | UnsetType = UNSET

    estimate = Evidence[Estimate | None]()
    """The prediction as the planner made it; None if it is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationRow:
    """Configuration of a file: its ``id``, number or name, and its job, or why it is ``refused``.

    ``assumed`` are assumptions about settings that the file leaves out, one sentence each.
    """

    id: str
    model: ModelShape | None = None
    cluster: Cluster | None = None
    configuration: Configuration | None = None
    assumed: tuple[str, ...] = ()
    refused: str = ""

    @property
    def job(self) -> tuple[ModelShape, Cluster, Configuration]:
        """Model, cluster and configuration of a row that is not refused."""
        assert self.model is not None
        assert self.cluster is not None
        assert self.configuration is not None
        return self.model, self.cluster, self.configuration


def estimated_row(
    row: ConfigurationRow,
    estimate: Estimate | None,
    refused: str | None = None,
    *,
    assumptions: tuple[Assumption, ...] | UnsetType = UNSET,
) -> EstimatedRow:
    """Return the row of a configuration, with its estimate or the reason why there is none."""
    if estimate is None:
        null: dict[str, Any] = dict.fromkeys(
            ("step_time_s", "peak_memory_gib", "peak_memory_by_rank_gib", "breakdown", "error_bar")
        )
        return holding(EstimatedRow(id=row.id, assumed=row.assumed, refused=refused, **null), estimate=None)
    keys = zip(estimate.__struct_encode_fields__, astuple(estimate), strict=True)
    figures: dict[str, Any] = dict(keys) | {"assumed": tuple(dict.fromkeys((*row.assumed, *estimate.assumed)))}
    made = EstimatedRow(id=row.id, refused=refused, assumptions=assumptions, **figures)
    return holding(made, estimate=estimate)


@final
class Estimates(Listing[EstimatedRow], HeadlinedAnswer, frozen=True, kw_only=True, eq=False):
    """Predictions of given configurations, in the order of the file.

    Iteration gives the rows; ``to_frame()`` has a row per configuration.
    """

    _listed = "rows"
    noun = "configuration"
    name_attribute = "id"

    headline: str
    rows: tuple[EstimatedRow, ...]

    @classmethod
    def of(cls, rows: Iterable[EstimatedRow]) -> Estimates:
        """Return the rows with the headline: the only one, or the fastest of several."""
        rows = tuple(rows)
        return cls(headline=_headline(rows), rows=rows)

    def _below(self, shown: ShownOptions = BRIEF) -> Iterator[RenderableType]:
        """Return one configuration in full; for several, a row per configuration, the fastest first."""
        if len(self) == 1:
            yield from _one(self.rows[0], shown)
            return
        estimated = _fastest_first(self.rows)
        listed = estimated if shown.all else estimated[:MOST_ROWS]
        if listed:
            yield line()
            table = columns("configuration", "step\n(s)", "peak\n(GiB)", "tokens/s\nper GPU", "MFU")
            for row, estimate in listed:
                per_gpu = f"{estimate.tokens_per_second / estimate.configuration.gpus:,.0f}"
                figures = figure(estimate.step_time), f"{estimate.peak_memory_gib:.1f}", per_gpu, percent(estimate.mfu)
                table.add_row(one_line(row.id), *figures)
            yield table
            yield from more_rows(len(estimated) - len(listed), "slower configuration")
        if refused := [row for row in self if row.estimate is None]:
            yield line()
            yield line("not estimated:")
            named = refused if shown.all else refused[:MOST_ROWS]
            yield from (line(f"{row.id}: {row.refused}", indent=2) for row in named)
            yield from more_rows(len(refused) - len(named), "refused configuration")

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [row.to_dict() for row in self.rows]

    def __repr__(self) -> str:
        refused = sum(row.refused is not None for row in self.rows)
        return f"<Estimates of {counted(len(self.rows) - refused, 'configuration')}, {refused} refused>"


def _fastest_first(rows: Iterable[EstimatedRow]) -> list[tuple[EstimatedRow, Estimate]]:
    """Return the rows with an estimate, sorted by their step time."""
    return sorted(((row, row.estimate) for row in rows if row.estimate is not None), key=lambda pair: pair[1].step_time)


def _headline(rows: Sequence[EstimatedRow]) -> str:
    """Return the prediction of the only configuration; of several, the fastest, or the range if their jobs differ."""
    estimated = _fastest_first(rows)
    refused = f"; {len(rows) - len(estimated)} of {len(rows)} cannot be estimated" if len(estimated) < len(rows) else ""
    if not estimated:
        reasons = Counter(row.refused or "" for row in rows)
        (reason, _), *others = reasons.most_common()
        if len(rows) == 1:
            return f"No estimate: {reason}"
        most = "; most often" if others else ""
        return f"None of {counted(len(rows), 'configuration')} can be estimated{most}: {reason}"
    row, fastest = estimated[0]
    words = f"{step_with_error(fastest)}, {fastest.peak_memory_gib:.1f} GiB"
    if len(rows) == 1:
        words = f"{what_in_words(fastest.configuration)}: {words}, MFU {percent(fastest.mfu)}"
        return words if row.measured is UNSET else f"{words}; {row.measured.verdict}"
    if len({_job(estimate) for _, estimate in estimated}) > 1:
        slowest = estimated[-1][1]
        steps = f"{figure(fastest.step_time)} to {figure(slowest.step_time)} s per step"
        return f"{counted(len(estimated), 'configuration')} of different jobs take {steps}{refused}"
    ahead = ""
    if len(estimated) > 1:
        other, following = estimated[1]
        ahead = f", {following.step_time / fastest.step_time - 1:.1%} ahead of {other.id}"
    return f"{row.id} is the fastest of {counted(len(rows), 'configuration')}: {words}{ahead}{refused}"


def _job(estimate: Estimate) -> tuple[int, int, int, str]:
    """Return what the step times of two configurations have to share to be compared: GPUs, batch, and the model's FLOPs."""
    chosen = estimate.configuration
    return chosen.gpus, chosen.global_batch, chosen.sequence, f"{estimate.flops:.2g}"


HIDDEN = ("parts of the step", "memory of each rank", "how to say other assumptions")
"""What ``--verbose`` adds to the estimate of one configuration."""


def _one(row: EstimatedRow, shown: ShownOptions) -> Iterator[RenderableType]:
    estimate = row.estimate
    if estimate is None:
        return
    yield line(f"{row.id}: {in_words(estimate.configuration)}")
    chosen = estimate.configuration
    per_gpu = f"{estimate.tokens_per_second / chosen.gpus:,.0f} per GPU"
    rows = [
        ("step", step_in_words(estimate)),
        ("spent on", spent_in_words(estimate)),
        ("tokens/s", f"{estimate.tokens_per_second:,.0f} ({per_gpu}), MFU {percent(estimate.mfu)}"),
        ("peak memory", f"{estimate.peak_memory_gib:.1f} GiB"),
        ("fullest rank", peak_in_words(estimate)),
    ]
    yield facts(rows, above=1, below=1)
    if shown.verbose:
        yield from estimate_parts(estimate)
    if row.measured is not UNSET:
        yield from _measured(row.measured, shown)
    yield from assumption_parts(row.assumptions or (), f"software: {estimate.configuration.software}", shown)
    if shown.verbose:
        yield from (line(f"assumed: {assumed}") for assumed in row.assumed)
    elif row.assumed:
        yield line(f"{'also ' if row.assumptions else ''}assumed: {'; '.join(row.assumed)}")
    yield from more_details(HIDDEN, shown)


MOST_ASSUMPTIONS = 4
"""Assumptions that are listed without ``--all`` and ``--verbose``."""


def assumption_parts(assumptions: Sequence[Assumption], said: str, shown: ShownOptions) -> Iterator[RenderableType]:
    """Return the table of assumptions with what their opposites change; with ``verbose``, also how to say these.

    ``said`` is the software as the user says it, such as ``--fix software=megatron-core``.
    """
    if not assumptions:
        return
    own = f"software={said.partition('software')[2].strip('=: ')}"
    listed = assumptions if shown.all or shown.verbose else assumptions[:MOST_ASSUMPTIONS]
    otherwise = ("otherwise",) if shown.verbose else ()
    table = columns("assumed; its opposite changes", "step", "GiB", *otherwise, padding=1, text_last=shown.verbose)
    for assumption in listed:
        setting = assumption.setting.removeprefix(own)
        where = "" if "+" in setting or "=" in setting else assumption.instead
        step = f"{assumption.slower:+.1%}" if abs(assumption.slower) >= LEAST_SHARE else ""
        memory = f"{assumption.more_memory_gib:+.1f}" if abs(assumption.more_memory_gib) >= LEAST_GIB else ""
        how = (": ".join(filter(None, (where, setting))),) if shown.verbose else ()
        table.add_row(assumption.assumed, step, memory, *how)
    yield table
    yield from more_rows(len(assumptions) - len(listed), "further assumption")
    if shown.verbose and any(assumption.setting.startswith(f"{own}+") for assumption in assumptions):
        yield line(f"+NAME stands for {said}+NAME")
    yield line()


def _measured(measured: MeasuredStep, shown: ShownOptions) -> Iterator[RenderableType]:
    """Return the measurement beside the prediction: the step and which part is off; with ``verbose``, parts and memory."""
    yield line(measured.heading)
    if shown.verbose:
        yield line()
        yield from _measured_tables(measured)
    yield from (line(finding) for finding in measured.findings)
    yield line()


def _measured_tables(measured: MeasuredStep) -> Iterator[RenderableType]:
    if measured.parts:
        table = columns("part, least and largest of all ranks", "predicted (s)", "measured (s)", padding=1)
        for part in measured.parts:
            ranges = (part.predicted_s, part.measured_s)
            table.add_row(part.part, *(f"{low:.3f}-{high:.3f}" for low, high in ranges))
        yield table
        yield line()
    if measured.memory:
        table = columns("rank, GiB", "predicted", "allocated", "reserved", padding=1)
        for held in measured.memory:
            figures = (held.predicted_gib, held.allocated_gib, held.reserved_gib)
            name = "fullest" if held.rank is None else str(held.rank)
            table.add_row(name, *("" if gib is None else f"{gib:.1f}" for gib in figures))
        yield table
        yield line()


def spent_in_words(estimate: Estimate) -> str:
    """Return what most of the step is spent on, the largest part first: ``compute 87.1%, bubble 4.0%``."""
    titles = titles_of(StepTime)
    shares = sorted(((value / estimate.step_time, name) for name, value in asdict(estimate.time).items()), reverse=True)
    return ", ".join(f"{titles[name]} {percent(share)}" for share, name in shares[:MOST_PARTS] if share >= LEAST_SHARE)


MOST_PARTS, LEAST_SHARE = 3, 0.005
"""Number of parts of a step that are named, and the smallest share of one."""


def step_in_words(estimate: Estimate) -> str:
    """Return the step time with its error bar, if there is one."""
    bar = estimate.error_bar
    if bar is None:
        return f"{figure(estimate.step_time)} s"
    share = f"{bar.coverage:.0%} " if bar.coverage else ""
    low, high = figure(estimate.step_time * bar.low), figure(estimate.step_time * bar.high)
    return f"{figure(estimate.step_time)} s ({share}interval {low}-{high} s)"


def estimate_parts(estimate: Estimate, limit_gib: float = inf) -> Iterator[RenderableType]:
    """Return the tables of the step's time and of each rank's memory; ranks above the limit are marked."""
    yield _spent(estimate)
    yield line()
    yield _held(estimate, limit_gib)
    yield line()


def peak_in_words(estimate: Estimate) -> str:
    """Return what holds the memory of the fullest rank: ``weights 8.2, gradients 16.4, activations 20.8 GiB``."""
    held = asdict(max(estimate.memory, key=lambda rank: rank.total))
    parts = (f"{title} {held[name]:.1f}" for name, title in titles_of(GpuMemory).items() if held[name] >= LEAST_GIB)
    return f"{', '.join(parts)} GiB"


def _spent(estimate: Estimate) -> RenderableType:
    table = columns("the step's time, mean of all ranks", "s", "share", padding=1)
    # All with the digits of the step: a part that rounds to zero with them is left out.
    digits = len(figure(estimate.step_time).partition(".")[2])
    titles = titles_of(StepTime)
    for name, value in asdict(estimate.time).items():
        if round(value, digits):
            table.add_row(titles[name], f"{value:,.{digits}f}", percent(value / estimate.step_time))
    return table


def _held(estimate: Estimate, limit_gib: float) -> RenderableType:
    held = [asdict(rank) for rank in estimate.memory]
    used = {name: title for name, title in titles_of(GpuMemory).items() if any(rank[name] for rank in held)}
    totals = estimate.peak_memory_by_rank_gib
    heading = "rank, GiB" if max(totals) <= limit_gib else f"rank, GiB (! over {limit_gib:.1f})"
    titles = [title.replace(" ", "\n") for title in used.values()]
    table = columns(heading, *titles, "total", least=titles[::-1])
    shown = shown_ranks(len(held))
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        mark = " !" if totals[rank] > limit_gib else ""
        parts = (f"{held[rank][name]:.1f}" for name in used)
        table.add_row(f"{rank}{mark}", *parts, f"{totals[rank]:.1f}")
    return table
