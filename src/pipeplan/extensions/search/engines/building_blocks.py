"""Building blocks: due times of one microbatch's ops, repeated for all microbatches.

A block is a table of times, one for each forward and each backward of a microbatch. Repeated every period, it says how
the kinds and stages of a rank interleave and how much is held (lifespan over period); a whole schedule, however many
microbatches it has, depends on these few numbers, so they are annealed here. As in interleaved schedules,
microbatches may come in groups. Where memory is short a block may be of several microbatches, each with its own times:
what one leaves idle another can use, and the steady state gets shorter than any that repeats after each microbatch. As
they repeat a block, ranks may go by the real times, or by a clock on which every op takes one unit: the first knows the
costs, the second leads to the even patterns of the published blocks.

After Qi, Wan, Amar, Lin: Pipeline Parallelism with Controllable Memory (2024), section 3; there blocks are enumerated in
whole units on a V, offsets being even over the ranks or over two halves of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.engines.annealing import WAITS, beginning, ops_between_looks
from pipeplan.extensions.search.engines.list_scheduling import earliest
from pipeplan.extensions.search.kernels.arrays import AnnealingState
from pipeplan.extensions.search.kernels.block_kernel import (
    DRAWS_FORWARDS,
    KEEPS_WEIGHTS,
    RUNS_FULL,
    Beat,
    Block,
    BlockOptions,
    BlockPlan,
    Blocks,
    RankClocks,
    Repeated,
    Route,
    anneal_block,
    repeat,
)
from pipeplan.extensions.search.kernels.random_kernel import MODULUS
from pipeplan.extensions.search.kernels.timing_kernel import INFEASIBLE
from pipeplan.extensions.search.run import Run
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Floats

NAME = "building blocks"


_ANNEAL_BLOCK = Kernel(anneal_block)
_REPEAT = Kernel(repeat)

REPEATED = 4
"""Cost of repeating a block, in evaluations of a candidate."""


@dataclass(frozen=True, slots=True, eq=False)
class Island:
    """One annealing of a round: its block, pace, temperature, length and random seed."""

    name: str
    block: Block
    by_unit: bool
    temperature: float
    steps: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildingBlocks:
    """Anneals random blocks, in rounds until one improves nothing, and offers the schedule of each block as a lineage.

    Attributes
    ----------
    until, at_least
        The share of the whole budget at which it stops: the search goes on with something else. Where published schedules
        took more of the seconds than that, the share that it has nevertheless.
    islands
        Blocks annealed in a round; each is its own lineage.
    first_round
        Op evaluations of each annealing in the first round.
    heats
        Temperatures at which annealings start, in turn, in units of the mean op.
    cooling
        Ratio of the temperatures at which annealings start and end.
    spread
        Factor of the mean over the ranks that is added to the objective.
    slacks
        Time between neighbouring ops of the first blocks beyond the least, in units of the mean op, drawn op by op.
    grouped
        The share of the first blocks whose microbatches come in groups, where ranks have several stages.
    microbatches
        Microbatches per rank on which blocks are annealed: what more of them add is always the same.
    least_steps
        Least number of steps of a first round; below it blocks are left alone, as they have too many numbers to vary.
    several, tight
        Microbatches of a block, in turn, where the ranks hold at least the share ``tight`` of their limits
        throughout if none is ever idle; elsewhere it is of one, which has the fewest numbers to find.
    """

    until: float = 0.35
    at_least: float = 0.2
    islands: int = 4
    first_round: int = 2_000_000
    heats: tuple[float, ...] = (1.0, 0.3, 3.0, 1.0)
    cooling: float = 30.0
    spread: float = 0.02
    slacks: tuple[float, ...] = (0.0, 0.0, 0.0, 0.5, 1.0)
    grouped: float = 0.3
    microbatches: int = 2
    least_steps: int = 100
    several: tuple[int, ...] = (3, 3, 3, 1)
    tight: float = 0.75

    def __call__(self, run: Run) -> None:
        """Search; do nothing if microbatches differ, of which no block is the next one's."""
        if run.is_over or run.encoder.varies:
            return
        small, true = self._repeaters(run)
        if self.first_round // small.encoder.positions < self.least_steps:
            return
        until = self.until
        if run.budget.limit_seconds is not None:
            until = max(until, run.budget.share + self.at_least)
        for turn, steps in run.rounds(self.islands, self.first_round // small.encoder.positions, until):
            # Every annealing is its own island; a round that improves nothing is the last.
            before = run.best
            islands = [self._island(run, small, self.islands * turn + number, steps) for number in range(self.islands)]
            self._anneal_all(run, small, true, islands)
            if run.best is before:
                return

    def _repeaters(self, run: Run) -> tuple[BlockRepeater, BlockRepeater]:
        """Return what repeats blocks on few microbatches, to anneal them, and at full length, to offer them.

        What more microbatches add is always the same.
        """
        few = min(run.encoder.share, self.microbatches * run.problem.placement.ranks) * run.encoder.copies
        return BlockRepeater(Encoder(replace(run.problem, microbatches=few))), BlockRepeater(run.encoder)

    def _anneal_all(self, run: Run, small: BlockRepeater, true: BlockRepeater, islands: list[Island]) -> None:
        annealed = run.map(lambda island: self._anneal(run, small, island), islands)
        for island, (block, spent) in zip(islands, annealed, strict=True):
            run.budget.evaluations += spent
            run.offer(true.repeat(block, by_unit=island.by_unit), island.name, NAME)

    def _island(self, run: Run, repeater: BlockRepeater, number: int, steps: int) -> Island:
        """Return the annealing of this number, from a random block: ops in sequence, some with slack, alone or in groups."""
        # Bits of the number choose the clock, whether Ws stay, and full backwards: eight islands have every combination.
        random, by_unit = run.random(1, number), number % 2 == 1
        encoder, way = repeater.encoder, repeater.route.way
        placement, unit = encoder.problem.placement, repeater.plan(by_unit).beat.unit
        lengths = self.several if repeater.fullness >= self.tight else (1,)
        several = lengths[number % len(lengths)]
        # The due times of a microbatch that is alone, and slack between neighbouring ops.
        slack = random.choice(self.slacks, (encoder.copies, encoder.classes // encoder.copies)) * random.integers(3)
        due = earliest(encoder)
        if by_unit:
            due[way] = np.tile(np.arange(slack.shape[1]), encoder.copies)
        due[way] += unit * np.cumsum(slack, axis=1).ravel()
        # Groups of two, of half as many as ranks, or of as many as ranks, which is the group of interleaved schedules.
        grouped = placement.chunks > 1 and random.random() < self.grouped and several == 1
        group = int(random.choice([2, max(placement.ranks // 2, 1), placement.ranks])) if grouped else 1
        block = block_of(
            np.repeat(due, several),
            draws_forwards=True,
            keeps_weights=number // 2 % 2 == 1,
            runs_full=encoder.may_run_full and (number // 2 + number // 4) % 2 == 1,
            several=several,
            group=group,
            inner=unit,
        )
        return Island(
            name=f"{NAME} {number + 1}",
            block=block,
            by_unit=by_unit,
            temperature=self.heats[number % len(self.heats)],
            steps=steps,
            seed=int(random.integers(1, MODULUS)),
        )

    def _anneal(self, run: Run, repeater: BlockRepeater, island: Island) -> tuple[Block, int]:
        """Anneal a block; return the best one and the evaluations made. Stops early when time is up."""
        inputs, outputs = self._arrays(repeater, island)
        work, done = REPEATED * repeater.encoder.positions, 0
        kernel = _ANNEAL_BLOCK
        while done < island.steps and not run.budget.out_of_time:
            steps = min(max(ops_between_looks(run.budget, kernel) // work, 1), island.steps - done)
            kernel((*inputs, steps), outputs)
            done += steps
        return outputs[0].best, done

    def _arrays(
        self, repeater: BlockRepeater, island: Island
    ) -> tuple[tuple[BlockPlan, BlockOptions], tuple[Blocks, AnnealingState, Repeated]]:
        """Return the kernel's inputs without the number of steps, and its outputs."""
        encoder = repeater.encoder
        begun = repeater.repeat(island.block, by_unit=island.by_unit)
        value = encoder.score(begun.decisions, self.spread) if np.isfinite(begun.value) else INFEASIBLE
        state = beginning(
            encoder,
            value,
            temperature=island.temperature * repeater.unit,
            cooling=self.cooling,
            steps=island.steps,
            seed=island.seed,
        )
        # Variations toggle rules below this number: the rule of full backwards, the last one, only where these can gain.
        rules = 1 + (RUNS_FULL if encoder.may_run_full else KEEPS_WEIGHTS)
        options = BlockOptions(rules, encoder.narrow_evaluator, encoder.target(self.spread), WAITS)
        blocks = Blocks(*(_copy(island.block) for _ in range(3)))
        return (repeater.plan(island.by_unit), options), (blocks, state, repeater.empty())


class BlockRepeater:
    """Repeats blocks on a problem, and holds the arrays for it.

    Attributes
    ----------
    encoder, route
        The problem as the kernels take it.
    unit
        The mean time of an op.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        flat, ranks = encoder.flat, encoder.problem.placement.ranks
        self.route = Route(
            offsets=np.concatenate(([0], np.cumsum(np.bincount(encoder.rank_of, minlength=ranks)))),
            on_rank=np.argsort(encoder.rank_of, kind="stable"),
            way=np.array(encoder.topological),
        )
        owes = flat.weight_time >= 0
        # The clock of units: every op takes one, a full backward two, and transfers none.
        units = flat._replace(
            time=np.ones_like(flat.time),
            delay=np.zeros_like(flat.delay),
            weight_time=np.where(owes, 1.0, -1.0),
            full_time=np.where(owes, 2.0, 1.0),
        )
        times = encoder.total_times
        # A forward, an I and a W are three ops in two classes: 1.5 ops a class.
        self.unit = float(times.sum() / np.count_nonzero(times) / 1.5) if times.any() else 1.0
        true_beat = Beat(encoder.share, self._busiest(times), self.unit)
        unit_beat = Beat(encoder.share, self._busiest(np.where(owes, 2.0, 1.0)), 1.0)
        self._true_plan = BlockPlan(flat, flat, self.route, true_beat)
        self._unit_plan = BlockPlan(flat, units, self.route, unit_beat)

    @cached_property
    def fullness(self) -> float:
        """Estimate the mean memory of the fullest rank if no rank idles, as a share of its limit, by Little's law (1961).

        Every microbatch holds each stage's activation for its way to the last stage and back at least.
        """
        encoder = self.encoder
        flat, starts, period = encoder.flat, earliest(encoder), self._true_plan.beat.period
        ends = starts + flat.time + np.maximum(flat.weight_time, 0.0)
        # Little's law: mean memory = memory of a microbatch times its lifespan / period.
        area = np.bincount(encoder.rank_of[::2], weights=flat.growth[::2] * (ends[1::2] - starts[::2]))
        room = encoder.problem.memory_limit.limit * max(period, np.finfo(np.float64).tiny)
        return float(np.divide(area, room, out=np.zeros(len(area)), where=room > 0).max())

    def _busiest(self, times: Floats) -> float:
        return float(np.bincount(self.encoder.rank_of, weights=times).max())

    def plan(self, by_unit: bool) -> BlockPlan:
        """Return what the kernel takes, at the pace of the true times or at that of one unit for each op."""
        return self._unit_plan if by_unit else self._true_plan

    def repeat(self, block: Block, *, by_unit: bool) -> Candidate:
        """Return the candidate that a block makes; its value is infinite if the block gets stuck."""
        repeated = self.empty()
        complete = _REPEAT((self.plan(by_unit),), (block, repeated))
        decisions = repeated.decisions
        return self.encoder.evaluate(decisions) if complete else Candidate(decisions, np.inf)

    def empty(self) -> Repeated:
        """Return empty arrays for what repeating a block writes."""
        encoder, ranks = self.encoder, self.encoder.problem.placement.ranks
        decisions = encoder.decisions(np.zeros(encoder.positions, np.int64))
        clocks = RankClocks(np.zeros(ranks), np.zeros(ranks, np.int64), np.zeros(ranks, np.int64))
        return Repeated(decisions, clocks, encoder.empty_timing())


def block_of(
    due: Floats,
    *,
    draws_forwards: bool = False,
    keeps_weights: bool = False,
    runs_full: bool = False,
    several: int = 1,
    group: int = 1,
    inner: float = 0.0,
) -> Block:
    """Return a block of these due times, shape (classes * several,), and rules; see ``kernels.block_kernel.Block``."""
    rules = np.zeros(4, np.int64)
    rules[DRAWS_FORWARDS] = draws_forwards
    rules[KEEPS_WEIGHTS] = keeps_weights
    rules[RUNS_FULL] = runs_full
    return Block(due, rules, np.array([several]), np.array([group]), np.array([inner]))


def _copy(block: Block) -> Block:
    due, rules, several, group, inner = block
    return Block(due.copy(), rules.copy(), several.copy(), group.copy(), inner.copy())
