"""Error bars from published runs: the ranges that are shipped, and how often they hold for a source left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp
from statistics import fmean

import msgspec
import numpy as np

from pipeplan.extensions.planning.error_bars import ErrorRange, ErrorTable, MemoryRange, RunKind
from pipeplan.model import Floats

TAILS = 0.1
"""Fraction of the runs beyond either end of a range."""

ROUNDED = 0.03
"""Minimum half width of a range, in logarithms: what two measurements of one run differ by."""

LEAST_SOURCES = 3
"""Minimum number of sources in a range of one generation; with fewer, the runs on all generations count."""

FEW_SOURCES = 0.25
"""Fraction by which a range would be wider with one source, with two half of it: another source is off by another amount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Run with its measured over predicted step time and peak (None: not measured), both for a source left out."""

    id: str
    source: str
    kind: RunKind
    sequence: int
    gpus: int
    ratio: float
    memory: float | None = None


def error_table(runs: Sequence[Compared]) -> ErrorTable:
    """Return the table that is shipped."""
    return ErrorTable(ranges=ranges_of(runs), held=round(held(runs), 3), memory=memory_range(runs))


def ranges_of(runs: Sequence[Compared]) -> tuple[ErrorRange, ...]:
    """Return the ranges of all kinds with enough sources, and of each kind on any generation."""
    by_kind: dict[RunKind, list[Compared]] = {}
    for run in runs:
        for kind in (run.kind, msgspec.structs.replace(run.kind, generation="")):
            by_kind.setdefault(kind, []).append(run)
    return tuple(
        _range(kind, inside)
        for kind, inside in sorted(by_kind.items(), key=lambda pair: str(pair[0]))
        if not kind.generation or len({run.source for run in inside}) >= LEAST_SOURCES
    )


def _range(kind: RunKind, runs: Sequence[Compared]) -> ErrorRange:
    sources = [run.source for run in runs]
    wider = 1.0 + FEW_SOURCES / len(set(sources))
    low, high = _without_tails([run.ratio for run in runs], sources)
    return ErrorRange(
        kind=kind,
        low=round(exp(wider * min(low, -ROUNDED)), 3),
        high=round(exp(wider * max(high, ROUNDED)), 3),
        runs=len(runs),
        sources=len(set(sources)),
        examples=tuple({run.source: run.id for run in reversed(runs)}.values())[::-1],
        sequence=max(run.sequence for run in runs),
        gpus=max(run.gpus for run in runs),
    )


def _without_tails(ratios: Sequence[float], sources: Sequence[str]) -> tuple[float, float]:
    """Return the logarithms between which the ratios lie without :data:`TAILS` at either end."""
    # Many rows of one source are not as many pieces of evidence.
    weights = np.array([1.0 / sources.count(source) ** 0.5 for source in sources])
    logs = np.log(np.array(ratios))
    return quantile(logs, weights, TAILS), quantile(logs, weights, 1.0 - TAILS)


def quantile(values: Floats, weights: Floats, share: float) -> float:
    """Return the value below which a share of the weights lies."""
    order = np.argsort(values)
    middle = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share, middle / weights.sum(), values[order]))


def held(runs: Sequence[Compared]) -> float:
    """Return the fraction of runs within the range made of other sources' runs."""
    inside = held_by_kind(runs).values()
    return sum(share * count for share, count in inside) / max(1, sum(count for _, count in inside))


def held_by_kind(runs: Sequence[Compared]) -> dict[RunKind, tuple[float, int]]:
    """Return the fraction of the runs of each kind within the range made of other sources' runs, and their number."""
    by_kind: dict[RunKind, list[bool]] = {}
    for source in {run.source for run in runs}:
        others = ErrorTable(ranges=ranges_of([run for run in runs if run.source != source]))
        for run in runs:
            found, wider = others.of(run.kind)
            if run.source == source and found is not None:
                within = found.low**wider <= run.ratio <= found.high**wider
                by_kind.setdefault(run.kind, []).append(within)
    return {kind: (fmean(within), len(within)) for kind, within in by_kind.items()}


def memory_range(runs: Iterable[Compared]) -> MemoryRange:
    """Return the range of measured over predicted peaks without the lowest and the highest tenth."""
    measured = [(run.memory, run.source) for run in runs if run.memory is not None]
    if not measured:
        return MemoryRange()
    low, high = _without_tails(*zip(*measured, strict=True))
    return MemoryRange(low=round(min(exp(low), 1.0), 4), high=round(max(exp(high), 1.0), 4))
