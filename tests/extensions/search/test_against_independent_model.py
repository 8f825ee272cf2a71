"""A search against the independent model: never worse than published, nor "optimal" or "infeasible" where that is not true.

A sample; ``make torture`` judges more cases.
"""

import pytest

pytest.importorskip("ortools", reason="the independent model needs OR-Tools: the extra 'search'")

from tests.extensions.search.case import Case, numbers
from tests.extensions.search.judge import judge, published
from tests.extensions.search.known_cases import KNOWN, OVERTAKING
from tests.extensions.search.random_cases import random_case

CASES = {seed: random_case(seed, cells=12, cells_of_span=8) for seed in range(100)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for seed, case in CASES.items() if seed < 40 or case.pairs])
def test_random_cases(seed):
    case = CASES[seed]
    verdict = judge(case, model_seconds=5.0, evaluations=500)
    assert verdict.violations == [], case.command()


def test_published_orders_of_every_placement_are_asked_for():
    names = {
        (0, 1): {"gpipe", "1f1b", "eager-1f1b", "1f1b-overlap", "zb-h1", "zb-h2", "zb-auto", "zb-auto without a limit"},
        (0, 1, 0, 1): {"looped-bfs", "interleaved-1f1b variant=megatron group_size=2", "interleaved-zb"},
        (0, 1, 1, 0): {"zbv", "v-min", "v-half", "dualpipev", "hanayo", "zbv-heuristic without a limit"},
    }
    for rank_of, expected in names.items():
        times = numbers(*[1] * len(rank_of))
        case = Case(
            placement="", rank_of=rank_of, microbatches=4, forward=times, backward=times, inputs=times, weights=times
        )
        found = {name for name, _ in published(case)}
        assert found >= expected


def test_spans_where_one_microbatch_overtakes_another():
    verdict = judge(OVERTAKING, evaluations=3000)
    assert verdict.answer.least == 24.5
    assert verdict.violations == [], OVERTAKING.command()


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_cases_that_were_wrong_once(name):
    case, least = KNOWN[name]
    verdict = judge(case, evaluations=20_000)
    assert verdict.violations == [], case.command()
    assert verdict.value == pytest.approx(float(least), rel=1e-9)
