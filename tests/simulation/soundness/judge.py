"""One instance: is any bound of it above what a schedule reaches?"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from pipeplan.costs import Communication, Costs, Limits, Settings
from pipeplan.extensions.search import Choices, Problem
from pipeplan.foundation.errors import DeadlockError, InfeasibleError
from pipeplan.model import Placement, Schedule, Timeline
from pipeplan.passes import insert_communication
from pipeplan.simulation import Bound, located_windows, lower_bound, simulate, span_bound
from tests.extensions.search.independent_model import solve
from tests.extensions.search.random_cases import random_case
from tests.simulation.soundness.instances import Instance
from tests.simulation.soundness.witnesses import witnesses

WITHIN = 1e-9
"""Floats are compared to this share."""


def judge(instance: Instance, *, evaluations: int) -> list[str]:
    """Hold the bounds of an instance against every schedule at hand, and bounds at what these hold against themselves."""
    violations: list[str] = []
    bound = _bound(instance, instance.costs, instance.limits)
    for source, schedule in witnesses(instance, evaluations=evaluations):
        result = simulate(schedule, instance.costs)
        value = result.timeline.makespan
        if instance.objective == "span":
            value = result.timeline.longest_span
        held = result.memory.peak_activation if instance.limits.in_activations else result.memory.peak_bytes
        assert held is not None
        fits = bool((held <= instance.limits.values * (1 + WITHIN)).all())
        if fits:
            violations += _above(bound, value, f"{source} within the limits")
            if instance.split != "none":
                violations += _misplaced(bound, result.timeline, instance.costs, source)
            violations += _with_other_messages(instance, schedule, source)
        tight = _bound(instance, instance.costs, Limits(np.maximum(held, 1e-6), instance.limits.in_activations))
        violations += _above(tight, value, f"{source} at what it holds")
        violations += _above(_bound(instance, instance.costs, None), value, f"{source}, whatever it holds")
    return violations


def _with_other_messages(instance: Instance, schedule: Schedule, source: str) -> list[str]:
    """What is above the same schedule where messages queue on their links, or meet their ranks."""
    violations: list[str] = []
    ways: dict[Communication, Schedule] = {"contended": schedule, "blocking": insert_communication(schedule)}
    for communication, messages in ways.items():
        try:
            result = simulate(messages, instance.costs, communication=communication, limits=instance.limits)
        except DeadlockError:
            continue
        violations += _above(result.bound, result.timeline.makespan, f"{source}, {communication}")
    return violations


def _above(bound: Bound, value: float, what: str) -> list[str]:
    if bound.value <= value * (1 + WITHIN):
        return []
    return [f"the bound is {bound.value:.10g} ({bound.reason}), and {value:.10g} is reached by {what}"]


def _misplaced(bound: Bound, timeline: Timeline, costs: Costs, source: str) -> list[str]:
    """What is wrong with the windows of a bound on a schedule: they overlap, are too short, or idle too little.

    Where ops can take less than they do here, in a pair or as a full backward, the difference counts as idle time in the
    bound, and idle times cannot be compared.
    """
    trips = bound.round_trips
    if trips is None:
        return []
    result = located_windows(timeline, trips, costs)
    rounding = WITHIN * timeline.makespan
    short = [window for window in result if window.end - window.start < window.least_length - rounding]
    over = [one for one, other in pairwise(result) if one.end > other.start + rounding]
    idle = sum(window.idle for window in result)
    least = costs.occupied(timeline.schedule.placement, timeline.schedule.slices)
    halves = least.backward_input + least.backward_weight
    comparable = not costs.has_pair_times and bool((least.backward >= halves).all())
    busy = [window for window in result if window.idle < window.least_idle - rounding]
    if not short and not over and (not comparable or (not busy and idle >= trips.idle - rounding)):
        return []
    return [
        f"windows on {source} ({bound.reason}): {short} too short, {over} overlap, {busy} idle too little, "
        f"{idle:g} idle of {trips.idle:g}"
    ]


def _bound(instance: Instance, costs: Costs, limits: Limits | None) -> Bound:
    """The bound that an instance gets, with all of a backward in I where it may not be split."""
    if instance.split == "none":
        costs = costs.occupied(instance.placement, instance.slices).unsplit()
    bound = span_bound if instance.objective == "span" else lower_bound
    return bound(instance.placement, instance.microbatches, costs, slices=instance.slices, limits=limits)


def judged_case(seed: int, *, seconds: float) -> list[str]:
    """Hold the bounds of a small case against its exact answer, which knows nothing of pipeplan."""
    case = random_case(seed)
    answer = solve(case, seconds=seconds)
    placement, settings = Placement("custom", (case.rank_of,)), Settings(**case.settings())
    costs, limits = settings.costs(placement), settings.limits(placement)
    problem = Problem(placement, case.microbatches, costs, None, case.objective, Choices(split=case.split))
    violations: list[str] = []
    bounds = [problem.bound]
    try:
        bounds.append(replace(problem, limits=limits).bound)
    except InfeasibleError:
        if answer.reachable is not None:
            violations.append(
                f"nothing fits, it is said, and {float(answer.reachable):.10g} is reached by the exact model"
            )
    if answer.reachable is not None:
        value = float(answer.reachable)
        for bound in bounds:
            violations += _above(bound, value, "the exact model")
    return violations
