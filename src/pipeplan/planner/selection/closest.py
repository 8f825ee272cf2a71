"""What comes nearest where nothing fits, and the cheapest change with which something would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from typing import Any

from pipeplan.errors import PipeplanError
from pipeplan.files import GIBIBYTE
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.seconds import Factors
from pipeplan.planner.planned import ClosestMiss
from pipeplan.planner.selection.branching import Space
from pipeplan.planner.selection.candidates import as_configuration
from pipeplan.planner.selection.choices import short_name, written
from pipeplan.planner.selection.question import Question

MOST_ESTIMATES = 48
"""Of one search for the lowest peak: bounds on memory are close, so the first few decide."""

MORE_GPUS = (2, 4, 8, 16, 32, 64)
"""Factors on the nodes that are tried."""


def thriftiest(question: Question, calibration: Factors | None = None, *, must_fit: bool = False) -> Estimate | None:
    """The configuration with the lowest peak, or the first that fits; None where nothing is legal.

    Bounds on memory are estimated from the lowest on, until none is lower than the lowest peak.

    Parameters
    ----------
    must_fit
        Give None where nothing fits, and look at nothing whose parameters alone do not.
    """
    best: Estimate | None = None
    largest = question.memory_limit if must_fit else inf
    for least, configuration in islice(_by_memory(question, calibration, largest), MOST_ESTIMATES):
        if best is not None and (best.peak_bytes <= least or best.peak_bytes <= question.memory_limit):
            break
        try:
            found = estimate(
                question.model, question.cluster, configuration, calibration=calibration, with_error_bar=False
            )
        except PipeplanError:
            continue
        if best is None or found.peak_bytes < best.peak_bytes:
            best = found
    if must_fit and best is not None and best.peak_bytes > question.memory_limit:
        return None
    return best


def _by_memory(
    question: Question, calibration: Factors | None, largest: float
) -> Iterator[tuple[float, Configuration]]:
    """Configurations by the bound on their memory, up to the largest: of frames first, then of their variants."""
    space = Space.of(question, calibration)
    numbers = count()
    heap: list[tuple[float, int, object]] = []
    for frame in space.frames():
        bounds = space.bounds(frame)
        if bounds.state <= largest:
            heappush(heap, (bounds.state, next(numbers), (frame, bounds)))
    while heap:
        least, _, node = heappop(heap)
        if isinstance(node, Configuration):
            yield least, node
            continue
        frame, bounds = node  # type: ignore[misc]
        saving = _most_saving(space.savings(frame))
        if saving is None:
            continue
        for order in space.orders(frame):
            needed = bounds.bytes(order, saving["recompute"], saving["offload"])
            if needed <= largest:
                heappush(heap, (needed, next(numbers), as_configuration(question, {**frame, **order, **saving})))


def _most_saving(choices: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Whole layers computed again where that is legal, else most modules; and most of what is left moved away."""
    return max(
        choices,
        key=lambda each: ("full" in each["recompute"], len(each["recompute"]), each["offload"]),
        default=None,
    )


def closest_miss(question: Question, calibration: Factors | None = None) -> ClosestMiss | None:
    """The lowest peak of a question, and what would fit; None where nothing is legal."""
    lowest = thriftiest(question, calibration)
    if lowest is None:
        return None
    over = lowest.peak_bytes - question.memory_limit
    changes = list(islice(_changes(question, lowest, calibration), 2))
    return ClosestMiss(estimate=lowest, over_by=max(over, 0.0), change="; or ".join(changes))


def _changes(question: Question, lowest: Estimate, calibration: Factors | None) -> Iterator[str]:
    """Changes with which something fits, the cheapest first, each of an estimate."""
    yield from _without_fixed(question, calibration)
    whole = _with_all_moved(question, lowest, calibration)
    if whole is not None:
        yield f"moving all activations to the host needs {_gibibytes(whole)}"
    more = _on_more_gpus(question, calibration)
    if more is not None:
        yield f"{more.configuration.gpus:,} GPUs fit: {_degrees(more)} needs {_gibibytes(more)}"
    yield f"GPUs with {_gibibytes(lowest)} to allocate fit: {_degrees(lowest)}"
    shorter = _shorter(question, calibration)
    if shorter is not None:
        yield f"sequences of {shorter.configuration.sequence:,} tokens fit and need {_gibibytes(shorter)}"


def _without_fixed(question: Question, calibration: Factors | None) -> Iterator[str]:
    """One fixed choice less."""
    for field, values in question.fixed.items():
        rest = {name: fixed for name, fixed in question.fixed.items() if name != field}
        found = thriftiest(replace(question, fixed=rest), calibration, must_fit=True)
        if found is not None:
            name = short_name(field)
            value = written(field, getattr(found.configuration, field, ""))
            asked = ",".join(written(field, each) for each in values)
            yield f"{name}={value} in place of {name}={asked} fits and needs {_gibibytes(found)}"


def _with_all_moved(question: Question, lowest: Estimate, calibration: Factors | None) -> Estimate | None:
    if "offload" in question.fixed or lowest.configuration.software.startswith("torchtitan"):
        return None
    moved = replace(lowest.configuration, offload=1.0)
    found = estimate(question.model, question.cluster, moved, calibration=calibration, with_error_bar=False)
    return found if found.peak_bytes <= question.memory_limit else None


def _on_more_gpus(question: Question, calibration: Factors | None) -> Estimate | None:
    for factor in MORE_GPUS:
        cluster = replace(question.cluster, nodes=factor * question.cluster.nodes)
        fixed = {name: values for name, values in question.fixed.items() if name not in {"data"}}
        found = thriftiest(replace(question, cluster=cluster, fixed=fixed), calibration, must_fit=True)
        if found is not None:
            return found
    return None


def _shorter(question: Question, calibration: Factors | None) -> Estimate | None:
    sequence = question.sequence // 2
    while sequence >= 512:
        found = thriftiest(replace(question, sequence=sequence), calibration, must_fit=True)
        if found is not None:
            return found
        sequence //= 2
    return None


def _degrees(found: Estimate) -> str:
    here = found.configuration
    degrees = {"tp": here.tensor, "pp": here.pipeline, "cp": here.context, "dp": here.data, "ep": here.expert}
    return " ".join(f"{name}={degree}" for name, degree in degrees.items() if degree > 1) or "nothing split"


def _gibibytes(found: Estimate) -> str:
    return f"{found.peak_bytes / GIBIBYTE:.1f} GiB"
