"""Proving: on problems small enough for the exact solver, the best is proven optimal, or something better is found."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.exact.engine import Exact
from pipeplan.solver.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Proving:
    """Anneals for a while, then runs the exact solver: that nothing beats a good schedule is shown the fastest.

    Where the proof does not come, the search goes on with something else.

    Attributes
    ----------
    annealed_share, annealed_seconds
        The share of the budget that is annealed first, and for how many seconds at most.
    share
        The share of what is then left that goes into the proof.
    worth_seconds
        Seconds of the solver's work that the budget must allow: with less it proves nothing, and annealing is the better
        use.
    """

    annealed_share: float = 0.1
    annealed_seconds: float = 2.0
    share: float = 0.6
    worth_seconds: float = 0.5

    def __call__(self, run: Run) -> None:
        """Search and prove; without OR-Tools, only search."""
        exact = Exact(share=self.share, required=False)
        small = 3 * run.problem.placement.stages * run.problem.microbatches <= exact.largest
        if small and exact.seconds_left(run) >= self.worth_seconds:
            LocalSearch(until=min(self.annealed_share, run.budget.share_in(self.annealed_seconds)))(run)
            if not run.is_over:
                exact(run)
