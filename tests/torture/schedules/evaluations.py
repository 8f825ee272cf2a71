"""What the search takes a candidate for, whole, in part, or with decisions, against a full simulation of its schedule."""

from __future__ import annotations

from random import Random

import numpy as np

from pipeplan.checking import check
from pipeplan.extensions.search import Problem
from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.engines.annealing import WAITS, kernel_by
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.extensions.search.engines.local_steps import LocalSteps, Steps, local_moves
from pipeplan.extensions.search.kernels.annealing_kernel import annealing_by
from pipeplan.extensions.search.kernels.arrays import AnnealingState, Decisions, Reach
from pipeplan.extensions.search.moves import MOVES, Move, moves_for
from pipeplan.simulation import simulate
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
    how = (encoder, start, moves, reach, heat, random.randrange(1, 2**20), random.choice((60, 200)))
    decisions, best, state = _annealed(*how)
    for decided, value in ((decisions, state.value[0]), (best, state.value[1])):
        _hold(encoder, decided, float(value), exactly=True)
    if locally:
        parts = _annealed(*how, locally=True)
        # Sums in another order differ in their last digits, and of two candidates that are equal another is then the best.
        exactly = bool((problem.costs.forward % 1 == 0).all())
        for decided, value in ((parts[0], parts[2].value[0]), (parts[1], parts[2].value[1])):
            _hold(encoder, decided, float(value), exactly=exactly)
        if exactly:
            _same(parts, (decisions, best, state))


def _start(random: Random, encoder: Encoder) -> Candidate:
    if random.random() < 0.3:
        return encoder.from_order(encoder.one_by_one())
    return list_schedule(encoder, earliest(encoder), random.choice((1.0, 10.0)))


def _annealed(
    encoder: Encoder,
    start: Candidate,
    moves: tuple[Move, ...],
    reach: Reach,
    heat: float,
    seed: int,
    steps: int,
    *,
    locally: bool = False,
) -> tuple[Decisions, Decisions, AnnealingState]:
    decisions, best = start.copy().decisions, start.copy().decisions
    value = encoder.score(decisions, 0.0)
    state = AnnealingState(np.full(2, value), np.array([heat, 0.999]), np.array([seed]), encoder.empty_chain())
    if locally:
        how = Steps(moves=moves, reach=reach, critical=10, target=encoder.target())
        local, done = LocalSteps(encoder, how, decisions, best, state), 0
        while done < steps:
            done += local.make(min(steps - done, 70))
        return decisions, best, state
    weights = np.array([move.weight for move in moves], np.int64)
    inputs = (encoder.flat, weights, reach, 10, encoder.target(), WAITS, steps)
    outputs = (decisions, best, state, encoder.empty_change(), encoder.empty_timing())
    kernel_by(annealing_by, moves, encoder.evaluator.function)(inputs, outputs, work=0)
    return decisions, best, state


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


def _same(
    parts: tuple[Decisions, Decisions, AnnealingState], whole: tuple[Decisions, Decisions, AnnealingState]
) -> None:
    """Steps timed in part lead where steps lead that are timed whole."""
    if parts[2].random != whole[2].random or parts[2].value.tolist() != whole[2].value.tolist():
        raise Found(f"steps timed in part lead to {parts[2].value}, those timed whole to {whole[2].value}")
    for one, other in zip(parts[:2], whole[:2], strict=True):
        if not (np.array_equal(one.order, other.order) and np.array_equal(one.forced, other.forced)):
            raise Found("steps timed in part lead to another order than steps timed whole")
