"""What a few ranks cannot do any sooner, no schedule can: against the independent model, and what the engine says."""

import time
from typing import Any

import pytest

pytest.importorskip("ortools", reason="the exact solver needs the extra 'search'")

from ortools.sat.python import cp_model

from pipeplan.extensions.search import Choices, Problem
from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.engines.list_scheduling import ListScheduling
from pipeplan.extensions.search.engines.proving import EarlyProof
from pipeplan.extensions.search.exact.engines import Exact, FewRanks
from pipeplan.extensions.search.exact.integer_problem import IntegerProblem
from pipeplan.extensions.search.exact.model import ExactModel
from pipeplan.extensions.search.exact.proof import can_prove
from pipeplan.extensions.search.exact.scope import Scope
from pipeplan.extensions.search.portfolio import search
from pipeplan.extensions.search.run import Run
from pipeplan.model import Placement
from tests.extensions.search.few_ranks import excluded
from tests.extensions.search.independent_model import solve
from tests.extensions.search.problems import problem
from tests.extensions.search.random_cases import random_case


@pytest.mark.parametrize("seed", range(25))
def test_no_set_of_ranks_excludes_the_optimum(seed):
    case = random_case(seed, cells=8, cells_of_span=6)
    assert list(excluded(case, solve(case, seconds=5))) == []


def proven_by(engine: FewRanks, question: Problem, **budget: Any) -> Run:
    """The run of an engine behind list scheduling."""
    run = Run(question, Budget(budget.get("seconds"), budget.get("evaluations"), time.monotonic))
    ListScheduling()(run)
    engine(run)
    return run


def test_two_ranks_prove_what_none_of_them_does_alone():
    question = problem(Placement.loop(4, 2), 5, (9, 8, 9, 0), 1)
    bound = proven_by(FewRanks(share=1.0, largest=60), question, seconds=20).bound
    assert bound.value == 621
    assert bound.reason == "ranks 0 and 1 together cannot be done sooner: the exact solver's proof"


def test_one_rank_proves_what_the_bounds_in_closed_form_do_not():
    question = problem(Placement.loop(2, 3), 3, (5, 14, 6, 2), 1)
    bound = proven_by(FewRanks(share=1.0, largest=27), question, seconds=10).bound
    assert (question.bound.value, bound.value) == (336, 364)
    assert bound.reason == "rank 0 alone cannot be done sooner: the exact solver's proof"


def test_a_slow_stage_between_two_kept_ones_holds_up_the_flow():
    question = problem(Placement.linear(3), 5, ((1.0, 9.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0), 0.0), 5)
    integers = IntegerProblem(question)
    scope = Scope(integers, (0, 2))
    assert [(job.stage, job.turn) for job in scope.passed] == [(1, turn) for turn in range(5)]
    model = ExactModel(integers, 0, integers.horizon, scope)
    solver = cp_model.CpSolver()
    solver.parameters.cp_model_presolve = False
    assert solver.solve(model.model) == cp_model.OPTIMAL
    assert solver.objective_value * float(integers.unit) >= 1 + 5 * 9 + 1 + 1 + 1 + 1


def test_the_same_budget_of_evaluations_proves_the_same():
    question = problem(Placement.v(4), 8, (10, 12, 8, 1), 2)
    runs = [proven_by(FewRanks(share=1.0), question, evaluations=20_000) for _ in range(2)]
    assert runs[0].bound == runs[1].bound
    assert runs[0].budget.evaluations == runs[1].budget.evaluations


def test_it_keeps_to_its_share_of_the_seconds():
    run = proven_by(FewRanks(share=0.5), problem(Placement.v(6), 18, (7, 11, 5, 1), 2), seconds=2)
    assert run.bound.value > 0


def test_a_tiny_problem_is_proven_in_half_a_second_of_searching():
    found = search(problem(Placement.v(2), 3, (3, 4, 2, 1), 1.5), seconds=5, engines=(ListScheduling(), EarlyProof()))
    assert found.optimal


@pytest.mark.parametrize(
    "changes", [{"choices": Choices(recompute=True)}, {"slices": 2}, {"communication": "contended"}]
)
def test_what_the_model_does_not_know_is_left_alone(changes):
    run = Run(problem(Placement.linear(2), 2, (1, 1, 1, 1), 1, **changes), Budget(5, None, time.monotonic))
    assert not can_prove(run)
    before = run.bound
    for engine in (FewRanks(), Exact(), EarlyProof()):
        engine(run)
    assert (run.best, run.bound) == (None, before)


@pytest.mark.parametrize("largest", [10, 20])
def test_ranks_that_are_all_too_large_are_left_alone(largest):
    """By the forwards and backwards alone, or with the weight backwards: 16 and 24 on each."""
    run = Run(problem(Placement.linear(3), 8, limit=2), Budget(5.0, None, time.monotonic))
    run.offer(run.encoder.from_order(run.encoder.one_by_one()), "one", "one")
    before = run.bound
    FewRanks(largest=largest)(run)
    assert run.bound is before
