"""The least lower bound of compared schedules, and the best one of them in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from pipeplan.answers.comparing.columns import times_of
from pipeplan.answers.published import Allowed, FasterWithMore, faster_with_more_in_words, kind_in_words, missing
from pipeplan.answers.simulating.result import Result, bound_is_of_recomputed
from pipeplan.foundation.readable import percent, size_text
from pipeplan.foundation.records import Record
from pipeplan.model import counted, counted_either, needs_in_words

_LEAST_SHOWN = 1e-3
"""Smallest gap, as a fraction, that is shown as a number."""


class LeastBound(Record, frozen=True, kw_only=True):
    """Least lower bound of all placements that were compared: no schedule that it ``covers`` can be shorter.

    ``covers`` names the schedules on these placements that need nothing but what is allowed; ``sentence`` is the bound in
    words, with the gap of the best schedule.
    """

    value: float
    covers: str
    sentence: str
    reason: str
    placement: str
    chunks: int
    slices: int
    recomputing: bool


class BoundsByNeeds:
    """Least lower bounds of results: for each, that of the schedules that need no more than it, or than is allowed."""

    def __init__(self, results: Sequence[Result], allowed: Allowed) -> None:
        self._results, self._allowed = results, allowed
        # Results share a few sets of needs, and there may be thousands of results.
        self._least: dict[Allowed, Result] = {}

    def covered(self, result: Result) -> list[Result]:
        """Return the results that need nothing but what is allowed, or what this one needs."""
        needs = self._allowed.union(result.needs)
        return [other for other in self._results if needs.issuperset(other.needs)]

    def least(self, result: Result) -> Result:
        """Return the result with the least bound of those that need nothing but what is allowed, or what this one needs."""
        needs = self._allowed.union(result.needs)
        if needs not in self._least:
            self._least[needs] = min(self.covered(result), key=lambda other: other.lower_bound)
        return self._least[needs]

    def gap(self, result: Result) -> float | None:
        """Return how far a result is above its least bound, as a share of it; None over the memory limit."""
        return self.least(result).bound.gap_of(result.makespan) if result.fits else None

    def record(self) -> LeastBound:
        """Return the least bound of the first result."""
        first = self._results[0]
        covered, least = self.covered(first), self.least(first)
        needs = {need for result in covered for need in result.needs}
        within = "" if first.limits is None else ", within the memory limit"
        kind = kind_in_words(needs, {result.slices for result in covered})
        chunks = counted_either({result.chunks for result in covered}, "chunk")
        covers = f"schedules {kind}, on any placement, with {chunks} per rank{within}"
        where = f"{least.schedule.placement.name}, {counted(least.chunks, 'chunk')} per rank"
        where += f", {least.slices} slices" if least.slices > 1 else ""
        where += ", recomputing the same stages" if bound_is_of_recomputed(least) else ""
        value, gap = times_of(self._results).text(least.lower_bound), self.gap(first)
        above = "" if gap is None else f": {first.name} is {_above(gap)}"
        return LeastBound(
            value=least.lower_bound,
            covers=covers,
            sentence=f"No schedule{covers.removeprefix('schedules')}, can be shorter than {value} ({where}){above}.",
            reason=least.bound_reason,
            placement=least.schedule.placement.name,
            chunks=least.chunks,
            slices=least.slices,
            recomputing=bound_is_of_recomputed(least),
        )


def _above(gap: float) -> str:
    if gap == 0:
        return "that short"
    return f"{percent(gap) if gap >= _LEAST_SHOWN else f'less than {percent(_LEAST_SHOWN)}'} above it"


def headline_of(results: Sequence[Result], allowed: Allowed, faster: Sequence[FasterWithMore]) -> str:
    """Return the best schedule in a sentence, and one on what is faster with more."""
    times, first = times_of(results), results[0]
    eligible = first.fits and not missing(first.needs, allowed)
    alone = all(not missing(result.needs, allowed) for result in results)
    of = "" if alone else f" of those that need {'at most ' if allowed else ''}{needs_in_words(allowed)}"
    within = "" if first.limits is None else " within the memory limit"
    if eligible:
        unit = size_text(first.peak) if first.peak_bytes is not None else f"{first.peak:.4g} activations"
        sentence = f"{first.name} is the fastest{within}{of}: {times.text(first.makespan)}, {unit}."
    else:
        none = "No schedule here" if alone else of.replace(" of those", "None of the schedules")
        sentence = f"{none} is{within or ' possible'}."
    return " ".join(filter(None, (sentence, faster_with_more_in_words(faster, times, fits=eligible))))
