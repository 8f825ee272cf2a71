"""The suite ``proofs``: what a search answers and what is proven, against an independent exact model or every order."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pipeplan
from pipeplan.foundation.errors import InfeasibleError
from tests.extensions.search.case import Case
from tests.extensions.search.few_ranks import excluded
from tests.extensions.search.independent_model import solve
from tests.extensions.search.judge import judge
from tests.extensions.search.random_cases import random_case
from tests.extensions.search.test_microbatches_that_differ import tiny
from tests.torture.schedules.oracle import WITHIN
from tests.torture.suite import Found


def attempt(seed: int, folder: Path) -> str:
    """A search, the sets of ranks of a case, the same search twice, or microbatches that differ."""
    random = Random(f"proofs {seed}")
    kind = random.choices((_searched, _few_ranks, _again, _differing), (4, 2, 1, 3))[0]
    return kind(random, seed)


def _differing(random: Random, seed: int) -> str:
    """The least of all orders of tiny steps whose microbatches differ: never undercut, by no bound exceeded."""
    step, options = tiny(seed)
    found = pipeplan.search(evaluations=random.choice((100, 3000, 100_000)), workers=1, **options)
    assert step.best is not None
    assert found.search is not None
    value, bound = found.makespan, found.bound.value
    if bound > step.best * (1 + WITHIN) or value < step.best * (1 - WITHIN):
        raise Found(f"{options}: {value} is found, at least {bound} is said, and {step.best} is the least")
    return "differing, optimal" if found.search.optimal else "differing"


def _small(random: Random, seed: int) -> Case:
    return random_case(seed, cells=random.choice((8, 12, 16)), cells_of_span=random.choice((6, 8)))


def _searched(random: Random, seed: int) -> str:
    """No worse than published, valid, worth what it says, and "optimal" or "infeasible" only where that is true."""
    case = _small(random, seed)
    verdict = judge(case, model_seconds=10.0, evaluations=random.choice((300, 3000)))
    if verdict.violations:
        raise Found(f"{'; '.join(map(str, verdict.violations))}: {case.command()}")
    if verdict.value is None:
        return "infeasible"
    return "optimal" if verdict.optimal else "searched"


def _few_ranks(random: Random, seed: int) -> str:
    """No set of ranks excludes what all of them reach."""
    case = _small(random, seed)
    wrong = next(excluded(case, solve(case, seconds=5)), None)
    if wrong is not None:
        raise Found(wrong)
    return "few ranks"


def _again(random: Random, seed: int) -> str:
    """The same seed gives the same answer, whatever the number of workers."""
    case, evaluations = _small(random, seed), random.choice((100, 1000))
    answers = [_answer(case, evaluations, seed, workers) for workers in (1, 2)]
    if answers[0] != answers[1]:
        raise Found(f"one seed, two answers: {answers[0]} and {answers[1]}: {case.command()}")
    return "again"


def _answer(case: Case, evaluations: int, seed: int, workers: int) -> object:
    options: dict[str, Any] = case.options(evaluations=evaluations, seed=seed % 1000) | {"workers": workers}
    try:
        found = pipeplan.search(**options, **case.settings())
    except InfeasibleError as error:
        return str(error)
    told = found.to_dict()
    return told["objective"], told["optimal"], [[str(op) for op in row] for row in found.schedule]
