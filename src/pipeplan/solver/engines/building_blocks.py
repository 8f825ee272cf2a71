"""Building blocks: when one microbatch has its ops due, repeated for all of them.

A block is a table of times, one for each forward and each backward of a microbatch. Repeated every period, it says how
the kinds and stages of a rank interleave and how much is held (lifespan over period); a whole schedule, however many
microbatches it has, hangs on so few numbers. So it is the numbers that are annealed here. As in interleaved schedules,
microbatches may come in groups. As they repeat a block, ranks may go by the real times, or by a clock on which every op
takes one unit: the first knows the costs, the second leads to the even patterns of the published blocks.

After Qi, Wan, Amar, Lin: Pipeline Parallelism with Controllable Memory (2024), section 3; there blocks are enumerated in
whole units on a V, offsets being even over the ranks or over two halves of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeplan.kernels import Argument, Kernel, Output
from pipeplan.model import Floats
from pipeplan.solver.candidate import Candidate, Encoder
from pipeplan.solver.engines.annealing import WAITS, beginning, pieces
from pipeplan.solver.engines.list_scheduling import earliest
from pipeplan.solver.kernels.arrays import SEARCH_COMPILES_AFTER, Block, Decisions, FlatProblem, RankClocks, Route
from pipeplan.solver.kernels.block_kernel import anneal_block, repeat
from pipeplan.solver.kernels.evaluate_kernel import INFEASIBLE, MODULUS
from pipeplan.solver.run import Run

NAME = "building blocks"

_ANNEAL_BLOCK = Kernel(anneal_block, SEARCH_COMPILES_AFTER)
_REPEAT = Kernel(repeat, SEARCH_COMPILES_AFTER)

ISLANDS = 4
"""Blocks annealed in a round; each is a lineage of its own."""

SHARE = 0.35
"""The search goes on with something else when this much of its budget is spent."""

FIRST_ROUND = 2_000_000
"""Op evaluations of each annealing in the first round."""

HEATS = (1.0, 0.3, 3.0, 1.0)
COOLING = 30.0
"""Temperatures at which annealings start, in turn, in units of the mean op; they end at that divided by ``COOLING``."""

SPREAD = 0.02
"""How much the mean over the ranks counts beside the longest."""

SLACKS = (0.0, 0.0, 0.0, 0.5, 1.0)
"""Time between neighbouring ops of the first blocks beyond the least, in units of the mean op, drawn op by op."""

GROUPED = 0.3
"""The share of the first blocks whose microbatches come in groups, where ranks have several stages."""

REPEATED = 4
"""Repeating a block takes as long as evaluating this many ops for each of its ops."""

ENOUGH = 2
"""Blocks are annealed on so many microbatches a rank, since what more of them add is always the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Island:
    """One annealing of a round: from which block, at which pace, how hot, how long, with which random numbers."""

    name: str
    block: Block
    by_unit: bool
    temperature: float
    steps: int
    seed: int


@dataclass(frozen=True, slots=True)
class BuildingBlocks:
    """Anneals blocks from random ones, in rounds until one betters nothing, and offers what comes of each as a lineage.

    Attributes
    ----------
    until
        The share of the whole budget at which it stops.
    """

    until: float = SHARE

    def __call__(self, run: Run) -> None:
        """Search."""
        few = min(run.encoder.share, ENOUGH * run.problem.placement.ranks) * run.encoder.copies
        bench = Bench(Encoder(replace(run.problem, microbatches=few)))
        true_size = Bench(run.encoder)
        bench.compile(run, bench.island(run, 0, 0))
        for turn, steps in run.rounds(ISLANDS, FIRST_ROUND // bench.encoder.positions, self.until):
            before = run.best
            islands = [bench.island(run, ISLANDS * turn + number, steps) for number in range(ISLANDS)]
            found = run.map(lambda island: bench.anneal(run, island), islands)
            for island, (block, spent) in zip(islands, found, strict=True):
                run.budget.evaluations += spent
                run.offer(true_size.repeat(block, by_unit=island.by_unit), island.name, NAME)
            if run.best is before:
                return


class Bench:
    """The arrays of a problem on which blocks are tried."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        flat, ranks = encoder.flat, encoder.problem.placement.ranks
        follower = np.full(encoder.classes, -1)
        follower[flat.source[flat.source >= 0]] = np.flatnonzero(flat.source >= 0)
        self.route = Route(
            offsets=np.concatenate(([0], np.cumsum(np.bincount(encoder.rank_of, minlength=ranks)))),
            item=np.argsort(encoder.rank_of, kind="stable"),
            follower=follower,
            way=np.array(encoder.topological),
        )
        owes = flat.weight_time >= 0
        self.units = flat._replace(
            time=np.ones_like(flat.time),
            delay=np.zeros_like(flat.delay),
            weight_time=np.where(owes, 1.0, -1.0),
            full_time=np.where(owes, 2.0, 1.0),
        )
        times = encoder.total_times
        self.unit = float(times.sum() / np.count_nonzero(times) / 1.5) if times.any() else 1.0
        self.period = self._busiest(times)
        self.period_in_units = self._busiest(np.where(owes, 2.0, 1.0))

    def _busiest(self, times: Floats) -> float:
        """The work of the busiest rank for a microbatch."""
        return float(np.bincount(self.encoder.rank_of, weights=times).max())

    def island(self, run: Run, number: int, steps: int) -> Island:
        """A task of its own for each number; every other one goes by the unit clock."""
        random, by_unit = run.random(1, number), number % 2 == 1
        return Island(
            name=f"{NAME} {number + 1}",
            block=self._random_block(
                random,
                by_unit=by_unit,
                keep_weights=number // 2 % 2 == 1,
                full=self.encoder.may_run_full and (number // 2 + number // 4) % 2 == 1,
            ),
            by_unit=by_unit,
            temperature=HEATS[number % len(HEATS)],
            steps=steps,
            seed=int(random.integers(1, MODULUS)),
        )

    def _random_block(self, random: np.random.Generator, *, by_unit: bool, keep_weights: bool, full: bool) -> Block:
        """Ops follow each other directly, or with some slack; microbatches one by one, or in groups."""
        placement, copies = self.encoder.problem.placement, self.encoder.copies
        unit = self._pace(by_unit)[2]
        slack = random.choice(SLACKS, (copies, self.encoder.classes // copies)) * random.integers(3)
        due = earliest(self.encoder)
        if by_unit:
            due[self.route.way] = np.tile(np.arange(slack.shape[1]), copies)
        due[self.route.way] += unit * np.cumsum(slack, axis=1).ravel()
        grouped = placement.chunks > 1 and random.random() < GROUPED
        group = int(random.choice([2, max(placement.ranks // 2, 1), placement.ranks])) if grouped else 1
        return Block(due, np.array([1, 0, int(keep_weights), int(full), group]), np.array([unit]))

    def anneal(self, run: Run, island: Island) -> tuple[Block, int]:
        """The best block found and the evaluations made; stops early when time is up."""
        inputs, outputs, best = self._arrays(island)
        work, done = REPEATED * self.encoder.positions, 0
        for steps in pieces(run.budget, island.steps, work):
            _ANNEAL_BLOCK((*inputs, steps), outputs, work=steps * work)
            done += steps
        return best, done

    def compile(self, run: Run, island: Island) -> None:
        """Have the kernel compiled."""
        inputs, outputs, _ = self._arrays(island)
        run.compile(_ANNEAL_BLOCK, (*inputs, 0), outputs)

    def _arrays(self, island: Island) -> tuple[tuple[Argument, ...], tuple[Output, ...], Block]:
        """What the kernel takes, but for the number of steps; what it writes; and of that, the best block."""
        encoder = self.encoder
        block, trial, best = (_copy(island.block) for _ in range(3))
        value = min(self.repeat(block, by_unit=island.by_unit).value, INFEASIBLE)
        state = beginning(encoder, value, island.temperature * self.unit, island.seed)
        pace, period, unit = self._pace(island.by_unit)
        cooling = COOLING ** (-1 / max(island.steps, 1))
        rules = 4 if encoder.may_run_full else 3
        inputs = (
            encoder.flat,
            pace,
            self.route,
            encoder.share,
            period,
            unit,
            encoder.span,
            SPREAD,
            cooling,
            WAITS,
            rules,
        )
        return (
            inputs,
            (block, trial, best, self.decisions(), state, self.room_for_clocks(), encoder.room_for_timing()),
            best,
        )

    def repeat(self, block: Block, *, by_unit: bool) -> Candidate:
        """What comes of a block, as a candidate; of infinite value if the block gets stuck."""
        pace, period, _ = self._pace(by_unit)
        decisions = self.decisions()
        inputs = (self.encoder.flat, pace, self.route, self.encoder.share, period)
        outputs = (block, decisions, self.room_for_clocks(), self.encoder.room_for_timing())
        complete = _REPEAT(inputs, outputs, work=REPEATED * self.encoder.positions)
        return self.encoder.evaluate(decisions) if complete else Candidate(decisions, np.inf)

    def _pace(self, by_unit: bool) -> tuple[FlatProblem, float, float]:
        """The times to go by, the period, and the mean op."""
        return (self.units, self.period_in_units, 1.0) if by_unit else (self.encoder.flat, self.period, self.unit)

    def decisions(self) -> Decisions:
        """Room for an order."""
        return self.encoder.decisions(np.zeros(self.encoder.positions, np.int64))

    def room_for_clocks(self) -> RankClocks:
        """Room for what ranks are about."""
        ranks = self.encoder.problem.placement.ranks
        return RankClocks(np.zeros(ranks), np.zeros(ranks, np.int64), np.zeros(ranks, np.int64))


def _copy(block: Block) -> Block:
    return Block(block.due.copy(), block.style.copy(), block.inner.copy())
