"""Local search on simulated run time: with messages that run in order on streams, and collectives.

A candidate's value includes neither. So each candidate whose value does not rule it out is made a schedule and judged:
simulated with its messages and collectives. With messages, every other step decides when results are sent and received, and
leaves the order as it is. That takes a few hundred times as long as a value does; hence a search spends a part of its budget
on values first, and goes on from what it has found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.engines.annealing import WAITS, beginning, step_options, walk_from
from pipeplan.extensions.search.exchange import Exchange
from pipeplan.extensions.search.kernels.annealing_kernel import next_candidate
from pipeplan.extensions.search.kernels.arrays import Decisions, Reach
from pipeplan.extensions.search.kernels.random_kernel import MODULUS
from pipeplan.extensions.search.moves import MOVES, Move, moves_for
from pipeplan.extensions.search.moves.outside import run_with
from pipeplan.extensions.search.run import Lineage, Run
from pipeplan.foundation.kernels import Argument, Kernel

_NEXT_CANDIDATE = Kernel(next_candidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSearch:
    """Anneals by judged values until the run is over; does nothing for a problem whose schedules are not judged.

    Options that are rows are taken in turn, annealing after annealing.

    Attributes
    ----------
    counts
        Number of evaluations of a budget that judging a schedule counts as.
    moves
        Moves that a step may make, each with its weight.
    first_round
        Judged candidates of each annealing in the first round of four; later rounds are twice as long.
    heats, heat, cooling, reaches, critical
        As in :class:`~pipeplan.extensions.search.LocalSearch`.
    lineages
        Lineages, counted from the best judged one, that annealings go on with.
    tries
        Moves that are tried for one candidate that is worth being judged.
    """

    counts: int = 20
    moves: tuple[Move, ...] = MOVES
    first_round: int = 100
    heats: tuple[float, ...] = (0.1, 0.3, 0.05, 0.6)
    heat: float = 15.0
    cooling: float = 20.0
    reaches: tuple[Reach, ...] = (
        Reach(places=3, stages=3, microbatches=3),
        Reach(places=2, stages=2, microbatches=2),
        Reach(places=3, stages=8, microbatches=24),
    )
    lineages: tuple[int, ...] = (0, 1, 0, 2, 0, 3)
    critical: int = 10
    tries: int = 200

    def __call__(self, run: Run) -> None:
        """Run the search; do nothing if no schedule is judged or none has been found yet."""
        if not run.problem.is_judged or run.best is None:
            return
        turn = 0
        while not run.is_over:
            finalists = run.finalists
            lineage = finalists[self.lineages[turn % len(self.lineages)] % len(finalists)]
            steps, left = self.first_round << min(turn // 4, 8), run.budget.evaluations_left
            if left is not None:
                steps = min(steps, -(-left // self.counts))
            if not self._anneal(run, lineage, turn, steps):
                return
            turn += 1

    def _anneal(self, run: Run, lineage: Lineage, turn: int, steps: int) -> bool:
        """Anneal from a lineage, and take each candidate that is judged better than all before it.

        False where no move leads anywhere.
        """
        problem, encoder = run.problem, run.encoder
        random = run.random(5, turn)
        proposals = _Proposals(
            self, encoder, lineage.candidate, self.reaches[turn % len(self.reaches)], int(random.integers(1, MODULUS))
        )
        exchange = lineage.exchange or Exchange.at_once(problem)
        # The start as it is judged; a temperature in units of the mean op.
        start = encoder.decode(lineage.candidate)
        current = best = problem.judge(exchange.completed(start, problem))
        unit = float(np.mean(encoder.flat.time)) * min(
            self.heats[turn % len(self.heats)] * self.heat / encoder.positions, 1
        )
        name = f"judged search from {lineage.name}"
        for step in range(steps):
            if run.is_over:
                break
            # The limit is drawn before the candidate is known, as in the annealing kernel.
            temperature = unit * self.cooling ** (-step / steps)
            limit = current + temperature * WAITS[int(random.integers(len(WAITS)))]
            kept, later = proposals.candidate.copy().decisions, exchange
            # With messages, every other step changes when a result is sent; else the order.
            if problem.holds_messages and random.integers(2):
                later = exchange.moved(random)
            elif not proposals.next(limit, self.tries):
                return step > 0
            left = run.budget.evaluations_left
            run.budget.evaluations += self.counts if left is None else min(self.counts, left)
            candidate = proposals.candidate
            schedule = later.completed(encoder.decode(candidate), problem)
            judged = problem.judge(schedule)
            # Not accepted: back to the candidate before.
            if judged > limit:
                proposals.go_back(kept)
                continue
            current, exchange = judged, later
            if judged < best:
                best = judged
                run.take_judged(
                    Lineage(lineage.name, name, candidate.copy(), candidate.value, schedule, judged, exchange)
                )
            run.report_meanwhile()
        return True


class _Proposals:
    """A candidate that is changed move by move, and its kernel arrays."""

    def __init__(self, options: JudgedSearch, encoder: Encoder, start: Candidate, reach: Reach, seed: int) -> None:
        self._encoder = encoder
        moves = moves_for(encoder, options.moves)
        self._options = step_options(encoder, moves, reach, options.critical, encoder.target())
        self.kernel = run_with(_NEXT_CANDIDATE, moves)
        state = beginning(encoder, start.value, temperature=0.0, cooling=1.0, steps=1, seed=seed)
        self._walk = walk_from(encoder, start.copy().decisions, state)
        self.outputs = (self._walk, encoder.empty_timing())

    @property
    def candidate(self) -> Candidate:
        """The current candidate; its arrays change."""
        return Candidate(self._walk.decisions, float(self._walk.state.value[0]))

    def inputs(self, limit: float, tries: int) -> tuple[Argument, ...]:
        """Return the kernel's inputs."""
        return self._encoder.flat, self._options, limit, tries

    def next(self, limit: float, tries: int) -> bool:
        """Change to a candidate whose value is at most ``limit``; false if no move leads to one."""
        return bool(self.kernel(self.inputs(limit, tries), self.outputs))

    def go_back(self, kept: Decisions) -> None:
        """Restore the decisions."""
        for array, before in zip(self._walk.decisions, kept, strict=True):
            array[...] = before
