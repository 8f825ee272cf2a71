"""Proofs over a few ranks against the independent model: does the exact model of these ranks admit what can be reached?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any

from ortools.sat.python import cp_model

from pipeplan.answers.arguments import configured
from pipeplan.extensions.search import Problem
from pipeplan.extensions.search.answers.options import ScheduleSearchOptions
from pipeplan.extensions.search.answers.problems import problem_of
from pipeplan.extensions.search.exact.integer_problem import IntegerProblem
from pipeplan.extensions.search.exact.model import ExactModel
from pipeplan.extensions.search.exact.scope import Scope
from pipeplan.foundation.errors import InfeasibleError
from tests.extensions.search.case import Case
from tests.extensions.search.independent_model import Answer


def problem_of_case(case: Case) -> Problem:
    """The case as a problem of the search."""
    given: Any = case.settings()
    leave = () if case.split else "split"
    options = ScheduleSearchOptions(placement=case.placement, objective=case.objective, leave=leave)
    return problem_of(configured(given)[1], options)


def excluded(case: Case, answer: Answer) -> Iterator[str]:
    """The sets of ranks whose model says that the value which the independent model has reached cannot be."""
    if case.overlap is not None or case.pairs is not None or answer.reachable is None:
        return
    try:
        integers = IntegerProblem(problem_of_case(case))
    except InfeasibleError:
        return
    most = integers.value_in_units(float(answer.reachable))
    ranks = range(case.ranks)
    sets = chain.from_iterable(combinations(ranks, count) for count in range(1, case.ranks + 1))
    for some, flow in product(sets, (False, True)):
        model = ExactModel(integers, 0, most, Scope(integers, some, flow=flow))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.cp_model_presolve = False
        solver.parameters.stop_after_first_solution = True
        solver.parameters.max_deterministic_time = 5
        if solver.solve(model.model) == cp_model.INFEASIBLE:
            yield f"ranks {some}{' with the flow' * flow} exclude {float(answer.reachable):g}: {case.command()}"
