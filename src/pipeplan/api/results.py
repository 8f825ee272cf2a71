"""What a question to the workbench is answered with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.drawing import View, view_of
from pipeplan.formats import placement_record
from pipeplan.model import Schedule, Timeline
from pipeplan.model.memory import MemoryUse
from pipeplan.simulation import Bound, IdleTimes, Simulation, idle_times


@dataclass(frozen=True, eq=False)
class Result:
    """One schedule on one set of costs.

    Attributes
    ----------
    simulation
        Its timeline, memory and bound.
    limits
        The memory cap of every rank, or None.
    warnings
        What the reader should know, a sentence each.
    """

    simulation: Simulation
    limits: Limits | None = None
    warnings: tuple[str, ...] = ()

    @property
    def schedule(self) -> Schedule:
        """The plan."""
        return self.simulation.schedule

    @property
    def timeline(self) -> Timeline:
        """Start and end of every op."""
        return self.simulation.timeline

    @property
    def memory(self) -> MemoryUse:
        """What each rank holds after each op."""
        return self.simulation.memory

    @property
    def costs(self) -> Costs:
        """What it was simulated on."""
        return self.simulation.costs

    @property
    def bound(self) -> Bound:
        """A lower bound on the makespan of any schedule of this placement and these costs, within the memory cap."""
        return self.simulation.bound

    @property
    def gap(self) -> float | None:
        """``makespan / bound - 1``; None for a schedule over its memory cap, which no bound within the cap is for."""
        return gap_above(self.makespan, self.bound) if self.fits else None

    @property
    def name(self) -> str:
        """The schedule's name."""
        return self.schedule.name

    @property
    def makespan(self) -> float:
        """From 0 to the last op's end on any rank, in the unit of the costs."""
        return self.timeline.makespan

    @property
    def fits(self) -> bool:
        """Whether every rank stays within its memory cap; True where there is none."""
        return self.limits is None or over_limit(self.memory, self.limits) is None

    def idle_times(self) -> IdleTimes:
        """Every idle moment with its reason; the memory cap counts where it is one in activations."""
        limits = self.limits
        cap = limits.values if limits is not None and limits.in_activations else None
        return idle_times(self.timeline, self.costs, limit=cap)

    def view(self, *, reasons: bool = False) -> View:
        """What a picture of it shows; with ``reasons``, also why each rank idles."""
        idle = self.idle_times() if reasons else None
        return view_of(self.timeline, self.memory, title=self.name, limit=self.limits, reasons=idle)

    def _repr_html_(self) -> str:
        from pipeplan.drawing.notebook import html_of

        return html_of(self.view())

    def _repr_png_(self) -> bytes:
        from pipeplan.drawing.notebook import png_of

        return png_of(self.view())

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain lists and numbers: the JSON of one result."""
        schedule, timeline, bytes_ = self.schedule, self.timeline, self.memory.peak_bytes
        bubble = timeline.bubble
        return {
            "schedule": schedule.name,
            "ranks": schedule.ranks,
            "chunks": schedule.placement.chunks,
            "stages": schedule.stages,
            "microbatches": schedule.microbatches,
            "slices": schedule.slices,
            "placement": placement_record(schedule.placement),
            "makespan": timeline.makespan,
            "spans": timeline.spans.tolist(),
            "work": timeline.work.tolist(),
            "idle": timeline.idle.tolist(),
            "bubble": {
                "idle_over_total": bubble.idle_over_total,
                "over_ideal": bubble.over_ideal,
                "span": bubble.span,
            },
            "peak_activation": self.memory.peak_activation.tolist(),
            "peak_bytes": None if bytes_ is None else bytes_.tolist(),
            "lower_bound": self.bound.value,
            "gap": self.gap,
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        verdict = "over the memory limit" if self.gap is None else f"gap to the bound {self.gap:.2%}"
        return (
            f"<Result {self.name}: makespan {self.makespan:.6g}{self.timeline.unit}, "
            f"bubble (idle / total) {self.timeline.bubble.idle_over_total:.4f}, "
            f"peak {self.memory.peak_activation.max():.4g} activations, {verdict}>"
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several schedules on one set of costs.

    Attributes
    ----------
    results
        Those within the memory cap first, the shortest makespan first.
    refused
        The schedules that cannot be had for this shape, these costs or this cap, each with the rule.
    """

    results: tuple[Result, ...]
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every schedule's warnings, each behind its name; one that all share stands once."""
        by_text: dict[str, list[str]] = {}
        for result in self.results:
            for text in result.warnings:
                by_text.setdefault(text, []).append(result.name)
        everyone = len(self.results)
        return tuple(
            text if len(names) == everyone > 1 else f"{', '.join(names)}: {text}" for text, names in by_text.items()
        )

    @property
    def fits(self) -> bool:
        """Whether any schedule stays within the memory cap."""
        return any(result.fits for result in self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, name: str) -> Result:
        """The result of this name."""
        return next(result for result in self.results if result.name == name)

    def views(self) -> list[View]:
        """What a picture of all of them shows."""
        return [result.view() for result in self.results]

    def _repr_html_(self) -> str:
        from pipeplan.drawing.notebook import html_of

        return html_of(self.views())

    def _repr_png_(self) -> bytes:
        from pipeplan.drawing.notebook import png_of

        return png_of(self.views())

    def to_dict(self) -> dict[str, Any]:
        """``results`` as a list of the JSON of one result, ``refused`` by name, ``warnings``."""
        return {
            "results": [result.to_dict() for result in self.results],
            "refused": dict(self.refused),
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        lines = "".join(f"\n  {result!r}" for result in self.results)
        return f"<Comparison of {len(self.results)} schedules, {len(self.refused)} refused{lines}>"


ROUNDED = 1e-9
"""A value is its bound when it differs by no more than this share: both are rounded sums."""


def gap_above(value: float, bound: Bound) -> float:
    """``value / bound - 1``, without what rounding makes of nothing."""
    gap = value / bound.value - 1
    return 0.0 if abs(gap) <= ROUNDED else gap


def over_limit(memory: MemoryUse, limits: Limits) -> str | None:
    """Which rank is furthest over its cap, what it needs and what the cap is, in words; None where all are within."""
    peaks = memory.peak_activation if limits.in_activations else memory.peak_bytes
    assert peaks is not None
    over = peaks > limits.values * (1 + 1e-9)
    if not over.any():
        return None
    worst = int(np.argmax(peaks / limits.values))
    unit = "activations" if limits.in_activations else "bytes"
    more = f" ({int(over.sum()) - 1} more ranks are over theirs)" if over.sum() > 1 else ""
    return (
        f"over the memory limit: rank {worst} needs {peaks[worst]:,.6g} {unit}, "
        f"its limit is {limits.values[worst]:,.6g}{more}"
    )
