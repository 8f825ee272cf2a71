"""Annealing of long runs on shorter ones: the steady middle is cut out, the rest annealed, the middle put back.

A long run idles while the pipeline fills and drains; in between, the same pattern repeats. With a few microbatches per rank
steps take a fraction of the time, and their gains hold for the whole run, whose middle is unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from pipeplan.model import Ints
from pipeplan.solver.candidate import Candidate, Encoder
from pipeplan.solver.engines.local_steps import local_moves
from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.kernels.arrays import Decisions
from pipeplan.solver.kernels.random_kernel import MODULUS
from pipeplan.solver.moves import MOVES
from pipeplan.solver.run import Run

NAME = "a shorter run"

EVERY = 12
"""Multiple in which microbatches are cut out, so that patterns of 2, 3, 4 and 6 of them stay whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A candidate of fewer microbatches, and the middle that was cut out of it.

    Attributes
    ----------
    short
        The candidate without its middle.
    places
        Position of each rank's middle; shape (ranks,).
    order, forced
        Each rank's middle: classes, and how many weight backwards must run before each.
    """

    short: Candidate
    places: Ints
    order: tuple[Ints, ...]
    forced: tuple[Ints, ...]

    def unfolded(self, encoder: Encoder, decisions: Decisions) -> Candidate:
        """Return a candidate of the short problem with the middle in its place again; no op may have passed ``places``."""
        order = _inserted(decisions.order, self.places, self.order)
        forced = _inserted(decisions.forced, self.places, self.forced)
        whole = encoder.decisions(order)
        whole.forced[:] = forced
        return encoder.evaluate(whole)


def fold(encoder: Encoder, candidate: Candidate, short: Encoder) -> Fold | None:
    """Cut microbatches out of a candidate's middle, so that as many stay as the short problem has.

    Between two moments in which every class runs just that many ops; None if there are no such moments.
    """
    cut = encoder.share - short.share
    value, timing = encoder.timed(candidate.decisions)
    if not np.isfinite(value):
        return None
    # Ops of each class that have run when the last class ends its k-th: a cut is possible between two such moments in
    # which every class has run exactly the same number of ops more.
    finish = timing.finish.reshape(encoder.classes, encoder.share)
    anchor = finish[encoder.topological[-1]]
    done = np.stack([np.searchsorted(row, anchor, side="right") for row in finish])
    fitting = np.flatnonzero((done[:, cut:] - done[:, :-cut] == cut).all(axis=0))
    if not fitting.size:
        return None
    # The last class runs late, so that the middle of the way is before the middle of its microbatches.
    moment = int(fitting[np.argmin(np.abs(anchor[fitting] + anchor[fitting + cut] - value))])
    return _folded(encoder, candidate.decisions, short, done[:, moment], done[:, moment + cut])


def _folded(encoder: Encoder, decisions: Decisions, short: Encoder, before: Ints, after: Ints) -> Fold:
    """Cut out the ops between ``before`` and ``after``, which count the ops of every class."""
    ranks = encoder.problem.placement.ranks
    # Each rank's middle: as many places as ops of its classes run between the two moments.
    starts, stops = (
        encoder.offsets[:-1] + np.bincount(encoder.rank_of, weights=done, minlength=ranks).astype(np.int64)
        for done in (before, after)
    )
    rows = list(pairwise(encoder.offsets.tolist()))
    kept = short.decisions(_without(decisions.order, rows, starts, stops))
    kept.forced[:] = _without(decisions.forced, rows, starts, stops)
    ends = list(zip(starts, stops, strict=True))
    return Fold(
        short=short.evaluate(kept),
        places=short.offsets[:-1] + starts - encoder.offsets[:-1],
        order=tuple(decisions.order[start:stop].copy() for start, stop in ends),
        forced=tuple(decisions.forced[start:stop].copy() for start, stop in ends),
    )


def _without(values: Ints, rows: list[tuple[int, int]], starts: Ints, stops: Ints) -> Ints:
    parts = [
        values[slice(*part)]
        for (first, last), start, stop in zip(rows, starts, stops, strict=True)
        for part in ((first, start), (stop, last))
    ]
    return np.concatenate(parts)


def _inserted(values: Ints, places: Ints, middles: tuple[Ints, ...]) -> Ints:
    parts = np.split(values, places)
    return np.concatenate([parts[0], *(part for pair in zip(middles, parts[1:], strict=True) for part in pair)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterRuns:
    """Anneals shorter runs made of the best lineages, and offers them at full length.

    Attributes
    ----------
    until
        The share of the whole budget at which it stops.
    turns
        Number of times that the best schedule so far is offered.
    microbatches
        Microbatches of a short run per rank.
    longer
        Least ratio of the microbatches of a run to those of the shorter one; runs below it are left alone.
    lineages
        Number of the best lineages that are shortened.
    """

    until: float = 0.7
    turns: int = 6
    microbatches: float = 2.25
    longer: float = 1.6
    lineages: int = 2

    def __call__(self, run: Run) -> None:
        """Run the search; do nothing if there is no shorter run to take moves from."""
        encoder = run.encoder.narrow
        if run.is_over or not local_moves(encoder, MOVES):
            return
        lineages = [lineage for lineage in run.lineages[: self.lineages] if lineage.schedule is None]
        for lineage, short in product(lineages, self._shorter(encoder)):
            candidate = Candidate(encoder.adopt(lineage.candidate.decisions), lineage.value)
            if (folded := fold(encoder, candidate, short)) is not None:
                self._search(run, short, folded, lineage.name)
                return

    def _shorter(self, encoder: Encoder) -> list[Encoder]:
        """Return problems of fewer microbatches, which differ by groups of 12 or by groups of as many as ranks."""
        ranks = encoder.problem.placement.ranks
        least = int(self.microbatches * ranks)
        # Two ways of rounding, so that patterns of either length stay whole.
        kept = {least + (encoder.share - least) % every for every in (EVERY, ranks)}
        return [
            Encoder(replace(encoder.problem, microbatches=share * encoder.copies))
            for share in sorted(kept)
            if encoder.share >= self.longer * share
        ]

    def _search(self, run: Run, short: Encoder, folded: Fold, name: str) -> None:
        """Anneal a short run in turns, and offer the best of each."""
        within = Run(
            short.problem, run.budget, seed=run.seed, workers=run.workers, report=lambda _: run.report_progress()
        )
        within.offer(folded.short, name, name)
        begin, least = run.budget.share, folded.short.value
        for turn in range(self.turns):
            # Each turn anneals on, from the best so far, with new random numbers.
            until = begin + (self.until - begin) * (turn + 1) / self.turns
            within.seed = int(run.random(3, turn).integers(1, MODULUS))
            LocalSearch(until=until, barrier=folded.places)(within)
            if within.best is not None and within.best.value < least:
                least = within.best.value
                whole = folded.unfolded(run.encoder.narrow, within.best.candidate.decisions)
                whole = run.encoder.evaluate(run.encoder.adopt(whole.decisions))
                run.offer(whole, f"{NAME} from {name}", f"local search of {NAME} from {name}")
            run.report_meanwhile()
