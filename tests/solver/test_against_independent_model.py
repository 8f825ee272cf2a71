"""A search against the independent model: never worse than published, nor "optimal" or "infeasible" where that is not true.

A sample; ``python -m tests.solver.torture`` judges as many cases as one likes.
"""

import pytest

pytest.importorskip("ortools", reason="the independent model needs OR-Tools: the extra 'search'")

from tests.solver.judge import judge
from tests.solver.known_cases import KNOWN, OVERTAKING
from tests.solver.random_cases import random_case


@pytest.mark.parametrize("seed", range(40))
def test_random_cases(seed):
    case = random_case(seed, cells=12, cells_of_span=8)
    verdict = judge(case, model_seconds=5.0, seconds=1.0)
    assert verdict.violations == [], case.command()


def test_spans_where_one_microbatch_overtakes_another():
    verdict = judge(OVERTAKING, seconds=6.0)
    assert verdict.answer.least == 24.5
    assert verdict.violations == [], OVERTAKING.command()


@pytest.mark.parametrize("name", KNOWN)
def test_cases_that_were_wrong_once(name):
    case, least = KNOWN[name]
    verdict = judge(case, seconds=6.0)
    assert verdict.violations == [], case.command()
    assert verdict.value == pytest.approx(float(least), rel=1e-9)
