"""What the search takes a candidate for, whole, in part, or with decisions, against a full simulation of its schedule."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from pipeplan.checking import check
from pipeplan.extensions.search import Problem
from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.extensions.search.engines.steps import local_moves
from pipeplan.extensions.search.kernels.arrays import Decisions, Reach, SearchWalk
from pipeplan.extensions.search.moves import MOVES, moves_for
from pipeplan.simulation import simulate
from tests.extensions.search.walks import annealed
from tests.torture import Found

CLOSE = 1e-12
"""The share by which sums in another order may differ."""


def moved(random: Random, problem: Problem, *, locally: bool = False) -> None:
    """Anneal by random moves, and hold what it ends with and the best on the way against the simulator and the checker.

    ``locally``: also by steps that are timed in part; these must lead to the same.
    """
    encoder = Encoder(problem)
    start = _start(random, encoder)
    moves = local_moves(encoder, MOVES) if locally else moves_for(encoder, MOVES)
    if not moves or not np.isfinite(start.value):
        return
    reach = Reach(places=random.randint(1, 4), stages=random.randint(1, 4), microbatches=random.randint(1, 4))
    heat = random.choice((0.1, 1.0, 10.0)) * float(problem.occupied.forward.mean())
    seed, steps = random.randrange(1, 2**20), random.choice((60, 200))
    options: dict[str, Any] = {"reach": reach, "heat": heat, "seed": seed, "steps": steps}
    whole = annealed(encoder, start, moves, **options)
    for decided, value in zip((whole.decisions, whole.best), whole.state.value, strict=True):
        _hold(encoder, decided, float(value), exactly=True)
    if locally:
        parts = annealed(encoder, start, moves, **options, how="in part")
        # Sums in another order differ in their last digits, and of two candidates that are equal another is then the best.
        exactly = bool((problem.costs.forward % 1 == 0).all())
        for decided, value in zip((parts.decisions, parts.best), parts.state.value, strict=True):
            _hold(encoder, decided, float(value), exactly=exactly)
        if exactly:
            _same(parts, whole)


def _start(random: Random, encoder: Encoder) -> Candidate:
    if random.random() < 0.3:
        return encoder.from_order(encoder.one_by_one())
    return list_schedule(encoder, earliest(encoder), random.choice((1.0, 10.0)))


def _hold(encoder: Encoder, decided: Decisions, value: float, *, exactly: bool) -> None:
    """A candidate is worth what its schedule takes, and its schedule is right."""
    problem = encoder.problem
    candidate = encoder.evaluate(decided)
    if abs(candidate.value - value) > (0.0 if exactly else CLOSE * value):
        raise Found(f"{problem}: steps led to {value}, and that is worth {candidate.value}")
    schedule = encoder.decode(candidate)
    report = check(schedule, memory=problem.memory_limit)
    if not report.valid:
        raise Found(f"{problem}: a candidate is not right: {report.problems[0]}")
    timeline = simulate(schedule, problem.costs, communication=problem.communication).timeline
    takes = problem.value(timeline)
    if abs(takes - value) > CLOSE * takes:
        raise Found(f"{problem}: a candidate is worth {value}, and its schedule takes {takes}")
    again = encoder.encode(schedule)
    if again.value > value * (1 + CLOSE):
        raise Found(f"{problem}: a schedule of {value} is read as one of {again.value}")
    if problem.bound.value > value * (1 + 1e-9):
        raise Found(f"{problem}: the bound is {problem.bound.value} ({problem.bound.reason}), and {value} is reached")


def _same(parts: SearchWalk, whole: SearchWalk) -> None:
    """Steps timed in part lead where steps lead that are timed whole."""
    if parts.state.random != whole.state.random or parts.state.value.tolist() != whole.state.value.tolist():
        raise Found(f"steps timed in part lead to {parts.state.value}, those timed whole to {whole.state.value}")
    for one, other in ((parts.decisions, whole.decisions), (parts.best, whole.best)):
        if not (np.array_equal(one.order, other.order) and np.array_equal(one.forced, other.forced)):
            raise Found("steps timed in part lead to another order than steps timed whole")
