"""How far predictions are off on published runs, by source, beside the null model's and the rivals' own.

Run with ``make bench-plan``, or ``make bench-plan WRITE=--write`` (two minutes). The runs stand beside the checkout, in
``shared/planning``; ``--write`` puts the tables into ``docs/explanation/accuracy.md`` and the error bars into the package.
The number to improve is the error with a run's source left out of the fit (``benchmarks.leave_one_out``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from benchmarks.error_ranges import Compared, error_table, held_by_kind
from benchmarks.leave_one_out import Linear, linear, mean_error
from benchmarks.null_model import Known, null_step_time
from benchmarks.published_runs.rows import RunRow
from benchmarks.published_runs.sources import SHARED, published, source_of
from pipeplan.extensions.planning import Estimate, estimate
from pipeplan.extensions.planning.error_bars import ErrorTable, kind_of
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.model import Floats

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "src" / "pipeplan" / "extensions" / "planning" / "error_bars.json"
PAGE = ROOT / "docs" / "explanation" / "accuracy.md"
BEGIN, END = "<!-- made by make bench-plan: begin -->", "<!-- made by make bench-plan: end -->"

SHORT = 40
"""Letters of a source's name in a table."""

TARGETS = {
    "Reducing Activation Recomputation": 6,
    "Efficient Large-Scale Language Model": 10,
    "Zero Bubble": 10,
    "SimuMax": 10,
    "vTrain": 20,
}
"""Percent that the mean error should stay below, by how a group starts."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A run with what is predicted for it.

    Attributes
    ----------
    row, estimate
        The run, and the prediction.
    null
        The null model's step time; seconds. None where no other model is known.
    rival
        What another tool predicted for the run.
    """

    row: RunRow
    estimate: Estimate
    null: float | None
    rival: Mapping[str, Any]

    @property
    def step_error(self) -> float | None:
        """Predicted over measured step time, less 1."""
        measured = self.row.measured.step_time
        return None if measured is None else self.estimate.step_time / measured - 1

    @property
    def null_error(self) -> float | None:
        """The same of the null model."""
        measured = self.row.measured.step_time
        return None if measured is None or self.null is None else self.null / measured - 1

    @property
    def memory_error(self) -> float | None:
        """Predicted over measured peak of what is allocated, less 1; of the fullest rank, or of the one that was logged."""
        measured, rank = self.row.measured.peak_bytes, self.row.measured.peak_rank
        found = self.estimate.peak_bytes if rank is None else self.estimate.memory[rank].total * GIBIBYTE
        return None if measured is None else found / measured - 1


def predicted(
    rows: Iterable[RunRow], rivals: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Prediction], list[tuple[RunRow, str]]]:
    """What is predicted for rows, and which are refused with the reason."""
    found: list[tuple[RunRow, Estimate]] = []
    refused: list[tuple[RunRow, str]] = []
    for row in rows:
        if row.model is None or row.cluster is None or row.configuration is None:
            refused.append((row, row.refused))
            continue
        try:
            found.append((row, estimate(row.model, row.cluster, row.configuration, with_error_bar=False)))
        except PipeplanError as error:
            refused.append((row, str(error)))
    known = {row.id: known_run(row) for row, _ in found if row.measured.step_time is not None}
    others = list(known.values())
    return [
        Prediction(
            row, made, null_step_time(known[row.id], others) if row.id in known else None, rivals.get(row.id, {})
        )
        for row, made in found
    ], refused


def known_run(row: RunRow) -> Known:
    """A row whose step time is known, as the null model takes it."""
    assert row.model is not None
    assert row.cluster is not None
    assert row.configuration is not None
    assert row.measured.step_time is not None
    return Known(
        model=row.model,
        cluster=row.cluster,
        configuration=row.configuration,
        step_time=row.measured.step_time,
    )


def group_of(row: RunRow) -> str:
    """The source of a row; large ones split into dense models and mixtures of experts, and rows found later apart."""
    source = source_of(row)
    title = f"Further rows: {source}" if ", further" in row.source else source
    assert row.model is not None
    if source.startswith(("Megatron Bridge", "NVIDIA DGX Cloud", "SimuMax")):
        return f"{title}, {'MoE' if row.model.experts else 'dense'}"
    return title


def errors_by(
    name: Callable[[RunRow], str], predictions: Sequence[Prediction], error: Callable[[Prediction], float | None]
) -> dict[str, list[tuple[float, Prediction]]]:
    """Errors by the name of their row's group, those without a measurement left out."""
    groups: dict[str, list[tuple[float, Prediction]]] = {}
    for each in predictions:
        found = error(each)
        if found is not None:
            groups.setdefault(name(each.row), []).append((found, each))
    return dict(sorted(groups.items()))


def short(source: str) -> str:
    """Return the name of a source, cut between words where it is a long title."""
    return source if len(source) <= SHORT else f"{source[:SHORT].rsplit(' ', 1)[0]} ..."


def percent(value: float | None) -> str:
    """A fraction, for a table."""
    return "" if value is None else f"{100 * value:.1f}%"


def mean_absolute(errors: Iterable[float]) -> float:
    """The mean of the absolute values."""
    return fmean(map(abs, errors))


def rival_error(each: Prediction, key: str, measured: float | None) -> float | None:
    """What another tool's own prediction of the run is off."""
    value = each.rival.get(key)
    return None if value is None or not measured else float(value) / measured - 1


def step_table(predictions: Sequence[Prediction], left_out: Floats) -> str:
    """Step times by source, as Markdown; ``left_out`` has the logarithm of predicted over measured for each timed run."""
    lines = [
        "| source | runs | left out | shipped | mean error | null model | rival's own | worst run |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    timed = [each for each in predictions if each.step_error is not None]
    without = dict(zip((each.row.id for each in timed), np.exp(left_out) - 1, strict=True))
    for source, found in errors_by(source_of, timed, lambda each: each.step_error).items():
        errors = [error for error, _ in found]
        nulls = [each.null_error for _, each in found if each.null_error is not None]
        rivals = [rival_error(each, "step_time_s", each.row.measured.step_time) for _, each in found]
        own = [error for error in rivals if error is not None]
        lines.append(
            f"| {short(source)} | {len(errors)} | {percent(mean_absolute(without[each.row.id] for _, each in found))} "
            f"| {percent(mean_absolute(errors))} | {100 * fmean(errors):+.1f}% "
            f"| {percent(mean_absolute(nulls)) if nulls else ''} | {percent(mean_absolute(own)) if own else ''} "
            f"| {worst(found)} |"
        )
    return "\n".join(lines)


def memory_table(predictions: Sequence[Prediction]) -> str:
    """Peaks by source, as Markdown."""
    lines = [
        "| source | runs | shipped | mean error | rival's own | worst run |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for group, found in errors_by(source_of, predictions, lambda each: each.memory_error).items():
        errors = [error for error, _ in found]
        rivals = [
            rival_error(each, "peak_memory_gib", (each.row.measured.peak_bytes or 0.0) / 2**30) for _, each in found
        ]
        own = [error for error in rivals if error is not None]
        lines.append(
            f"| {short(group)} | {len(errors)} | {percent(mean_absolute(errors))} | {100 * fmean(errors):+.1f}% "
            f"| {percent(mean_absolute(own)) if own else ''} | {worst(found)} |"
        )
    return "\n".join(lines)


def worst(found: Sequence[tuple[float, Prediction]]) -> str:
    """Return the run that is most off, by name."""
    error, each = max(found, key=lambda pair: abs(pair[0]))
    return f"`{each.row.id}` {100 * error:+.0f}%"


def compared(predictions: Sequence[Prediction], left_out: Floats) -> list[Compared]:
    """Runs with a step time for the error bars; ``left_out`` has the logarithm of predicted over measured for each."""
    timed = [each for each in predictions if each.step_error is not None]
    found = []
    for each, value in zip(timed, left_out, strict=True):
        row = each.row
        assert row.model is not None
        assert row.cluster is not None
        assert row.configuration is not None
        found.append(
            Compared(
                id=row.id,
                source=source_of(row),
                kind=kind_of(row.model, row.cluster, row.configuration),
                sequence=row.configuration.sequence,
                gpus=row.cluster.gpus,
                ratio=exp(-value),
                memory=None if each.memory_error is None else 1 / (1 + each.memory_error),
            )
        )
    return found


def report(
    predictions: Sequence[Prediction],
    refused: Sequence[tuple[RunRow, str]],
    residuals: Linear,
    left_out: Floats,
    runs: Sequence[Compared],
) -> str:
    """The page's part, as Markdown."""
    reasons: dict[str, int] = {}
    for _, reason in refused:
        reasons[reason] = reasons.get(reason, 0) + 1
    nulls = [each.null_error for each in predictions if each.null_error is not None]
    parts = [
        f"{len(left_out)} step times of {len(predictions) + len(refused)} rows, predicted from the model's shape alone, "
        "without calibration; an error is predicted over measured, less 1.",
        f"With the constants fitted to all sources but the run's own, the mean of absolute errors is "
        f"**{percent(mean_error(left_out))}**; with the shipped ones {percent(mean_error(residuals.logs))}, and the null "
        f"model's is {percent(mean_absolute(nulls))}. The mean of absolute errors by source:",
        step_table(predictions, left_out),
        "Runs within the error bars of their kind, when only runs of other sources make these:",
        held_table(runs),
        "Peaks of what is allocated on the fullest rank:",
        memory_table(predictions),
        "Refused rows: "
        + ("; ".join(f"{count} ({reason})" for reason, count in sorted(reasons.items(), key=lambda each: -each[1]))),
    ]
    return "\n\n".join(parts)


def held_table(runs: Sequence[Compared]) -> str:
    """How often error bars hold, by kind, as Markdown."""
    shipped = error_table(runs)
    lines = ["| kind | runs | sources | error bar | held |", "|---|---:|---:|---|---:|"]
    for kind, (share, count) in sorted(held_by_kind(runs).items(), key=lambda pair: str(pair[0])):
        found, wider = shipped.of(kind)
        assert found is not None
        sources = len({run.source for run in runs if run.kind == kind})
        low, high = found.low**wider, found.high**wider
        lines.append(f"| {kind} | {count} | {sources} | {low:.2f} to {high:.2f} | {share:.0%} |")
    lines.append(f"| all | {len(runs)} | {len({run.source for run in runs})} | | {shipped.held:.0%} |")
    return "\n".join(lines)


def write(text: str, shipped: ErrorTable) -> None:
    """Put the tables into the page and the error bars into the package."""
    TABLE.write_bytes(msgspec.json.format(msgspec.json.encode(shipped), indent=1) + b"\n")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, behind = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{behind}", encoding="utf-8")


def main() -> None:
    """Print the tables; with ``--write`` put them where they are shown and shipped."""
    missing = [str(path) for path in SHARED if not path.exists()]
    if missing:
        sys.exit(f"the published runs are not beside this checkout: {', '.join(missing)}")
    predictions, refused = predicted(*published())
    timed = [each.row for each in predictions if each.step_error is not None]
    residuals = linear(timed, [source_of(row) for row in timed])
    left_out = residuals.left_out()
    runs = compared(predictions, left_out)
    text = report(predictions, refused, residuals, left_out, runs)
    print(text)
    if "--write" in sys.argv[1:]:
        write(text, error_table(runs))


if __name__ == "__main__":
    main()
