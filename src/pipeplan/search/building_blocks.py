"""Building blocks: one microbatch's pattern of offsets, repeated with a period.

A microbatch runs through the stages with a slack between neighbouring stages and a gap wherever the way turns to the next
chunk or from forward to backward. The slack is the same for all stages of a chunk, or one for the first ranks and one for
the others. Repeated every period, the pattern says when each op is due, and its slacks decide how much is held (lifespan
over period). As in interleaved schedules, microbatches may come in groups. Patterns are drawn from a grid, the best of
them varied, and each is unrolled by list scheduling, which delays forwards that would not fit.

After Qi, Wan, Amar, Lin: Pipeline Parallelism with Controllable Memory (2024), section 3; there offsets are the same for
all costs, and memory follows from them. Here they are a start for the local search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeplan.search.arrays import Floats
from pipeplan.search.candidate import Candidate, Encoder
from pipeplan.search.list_scheduling import earliest, list_schedule
from pipeplan.search.run import Run

NAME = "building blocks"
SLACKS = np.array([0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0])
GAPS = np.array([0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0])
LEANS = np.array([0.0, 0.0, 0.0, 0.0, -0.1, 0.1])
"""In units of the mean op; what is repeated is drawn more often."""

PERIODS = np.array([1.0, 1.0, 1.0, 1.05, 1.1, 1.2])
"""In units of the work that the busiest rank has for a microbatch."""

INNER = np.array([0.25, 0.5, 1.0, 1.0, 1.5, 2.0])
"""Time between the microbatches of a group, in units of the mean op."""

GROUPED = 0.25
DIVIDED = 0.5
WHOLE = 0.5
"""Share of the patterns whose microbatches come in groups, whose slacks are divided, and whose offsets are whole."""

ISLANDS = 4
SAMPLES = 2000
LARGEST = 5_000_000
"""Populations, the patterns that each tries, and the most op evaluations that they may take."""

SHARE = 0.15
"""The search goes on with something else when this much of its budget is spent."""

ELITE = 20
VARIED = 0.7
"""How many of the best patterns, one of each value, are varied, and what share of the samples is made so."""

KEPT = 1
"""How many lineages the best patterns of a population found."""


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A building block.

    Attributes
    ----------
    slack
        Time between neighbouring stages beyond the least, shape (2, passes): for each pass over a chunk, forward then
        backward; on ranks before ``split``, and on the others.
    gap
        Time before each pass beyond the least, shape (passes,).
    lean
        How much earlier than that the ops of each pass are due, shape (passes,): small numbers, which settle ties.
    whole
        Whether what slacks and gaps add up to is cut to whole mean ops: a slack of a half then is one at every other stage.
    split
        A rank.
    period, group, inner
        Time a microbatch; microbatches come in groups, ``inner`` apart, and the next group after as many periods.
    """

    slack: Floats
    gap: Floats
    lean: Floats
    whole: bool
    split: int
    period: float
    group: int
    inner: float

    @classmethod
    def draw(cls, random: np.random.Generator, passes: int, ranks: int) -> Pattern:
        """A random one; now and then without any slack, without any gap, in groups, or divided."""
        slack = np.tile(random.choice(SLACKS, passes) * (random.random() < 0.7), (2, 1))
        split = 0
        if random.random() < DIVIDED:
            split = int(random.integers(ranks))
            slack[1] = random.choice(SLACKS, passes)
        gap = random.choice(GAPS, passes) * (random.random() < 0.8)
        group = int(random.choice([2, max(ranks // 2, 1), ranks])) if random.random() < GROUPED else 1
        lean = random.choice(LEANS, passes)
        return cls(
            slack,
            gap,
            lean,
            random.random() < WHOLE,
            split,
            float(random.choice(PERIODS)),
            group,
            float(random.choice(INNER)),
        )

    def varied(self, random: np.random.Generator) -> Pattern:
        """A copy with one slack, gap or lean drawn anew, and now and then the other numbers."""
        slack, gap, lean = self.slack.copy(), self.gap.copy(), self.lean.copy()
        passes = len(gap)
        place = int(random.integers(3 * passes))
        if place < passes:
            slack[int(random.integers(2)) if self.split else slice(None), place] = random.choice(SLACKS)
        elif place < 2 * passes:
            gap[place - passes] = random.choice(GAPS)
        else:
            lean[place - 2 * passes] = random.choice(LEANS)
        split = max(self.split + int(random.integers(-1, 2)), 1) if self.split else 0
        period = float(random.choice(PERIODS)) if random.random() < 0.3 else self.period
        inner = float(random.choice(INNER)) if random.random() < 0.3 else self.inner
        return Pattern(slack, gap, lean, self.whole, split, period, self.group, inner)


class BuildingBlocks:
    """Tries patterns, and offers the best few as lineages."""

    def __call__(self, run: Run) -> None:
        """Search."""
        unroll = _Unroll(run.encoder)
        for island in range(ISLANDS):
            for place, known in enumerate(self._island(run, unroll, island)[:KEPT]):
                run.offer(known.candidate, f"{NAME} {KEPT * island + place + 1}", NAME)

    def _island(self, run: Run, unroll: _Unroll, island: int) -> list[_Found]:
        """The best patterns of a population of its own."""
        random = run.random(1, island)
        found: list[_Found] = []
        for _ in range(max(min(SAMPLES, LARGEST // run.encoder.positions), 10)):
            if run.is_over or run.budget.share > SHARE:
                break
            if len(found) == ELITE and random.random() < VARIED:
                pattern = found[int(random.integers(ELITE))].pattern.varied(random)
            else:
                pattern = Pattern.draw(random, unroll.passes, unroll.ranks)
            candidate = unroll(pattern)
            run.budget.evaluations += 1
            if all(candidate.value != known.candidate.value for known in found):
                found = sorted([*found, _Found(pattern, candidate)], key=lambda known: known.candidate.value)[:ELITE]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A pattern and what it unrolls to."""

    pattern: Pattern
    candidate: Candidate


class _Unroll:
    """Turns patterns into candidates."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.chunks = encoder.instance.placement.chunks
        self.passes = 2 * self.chunks
        chunk = np.array(encoder.instance.placement.chunk_of).ravel()
        chunk_of = np.repeat(chunk, 2)
        self.earliest = earliest(encoder)
        self.pass_of = np.where(encoder.is_forward, chunk_of, self.passes - 1 - chunk_of)
        self.ranks = encoder.instance.placement.ranks
        times = encoder.total_times
        self.unit = float(times.sum() / np.count_nonzero(times) / 1.5)
        self.work = float(np.bincount(encoder.rank_of, weights=times).max())

    def __call__(self, pattern: Pattern) -> Candidate:
        period, inner = pattern.period * self.work, pattern.inner * self.unit
        return list_schedule(self.encoder, self._due(pattern), period, group=pattern.group, inner=inner)

    def _due(self, pattern: Pattern) -> Floats:
        """When the first microbatch's op of each class is due."""
        source = self.encoder.shop.source
        half = (self.encoder.rank_of >= pattern.split).astype(np.int64)
        turns = self.pass_of[source] != self.pass_of
        step = np.where(turns, pattern.gap[self.pass_of], pattern.slack[half, self.pass_of])
        extra = np.zeros(self.encoder.classes)
        for item in self.encoder.topological:
            if source[item] >= 0:
                extra[item] = extra[source[item]] + step[item]
        if pattern.whole:
            extra = np.floor(extra)
        return self.earliest + (extra - pattern.lean[self.pass_of]) * self.unit
