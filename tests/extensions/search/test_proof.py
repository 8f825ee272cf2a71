"""A search as a user runs it reaches the proven optimum on small problems, and says that it is one."""

import pytest

from pipeplan.extensions.search.portfolio import search
from tests.conformance import conformance
from tests.extensions.search.problems import proven

pytest.importorskip("ortools", reason="the exact solver needs the extra 'search'")

SMALL = {
    "placement": "v",
    "ranks": 3,
    "microbatches": 4,
    "forward": 10,
    "backward_input": 10,
    "backward_weight": 10,
    "p2p": 0,
    "limit_chunk_activations": 4.0,
    "optimal_makespan": 290,
}


def assert_proven(row) -> None:
    found = search(proven(row), seconds=20)
    assert found.value == row["optimal_makespan"]
    assert found.optimal


def test_a_small_instance():
    assert_proven(SMALL)


@pytest.mark.parametrize("index", [0, 7, 10, 31, 45, 47])
def test_rows_of_the_proven_optima(index):
    assert_proven(conformance("proven_optima.json")["rows"][index])
