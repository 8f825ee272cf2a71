"""Local search: simulated annealing of the order of forwards and backwards, from the best starts, in rounds.

A round anneals a few lineages for the same number of evaluations, at several temperatures; each goes on from the best of
its lineage, and the next round is twice as long. What a round does depends on the rounds before it and on the seed, not on
how many workers there are or how fast they are; so with a budget in evaluations the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.engines.annealing import (
    beginning,
    ops_between_looks,
    step_options,
    walk_from,
)
from pipeplan.extensions.search.engines.steps import LocalSteps, WholeSteps, local_moves
from pipeplan.extensions.search.kernels.arrays import Reach
from pipeplan.extensions.search.kernels.random_kernel import MODULUS
from pipeplan.extensions.search.moves import MOVES, Move, moves_for
from pipeplan.extensions.search.run import Lineage, Run

Option = TypeVar("Option")


@dataclass(frozen=True, slots=True, eq=False)
class Annealing:
    """One annealing of a round: its start, temperature, reach, length and random seed.

    ``spread`` is the factor of the mean over the ranks that is added to the objective. Without ``weight_order`` Ws stay in
    the order of their Is, where that is how the lineage has them.
    """

    lineage: Lineage
    temperature: float
    reach: Reach
    spread: float
    evaluations: int
    seed: int
    weight_order: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSearch:
    """Anneals orders until the run is over. Options that are tuples are taken in turn, annealing after annealing.

    Attributes
    ----------
    until
        The share of the whole budget at which it stops; its first round may pass it.
    moves
        Moves that a step may make, each with its weight.
    tasks
        Annealings in a round.
    first_round
        Op evaluations of each annealing in the first round.
    heats, heat
        Temperatures at which annealings start, in units of the mean time of an op times ``heat`` / positions: the more ops
        there are, the more of them can go wrong at one temperature.
    hottest
        The highest temperature, in units of the mean time of an op.
    cooling
        Ratio of the temperatures at which annealings start and end.
    reaches
        Distances that moves go.
    spreads
        Factors of the mean over the ranks that are added to the objective.
    lineages
        Lineages, counted from the best, that annealings go on with; the best are more often among them.
    critical
        Number of 16 steps that start at an op of the longest chain: no other can make the schedule shorter on its own.
    weight_orders
        For each annealing, true if it also decides the order of owed Ws: its steps take several times as long.
    """

    until: float = 1.0
    moves: tuple[Move, ...] = MOVES
    tasks: int = 4
    first_round: int = 500_000
    heats: tuple[float, ...] = (0.3, 1.0, 0.5, 2.0, 0.15, 1.0, 0.3)
    heat: float = 15.0
    hottest: float = 1.0
    cooling: float = 20.0
    reaches: tuple[Reach, ...] = (
        Reach(places=3, stages=3, microbatches=3),
        Reach(places=2, stages=2, microbatches=2),
        Reach(places=3, stages=8, microbatches=24),
        Reach(places=3, stages=3, microbatches=3),
        Reach(places=5, stages=16, microbatches=5),
    )
    spreads: tuple[float, ...] = (0.0, 0.1, 0.02)
    lineages: tuple[int, ...] = (0, 0, 1, 2, 0, 1, 3, 0, 2, 1, 4)
    critical: int = 10
    weight_orders: tuple[bool, ...] = (False, False, True, False, False, False, True)

    def __call__(self, run: Run) -> None:
        """Anneal; needs a start."""
        if run.best is None or run.is_over:
            return
        for turn, length in run.rounds(self.tasks, self.first_round // run.encoder.positions, self.until):
            # Tasks of a round depend on the rounds before and the seed alone, so that answers repeat.
            tasks = list(self._tasks(run, turn, length))
            for task, (candidate, spent) in zip(
                tasks, run.map(lambda task: self._anneal(run, task), tasks), strict=True
            ):
                run.budget.evaluations += spent
                run.offer(candidate, task.lineage.name, f"local search from {task.lineage.name}")
            run.report_progress()

    def _tasks(self, run: Run, turn: int, length: int) -> Iterator[Annealing]:
        lineages = run.lineages
        for task in range(self.tasks):
            count = self.tasks * turn + task
            # The last round gets what is left of the evaluations, in full for its first tasks.
            left = run.budget.evaluations_left
            if left is not None:
                length = min(length, max(left - task * length, 0))
            yield Annealing(
                lineage=lineages[_in_turn(self.lineages, count) % len(lineages)],
                temperature=min(_in_turn(self.heats, count) * self.heat / run.encoder.positions, self.hottest),
                reach=_in_turn(self.reaches, count),
                spread=_in_turn(self.spreads, count),
                evaluations=length,
                seed=int(run.random(2, turn, task).integers(1, MODULUS)),
                weight_order=_in_turn(self.weight_orders, count),
            )

    def _anneal(self, run: Run, task: Annealing) -> tuple[Candidate, int]:
        """Anneal; return the best candidate and the evaluations made. Stops early when time is up."""
        steps = self._steps(run.encoder, task)
        done = 0
        while done < task.evaluations and not run.budget.out_of_time:
            done += steps.make(task.evaluations - done, ops_between_looks(run.budget, steps.kernel))
            # Optimal: nothing is left to be found.
            if steps.walk.state.value[1] <= run.bound.value:
                break
        return run.encoder.evaluate(run.encoder.adopt(steps.walk.best)), done

    def _steps(self, encoder: Encoder, task: Annealing) -> WholeSteps | LocalSteps:
        """Return the annealing of a task before its first step."""
        decisions = task.lineage.candidate.copy().decisions
        if not (task.weight_order or decisions.prefer.any()):
            encoder = encoder.narrow
        decisions = encoder.adopt(decisions)
        state = beginning(
            encoder,
            encoder.score(decisions, task.spread),
            temperature=task.temperature * float(np.mean(encoder.flat.time)),
            cooling=self.cooling,
            steps=task.evaluations,
            seed=task.seed,
        )
        moves, local = moves_for(encoder, self.moves), local_moves(encoder, self.moves)
        options = step_options(encoder, moves, task.reach, self.critical, encoder.target(task.spread))
        kind = LocalSteps if local else WholeSteps
        return kind(encoder, moves, options, walk_from(encoder, decisions, state))


def _in_turn(options: tuple[Option, ...], count: int) -> Option:
    return options[count % len(options)]
