"""What the pages of answers say beside their timelines: tables, sentences and what was assumed, ready for JSON.

``web_ui/src/report/contract.ts`` is the other side of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pipeplan.api.comparing.comparisons import Comparison
from pipeplan.api.differing.difference_words import LEGEND, headings_of, table_of
from pipeplan.api.differing.differences import Diff
from pipeplan.api.results import Result
from pipeplan.drawing import View
from pipeplan.drawing.html import Report, packed
from pipeplan.model import one_line
from pipeplan.strategies import STRATEGIES


def comparison_report(comparison: Comparison, views: Sequence[View]) -> Report:
    """The page of several schedules; ``views`` are those of its results, in their order."""
    schedule = comparison.best.schedule
    shape = f"{schedule.ranks} ranks, {schedule.microbatches} microbatches"
    names = f"{len(comparison)} schedules" if len(comparison) > 1 else one_line(comparison.best.name)
    return Report(
        kind="comparison",
        title=f"{names} on {shape}",
        facts=comparison_facts(comparison),
        views=tuple(views),
    )


def comparison_facts(comparison: Comparison) -> dict[str, Any]:
    """Return what the page of a comparison shows: a row per schedule, the shape and costs they share, leads and notes."""
    best = comparison.best
    in_bytes = best.memory.peak_bytes is not None
    limits = best.limits
    return {
        "ranks": best.schedule.ranks,
        "microbatches": best.schedule.microbatches,
        "unit": best.timeline.unit,
        "memory_unit": "bytes" if in_bytes else "activations",
        "limit": None if limits is None or limits.in_activations == in_bytes else float(limits.values.max()),
        "costs": _costs(best),
        "rows": [
            {"schedule": name, **_row(result, in_bytes)}
            for name, result in zip(_names(comparison), comparison, strict=True)
        ],
        "refused": [
            {"schedule": one_line(name), "message": reason.splitlines()[0].removeprefix(f"{name}: ")}
            for name, reason in comparison.refused.items()
        ],
        "notes": _notes(comparison),
        "changes": _changes(comparison),
    }


def _changes(comparison: Comparison) -> list[str]:
    if not comparison.leads:
        return []
    from pipeplan.api.tables.comparisons import what_changes  # the tables, which load rich

    return list(what_changes(comparison))


def _names(comparison: Comparison) -> list[str]:
    """The schedules' names, those that stand before already with a number."""
    given = [one_line(result.name) for result in comparison]
    before = (given[:place].count(name) for place, name in enumerate(given))
    return [f"{name} ({count + 1})" if count else name for name, count in zip(given, before, strict=True)]


def _row(result: Result, in_bytes: bool) -> dict[str, Any]:
    placement, bubble, memory = result.schedule.placement, result.timeline.bubble, result.memory
    peaks = memory.peak_bytes if in_bytes and memory.peak_bytes is not None else memory.peak_activation
    named = STRATEGIES.get(result.name)
    return {
        "placement": placement.name,
        "chunks": placement.chunks,
        "makespan": result.makespan,
        "bubble": bubble.idle_over_total,
        "peak": float(peaks.max()),
        "fullest": int(np.argmax(peaks)),
        "fits": result.fits,
        "bound": result.bound.value,
        "bound_reason": result.bound.reason,
        "from_costs": named is not None and named.looks_at_costs,
    }


def _costs(result: Result) -> dict[str, Any]:
    """What a rank does and holds for one microbatch, on average over the ranks: the same for every schedule."""
    costs, ranks = result.costs, result.schedule.ranks
    times = {"forward": costs.forward, "backward_input": costs.backward_input, "backward_weight": costs.backward_weight}
    return {
        **{name: float(values.sum()) / ranks for name, values in times.items()},
        "backward": float(costs.backward.sum()) / ranks,
        "even": all(bool(np.allclose(values, values[0])) for values in (*times.values(), costs.backward)),
        "transfer": costs.transfer.time(),
        "activation": float(costs.memory.activation.sum()) / ranks if costs.memory.in_bytes else None,
    }


def _notes(comparison: Comparison) -> list[str]:
    """What was assumed and what the reader should know, without being over the limit, which the table says."""
    warnings = (text for text in comparison.warnings if "over the memory limit: " not in text)
    return [*comparison.notes, *warnings]


def difference_report(found: Diff) -> Report:
    """The page of a run beside its plan: the plan's timeline above that of the run."""
    return Report(
        kind="difference",
        title=f"{one_line(found.planned.schedule.name) or 'the schedule'}: planned against measured",
        facts=_difference_facts(found),
        views=tuple(found.views()),
    )


def _difference_facts(found: Diff) -> dict[str, Any]:
    """The sentences and the table that the terminal shows, and each op's measured time over its planned one."""
    return {
        "unit": found.measured.unit,
        "of": f"of {found.measured_of}, the step of median length" if found.several else "",
        "sentences": list(found.sentences),
        "headings": list(headings_of(found)),
        "legend": LEGEND,
        "rows": [
            {
                "texts": list(texts),
                "notation": f"{each.stage}{each.kind}",
                "kind": each.kind,
                "stage": each.stage,
                "ops": each.ops,
                "planned": each.planned,
                "measured": each.measured,
                "ratio": each.measured / each.planned if each.planned else None,
                "effect": each.effect,
            }
            for each, texts in zip(found.kinds, table_of(found), strict=True)
        ],
        "ranks": [asdict(rank) for rank in found.ranks],
        "notes": list(found.notes),
        "reach": found.ratio_limit,
        "ratios": [packed(ratios.astype(np.float32)) for ratios in (found.ratios, found.ratios_in_run)],
    }
