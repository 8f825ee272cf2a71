"""A plan as a picture: what is drawn of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pipeplan.api.configurations import degrees_in_words
from pipeplan.drawing.front import FrontView
from pipeplan.drawing.plan import PlanView
from pipeplan.files import GIBIBYTE

if TYPE_CHECKING:
    from pipeplan.api.plans import Plan
    from pipeplan.planner import Estimate

MOST_COMPARED = 6
"""Configurations whose step times are compared."""


def plan_view(plan: Plan) -> PlanView:
    """The front, the step's time of the first few, and the memory of the best one's ranks."""
    shown = plan.shown
    return PlanView(
        title=plan.heading,
        front=None if plan.best is None else _front(plan, plan.best),
        times=[
            (f"{place or 'best'}: {_label(found)}", asdict(found.time))
            for place, found in enumerate(shown[:MOST_COMPARED])
        ],
        memory=_memory(shown[0]) if shown else [],
        limit=plan.planned.memory_limit / GIBIBYTE,
    )


def _memory(found: Estimate) -> list[tuple[str, dict[str, float]]]:
    """Each rank's, in GiB."""
    return [
        (str(rank), {name: value / GIBIBYTE for name, value in asdict(held).items()})
        for rank, held in enumerate(found.memory)
    ]


def _front(plan: Plan, best: Estimate) -> FrontView:
    front = sorted(plan.planned.front or (best,), key=lambda found: found.peak_bytes)
    return FrontView(
        title="Step time against memory",
        memory_label="peak memory (GiB)",
        time_label="step (s)",
        points=[_place(found) for found in front],
        bounds=[],
        marks=[(str(place), *_place(runner.estimate)) for place, runner in enumerate(plan.planned.runners_up, start=1)],
        ours="no other is better in both",
        others="runners-up",
    )


def _label(found: Estimate) -> str:
    chosen = found.configuration
    chunks = f" v{chosen.chunks}" if chosen.chunks > 1 else ""
    schedule = f"\n{chosen.schedule}{chunks}" if chosen.pipeline > 1 else ""
    return f"{degrees_in_words(chosen)}{schedule}"


def _place(found: Estimate) -> tuple[float, float]:
    """Where a configuration stands in the picture of a front."""
    return found.peak_bytes / GIBIBYTE, found.step_time
