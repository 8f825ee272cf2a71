"""Figures of a result in one row: of its fullest rank and its longest span."""

from __future__ import annotations

from pipeplan.api.simulating.result import Result
from pipeplan.records import Record


class Summary(Record, frozen=True, kw_only=True):
    """Figures of one schedule: of its fullest rank and its longest span, where it has one for each rank."""

    placement: str
    chunks: int
    makespan: float
    longest_span: float
    idle_over_total: float
    over_ideal: float
    span_bubble: float
    peak_activation: float
    peak_bytes: float | None
    fits: bool
    lower_bound: float
    gap: float | None

    @classmethod
    def of(cls, result: Result) -> Summary:
        """Return the figures of a result."""
        return cls(
            placement=result.schedule.placement.name,
            chunks=result.chunks,
            makespan=result.makespan,
            longest_span=result.timeline.longest_span,
            idle_over_total=result.bubble.idle_over_total,
            over_ideal=result.bubble.over_ideal,
            span_bubble=result.bubble.span,
            peak_activation=max(result.peak_activation),
            peak_bytes=None if result.peak_bytes is None else max(result.peak_bytes),
            fits=result.fits,
            lower_bound=result.lower_bound,
            gap=result.gap,
        )
