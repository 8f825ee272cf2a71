"""Local search by what a schedule takes in several runs at once: op times that vary, or a rank that is slow.

Each candidate is timed on the plan, which decides where its weight backwards stand, and then in every run. That takes as
many times as long as there are runs; hence a search spends a part of its budget on the plan alone, and goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pipeplan.solver.candidate import Encoder
from pipeplan.solver.engines.order_annealing import LocalSearch
from pipeplan.solver.result import SearchProgress
from pipeplan.solver.robustness import Scenarios
from pipeplan.solver.run import MOST_FINALISTS, Lineage, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustSearch:
    """Anneals by the values in all runs until the run is over, where ops vary and transfers need not meet.

    Attributes
    ----------
    annealing
        How it anneals.
    """

    annealing: LocalSearch = field(default_factory=LocalSearch)

    def __call__(self, run: Run) -> None:
        """Search; needs a start."""
        problem = run.problem
        if problem.variation is None or problem.communication == "blocking" or run.best is None:
            return
        plain = replace(problem, variation=None)
        encoder = Encoder(plain, Scenarios.of(problem))
        starts = [(each, encoder.evaluate(each.candidate.decisions)) for each in run.finalists]
        taken = {lineage.name: candidate.value for lineage, candidate in starts}

        def take(_: SearchProgress | None = None) -> None:
            for lineage in within.lineages[:MOST_FINALISTS]:
                if lineage.value < taken[lineage.name]:
                    taken[lineage.name] = lineage.value
                    _take(run, lineage)
            run.report_meanwhile()

        within = Run(plain, run.budget, seed=run.seed, workers=run.workers, report=take, encoder=encoder)
        within.raise_bound(run.bound_of_judged)
        for lineage, candidate in starts:
            within.offer(candidate, lineage.name, lineage.found_by)
        if within.best is not None:
            self.annealing(within)
            take()


def _take(run: Run, lineage: Lineage) -> None:
    """Take what was found by its values in all runs, as it is judged."""
    assert run.judge is not None
    candidate = run.encoder.evaluate(lineage.candidate.decisions)
    judged = run.judge(run.encoder.decode(candidate))
    name = lineage.found_by.replace("local search", "robust search")
    run.take_judged(Lineage(lineage.name, name, candidate, candidate.value, judged=judged))
