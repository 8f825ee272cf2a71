"""Proofs over a few ranks against the independent model, on as many random cases as one likes.

``python -m tests.solver.few_ranks_torture --instances 500`` asks for every set of ranks of every case whether the exact
model of these ranks admits the optimum that the independent model has found; what does not is a wrong proof.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any

from ortools.sat.python import cp_model

from pipeplan.api.arguments import settings_of
from pipeplan.api.searching.problems import problem_of
from pipeplan.errors import InfeasibleError
from pipeplan.solver import Problem
from pipeplan.solver.exact.integer_problem import IntegerProblem
from pipeplan.solver.exact.model import ExactModel
from pipeplan.solver.exact.scope import Scope
from tests.solver.case import Case
from tests.solver.independent_model import Answer, solve
from tests.solver.random_cases import random_case


def problem_of_case(case: Case) -> Problem:
    """The case as a problem of the search."""
    given: Any = case.settings()
    return problem_of(
        settings_of(given), placement=case.placement, objective=case.objective, leave=() if case.split else "split"
    )


def excluded(case: Case, answer: Answer) -> Iterator[str]:
    """The sets of ranks whose model says that the value which the independent model has reached cannot be."""
    if case.overlap is not None or answer.reachable is None:
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


def main() -> None:
    """Print what is wrong, and how many cases were looked at."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cells", type=int, default=16)
    options = parser.parse_args()
    wrong = asked = 0
    for seed in range(options.seed, options.seed + options.instances):
        case = random_case(seed, cells=options.cells, cells_of_span=8)
        answer = solve(case, seconds=3)
        asked += case.overlap is None and answer.reachable is not None
        for violation in excluded(case, answer):
            wrong += 1
            print(seed, violation, flush=True)
    print(f"{asked} cases, {wrong} sets of ranks exclude what can be reached")


if __name__ == "__main__":
    main()
