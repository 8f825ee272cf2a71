"""Local search: simulated annealing of the order of forwards and backwards, from the best starts, in rounds.

A round anneals a few lineages for the same number of evaluations, at several temperatures; each goes on from the best of
its lineage, and the next round is twice as long. What a round does depends on the rounds before it and on the seed, not on
how many workers there are or how fast they are; so with a budget in evaluations the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeplan.kernels import Argument, Kernel
from pipeplan.solver.candidate import Candidate, Encoder
from pipeplan.solver.engines.annealing import WAITS, beginning, pieces
from pipeplan.solver.kernels.arrays import SEARCH_COMPILES_AFTER, AnnealingState
from pipeplan.solver.kernels.evaluate_kernel import MODULUS, anneal
from pipeplan.solver.run import Lineage, Run

_ANNEAL = Kernel(anneal, SEARCH_COMPILES_AFTER)

TASKS = 4
"""Annealings in a round."""

HEATS = (0.3, 1.0, 0.5, 2.0, 0.15, 1.0, 0.3)
HEAT = 15.0
COOLING = 20.0
"""Temperatures at which annealings start, in turn, in units of the mean time of an op times ``HEAT`` / positions; they end
at that divided by ``COOLING``. The more ops there are, the more of them can go wrong at one temperature."""

HOTTEST = 1.0
"""The highest temperature, in units of the mean time of an op."""

REACHES = ((3, 3, 3), (2, 2, 2), (3, 8, 24), (3, 3, 3), (5, 16, 5))
"""How far moves go, in places, stages and microbatches, in turn."""

LINEAGES = (0, 0, 1, 2, 0, 1, 3, 0, 2, 1, 4)
"""Which lineage, counted from the best, each annealing in turn goes on with; the best are more often among them."""

FIRST_ROUND = 500_000
"""Op evaluations of each annealing in the first round."""

SPREADS = (0.0, 0.1, 0.02)
"""How much the mean over the ranks counts beside the longest, in turn; see the kernel."""

CRITICAL = 10
"""Of 16 steps, how many start at an op of the longest chain: no other can make the schedule shorter on its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Annealing:
    """One task of a round: from where, how hot, how long, with which random numbers."""

    lineage: Lineage
    temperature: float
    reach: tuple[int, int, int]
    spread: float
    evaluations: int
    seed: int


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Anneals until the run is over.

    Attributes
    ----------
    until
        The share of the whole budget at which it stops; its first round may pass it.
    """

    until: float = 1.0

    def __call__(self, run: Run) -> None:
        """Search; needs a start."""
        if run.best is None:
            return
        bench = _Bench(run.encoder, next(self._tasks(run, 0, 0)))
        run.compile(_ANNEAL, bench.inputs(0), bench.outputs)
        for turn, length in run.rounds(TASKS, FIRST_ROUND // run.encoder.positions, self.until):
            tasks = list(self._tasks(run, turn, length))
            for task, (candidate, spent) in zip(tasks, run.map(lambda task: work(run, task), tasks), strict=True):
                run.budget.evaluations += spent
                run.offer(candidate, task.lineage.name, f"local search from {task.lineage.name}")
            run.report()

    def _tasks(self, run: Run, turn: int, length: int) -> Iterator[Annealing]:
        lineages = run.lineages
        for task in range(TASKS):
            count = TASKS * turn + task
            lineage = LINEAGES[count % len(LINEAGES)] % len(lineages)
            seed = int(run.random(2, turn, task).integers(1, MODULUS))
            left = run.budget.evaluations_left
            if left is not None:
                length = min(length, max(left - task * length, 0))
            yield Annealing(
                lineages[lineage],
                min(HEATS[count % len(HEATS)] * HEAT / run.encoder.positions, HOTTEST),
                REACHES[count % len(REACHES)],
                SPREADS[count % len(SPREADS)],
                length,
                seed,
            )


class _Bench:
    """The arrays with which the kernel carries out a task."""

    def __init__(self, encoder: Encoder, task: Annealing) -> None:
        self.encoder = encoder
        self.spread = task.spread
        self.cooling = COOLING ** (-1 / max(task.evaluations, 1))
        self.reach = np.array([*task.reach, int(encoder.overlaps), CRITICAL, int(encoder.may_run_full)], np.int64)
        decisions, self.best = task.lineage.candidate.copy().decisions, task.lineage.candidate.copy().decisions
        temperature = task.temperature * float(np.mean(encoder.flat.time))
        self.state = beginning(encoder, encoder.score(decisions, task.spread), temperature, task.seed)
        self.outputs = (decisions, self.best, self.state, encoder.room_for_change(), encoder.room_for_timing())

    def inputs(self, steps: int) -> tuple[Argument, ...]:
        """What the kernel takes for so many steps."""
        return self.encoder.flat, self.encoder.span, self.spread, steps, self.cooling, self.reach, WAITS


def work(run: Run, task: Annealing) -> tuple[Candidate, int]:
    """Anneal, and return the best candidate seen and the evaluations made; stops early when time is up."""
    bench, positions = _Bench(run.encoder, task), run.encoder.positions
    done = 0
    for steps in pieces(run.budget, task.evaluations, positions):
        _ANNEAL(bench.inputs(steps), bench.outputs, work=steps * positions)
        done += steps
        if _is_optimal(run, bench.state):
            break
    return run.encoder.evaluate(bench.best), done


def _is_optimal(run: Run, state: AnnealingState) -> bool:
    return bool(state.value[1] <= run.bound.value)
