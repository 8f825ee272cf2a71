"""The suite ``proofs``: what a search answers and what is proven, against an independent exact model or every order."""

from __future__ import annotations

from random import Random

import pipeplan
from tests.extensions.search.judge import judge
from tests.extensions.search.random_cases import random_case
from tests.extensions.search.test_microbatches_that_differ import tiny
from tests.torture import Found
from tests.torture.schedules.oracle import WITHIN


def attempt(seed: int) -> None:
    """A search of a small case, or of one whose microbatches differ."""
    random = Random(f"proofs {seed}")
    (_searched if random.random() < 0.6 else _differing)(random, seed)


def _differing(random: Random, seed: int) -> None:
    """The least of all orders of tiny steps whose microbatches differ: never undercut, by no bound exceeded."""
    step, options = tiny(seed)
    found = pipeplan.search(evaluations=random.choice((100, 3000, 100_000)), workers=1, **options)
    assert step.best is not None
    assert found.search is not None
    value, bound = found.makespan, found.bound.value
    if bound > step.best * (1 + WITHIN) or value < step.best * (1 - WITHIN):
        raise Found(f"{options}: {value} is found, at least {bound} is said, and {step.best} is the least")


def _searched(random: Random, seed: int) -> None:
    """No worse than published, valid, worth what it says, and "optimal" or "infeasible" only where that is true."""
    case = random_case(seed, cells=random.choice((8, 12, 16)), cells_of_span=random.choice((6, 8)))
    verdict = judge(case, model_seconds=3.0, evaluations=random.choice((300, 3000)))
    if verdict.violations:
        raise Found(f"{'; '.join(map(str, verdict.violations))}: {case.command()}")
