"""A plan as a picture: what is drawn of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice, product
from string import ascii_lowercase
from typing import TYPE_CHECKING

from pipeplan.api.planning.configurations import degrees_in_words
from pipeplan.drawing.front import FrontView
from pipeplan.drawing.plan import PlanView
from pipeplan.files import GIBIBYTE

if TYPE_CHECKING:
    from pipeplan.api.planning.plans import Plan
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
        (f"rank {rank}", {name: value / GIBIBYTE for name, value in asdict(held).items()})
        for rank, held in enumerate(found.memory)
    ]


def _front(plan: Plan, best: Estimate) -> FrontView:
    front = sorted(plan.planned.front or (best,), key=lambda found: found.peak_bytes)
    letters = _letters(len(front))
    names = ["best" if found.configuration == best.configuration else next(letters) for found in front]
    runners = [
        (str(place), _in_a_line(runner.estimate)) for place, runner in enumerate(plan.planned.runners_up, start=1)
    ]
    return FrontView(
        title="Step time against memory",
        memory_label="peak memory (GiB)",
        time_label="step time",
        points=[_place(found) for found in front],
        names=names,
        key=[*((name, _in_a_line(found)) for name, found in zip(names, front, strict=True)), *runners],
        unit="s",
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


def _in_a_line(found: Estimate) -> str:
    return _label(found).replace("\n", ", ")


def _letters(count: int) -> Iterator[str]:
    """Names of so many points: a to z, then aa, ab and so on."""
    words = ("".join(letters) for length in itertools.count(1) for letters in product(ascii_lowercase, repeat=length))
    return islice(words, count)


def _place(found: Estimate) -> tuple[float, float]:
    """Where a configuration stands in the picture of a front."""
    return found.peak_bytes / GIBIBYTE, found.step_time
