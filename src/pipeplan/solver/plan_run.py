"""The search for a plan: a part of a search whose schedules are judged by more than the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeplan.kernels import Argument, Kernel, Output
from pipeplan.model import Schedule
from pipeplan.simulation import Bound
from pipeplan.solver.candidate import Candidate
from pipeplan.solver.problem import Problem
from pipeplan.solver.result import Published
from pipeplan.solver.run import Lineage, Run

SHARE = 0.7
"""Of the budget, for the plan: what is gained on it is mostly gained in every run too, and costs a fraction."""

SHARE_WHERE_MESSAGES_MEET = 0.5
"""The same where transfers must meet, of which the plan knows nothing."""


class PlanRun(Run):
    """A search on the costs as they are and on transfers that delay and no more, within a part of another's budget.

    All that engines do for such a problem they do for this one. Whatever is the best of its lineage here is judged there; so
    the other search never ends with worse than what this one has found.

    Parameters
    ----------
    judged
        The search that this is a part of.
    """

    def __init__(self, judged: Run) -> None:
        problem = judged.problem
        meets = problem.communication == "blocking"
        plan = replace(problem, variation=None)
        if meets:
            plan = replace(plan, communication="edge", costs=problem.costs.meeting())
        part = judged.budget.part(SHARE_WHERE_MESSAGES_MEET if meets else SHARE)
        super().__init__(plan, part, seed=judged.seed, workers=judged.workers)
        self._whole = judged

    @property
    def is_over(self) -> bool:
        """Whether the part of the budget is spent, or there is nothing left to find, here or as it is judged."""
        return super().is_over or self._whole.is_over

    @property
    def original(self) -> Problem:
        """The problem of the whole search: costs of a plan may hold as transfers what messages take from their ranks."""
        return self._whole.problem

    @property
    def needs_no_start(self) -> bool:
        """Whether no schedule is better as it is judged, whatever the plan says."""
        return self._whole.needs_no_start

    @property
    def lacks_kernels(self) -> bool:
        """Whether the whole search goes on while a kernel is still being compiled."""
        return self._whole.lacks_kernels

    def take(self, lineage: Lineage) -> None:
        """Take a lineage if it is the best of its name, and have it judged then."""
        super().take(lineage)
        self._whole.take(lineage)

    def take_as_it_is(self, schedule: Schedule, name: str, candidate: Candidate) -> None:
        """Have a schedule judged as it stands."""
        self._whole.take_as_it_is(schedule, name, candidate)

    def take_published(self, schedule: Schedule, found: Published) -> None:
        """Take a published schedule, and have it judged."""
        super().take_published(schedule, found)
        self._whole.take_published(schedule, found)

    def raise_bound(self, bound: Bound) -> None:
        """Take a lower bound, which holds for what is judged too."""
        super().raise_bound(bound)
        self._whole.raise_bound(bound)

    def report(self) -> None:
        """Tell the listener how far the whole search is."""
        self._whole.report()

    def report_meanwhile(self) -> None:
        """Tell the listener if it was not told for a while."""
        self._whole.report_meanwhile()

    def compile(self, kernel: Kernel, inputs: Sequence[Argument], outputs: Sequence[Output]) -> None:
        """Have a kernel compiled for the whole search."""
        if not self.is_over:
            self._whole.compile(kernel, inputs, outputs)
