"""Proofs on problems small enough for the exact solver: of the optimum, or of something better."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.extensions.search.engines.order_annealing import LocalSearch
from pipeplan.extensions.search.exact.engines import Exact, FewRanks
from pipeplan.extensions.search.exact.proof import can_prove, solver_seconds_left
from pipeplan.extensions.search.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyProof:
    """Proves the optimum of a tiny problem at once, which takes less than annealing.

    Attributes
    ----------
    largest
        Most ops of a problem that it tries.
    share, ops
        Share of the remaining budget that it may spend; with more ops than ``ops`` proportionally less.
    worth_seconds
        Seconds of the solver's work that this must allow.
    annealed_share
        Share of the budget for annealing first: a proof mostly shows that nothing beats its schedule.
    """

    largest: int = 400
    share: float = 0.5
    ops: int = 100
    worth_seconds: float = 0.02
    annealed_share: float = 0.05

    def __call__(self, run: Run) -> None:
        """Prove or search exactly; do nothing without OR-Tools."""
        # F, I and W of every stage and microbatch. The larger the problem, the less it may spend here.
        size = 3 * run.problem.placement.stages * run.problem.microbatches
        share = self.share * min(1.0, self.ops / size)
        worth = share * solver_seconds_left(run) >= self.worth_seconds
        if size <= self.largest and worth and can_prove(run):
            # A good schedule first: mostly the proof is then that nothing beats it.
            annealed = LocalSearch(until=run.budget.share + self.annealed_share)
            for engine in (annealed, FewRanks(share=share / 2), Exact(share=share, required=False)):
                if not run.is_over:
                    engine(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proving:
    """Anneals for a while, then proves over a few ranks and over all: a good schedule makes proofs fast.

    If the proof fails, the search goes on with other engines.

    Attributes
    ----------
    annealed_share, annealed_seconds
        Share of the budget that is annealed first, and the most seconds of it.
    few_share, share
        Share of the rest that goes into proofs over a few ranks, and of the rest after that, into one over all.
    large_share
        The share that goes into proofs over a few ranks where there are too many ops for one over all.
    worth_seconds
        Seconds of the solver's work that the budget must allow: with less it proves nothing, and annealing is the better
        use.
    """

    annealed_share: float = 0.1
    annealed_seconds: float = 2.0
    few_share: float = 0.3
    share: float = 0.6
    large_share: float = 0.2
    worth_seconds: float = 0.5

    def __call__(self, run: Run) -> None:
        """Search and prove; without OR-Tools, only search."""
        exact = Exact(share=self.share, required=False)
        small = 3 * run.problem.placement.stages * run.problem.microbatches <= exact.largest
        if self.share * solver_seconds_left(run) < self.worth_seconds:
            return
        if small:
            LocalSearch(until=min(self.annealed_share, run.budget.share_in(self.annealed_seconds)))(run)
        few = FewRanks(share=self.few_share if small else self.large_share)
        # Where ranks have one stage each the model of all has next to nothing to decide on: it proves before a few do.
        light = small and run.problem.placement.stages == run.problem.placement.ranks
        for engine in (exact, few) if light else (few, exact):
            if not run.is_over:
                engine(run)
