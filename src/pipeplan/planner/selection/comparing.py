"""Whom the choice is compared with: configurations beside it, runners-up of other families, and the front."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import log2
from typing import Any

from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.planned import RunnerUp
from pipeplan.planner.selection.branching import Group, Opened, Space
from pipeplan.planner.selection.candidates import FRAME_FIELDS, VARIANT_FIELDS, as_configuration
from pipeplan.planner.selection.reasons import lost_because

MOST_NEIGHBOURS = 8
"""Frames beside the chosen one that are estimated."""

MOST_RUNNERS_UP = 8
"""That fit."""

MOST_OVER, NEAR = 2, 1.5
"""Runners-up that would be faster but do not fit, and how many times the limit they may need to be of interest."""

_DEGREES = ("tensor", "pipeline", "context", "data", "expert", "expert_tensor", "microbatch_size")


def neighbours(space: Space, chosen: Configuration, limit: float) -> Iterator[Configuration]:
    """What differs from the choice in one thing: every schedule, nothing saved, or degrees and microbatches twice or half.

    Of each other frame the variant with the lowest bound that may fit; where none may, none.
    """
    here = {name: getattr(chosen, name) for name in FRAME_FIELDS}
    near = sorted(
        (frame for frame in space.frames() if _apart(frame, here) <= 2), key=lambda frame: _apart(frame, here)
    )
    for number, frame in enumerate(islice(near, MOST_NEIGHBOURS)):
        opened = Opened.of(space, frame, space.bounds(frame), limit)
        groups = [group for order in space.orders(frame) if (group := Group(opened, order)).settle(limit)]
        yield from _best_of_each(groups, by_schedule=number == 0)
    order = {name: getattr(chosen, name) for name in VARIANT_FIELDS}
    for saving in space.savings(here):
        if not saving["offload"] and len(saving["recompute"]) < max(1, len(chosen.recompute)):
            yield as_configuration(space.question, {**here, **order, **saving})


def _apart(frame: dict[str, Any], here: dict[str, Any]) -> float:
    """How many doublings and halvings lie between two frames; far where they differ in more than numbers."""
    if any(frame[name] != here[name] for name in ("software", "precision")):
        return 99.0
    steps: float = sum(abs(log2(frame[name] / here[name])) for name in _DEGREES)
    return steps + float(frame["zero"] != here["zero"])


def _best_of_each(groups: Iterable[Group], *, by_schedule: bool) -> Iterator[Configuration]:
    best: dict[str, Group] = {}
    for group in groups:
        kind = group.order["schedule"] if by_schedule else ""
        if kind not in best or group.seconds < best[kind].seconds:
            best[kind] = group
    return (group.configuration for group in best.values())


def runners_up(
    known: Sequence[Estimate],
    best: Estimate,
    value: Callable[[Estimate], float],
    limit: float,
    deadline: float | None = None,
) -> tuple[RunnerUp, ...]:
    """The best of every family of degrees or schedule beside the choice, and what would be faster but does not fit."""
    fitting = sorted((each for each in known if each.peak_bytes <= limit), key=value)
    chosen: list[Estimate] = []
    seen, schedules = {_split(best)}, {best.configuration.schedule}
    for each in fitting:
        new = _split(each) not in seen or each.configuration.schedule not in schedules
        if new and value(each) >= value(best) and len(chosen) < MOST_RUNNERS_UP:
            chosen.append(each)
            seen.add(_split(each))
            schedules.add(each.configuration.schedule)
    near = [each for each in known if limit < each.peak_bytes <= NEAR * limit]
    over = sorted((each for each in near if value(each) < value(best)), key=value)
    families: dict[tuple[int, ...], Estimate] = {}
    for each in over:
        families.setdefault(_split(each), each)
    chosen += islice(families.values(), MOST_OVER)
    return tuple(RunnerUp(estimate=each, lost_because=lost_because(each, best, limit, deadline)) for each in chosen)


def _split(estimate: Estimate) -> tuple[int, ...]:
    """How a model is split; those that differ in microbatches and in numbers of context ranks alone are of one family."""
    here = estimate.configuration
    return here.gpus, here.tensor, here.pipeline, min(here.context, 2), here.expert, here.expert_tensor


def front(known: Iterable[Estimate], value: Callable[[Estimate], float], limit: float) -> tuple[Estimate, ...]:
    """Of what fits, those that no other beats in value and in peak memory; the best value first."""
    best: list[Estimate] = []
    for each in sorted(
        (each for each in known if each.peak_bytes <= limit), key=lambda each: (value(each), each.peak_bytes)
    ):
        if not best or each.peak_bytes < best[-1].peak_bytes:
            best.append(each)
    return tuple(best)
