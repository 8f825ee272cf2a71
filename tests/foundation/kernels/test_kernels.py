"""Every kernel as Python and as C, on random problems: they return the same, and write the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.extensions.search import reordering, search
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.judged_search import JudgedSearch
from pipeplan.extensions.search.layouts.order import OrderGraph
from pipeplan.foundation.compiling.writer import write
from pipeplan.foundation.kernels import Kernel, is_native
from pipeplan.foundation.kernels.library import SOURCE
from pipeplan.strategies import strategy
from tests.extensions.search.test_judged_search import run_of
from tests.torture.schedules import kernels
from tests.torture.schedules.evaluations import moved
from tests.torture.schedules.problems import long_problem, random_problem
from tests.torture.schedules.ways import both_ways, run_by

REACHED: set[str] = set()
"""Kernels that the tests of this file have run."""


def both_ways_and_noted(kernel: Kernel, inputs: Any, outputs: Any) -> Any:
    """Both ways, from the same arrays."""
    REACHED.add(f"{kernel.function.__module__}.{kernel.function.__name__}")
    return both_ways(kernel, inputs, outputs)


@pytest.fixture(autouse=True, scope="module")
def twice() -> Iterator[None]:
    """Run all kernels both ways."""
    if not is_native():
        pytest.skip("kernels run as Python")
    with run_by(both_ways_and_noted):
        yield


def replanned(random: Random) -> None:
    """An order of microbatches that differ, for a schedule that stays."""
    name, ranks = random.choice(("1f1b", "zbv", "gpipe")), random.randint(2, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reordering, "WORK", 20_000)
        factors = [random.choice((0.5, 1.0, 3.0, random.random() + 0.1)) for _ in range(random.randint(2, 5))]
        pipeplan.Replanner(name, ranks=ranks).plan(factors)


def judged(random: Random) -> None:
    """An annealing by what a schedule takes as the run will have it."""
    run = run_of(random.choice((150, 300)), communication="streams")
    JudgedSearch()(run)


def dispatched(random: Random) -> None:
    """A search with microbatches that differ."""
    problem = random_problem(random, most=16)
    while problem.slices > 1 or not Encoder(problem).varies:
        problem = random_problem(random, most=16)
    search(problem, evaluations=200)


def blocking(random: Random) -> None:
    """A schedule on which a send waits for its receive."""
    pipeplan.simulate(
        random.choice(("1f1b", "gpipe")),
        ranks=random.randint(2, 4),
        microbatches=random.randint(1, 6),
        p2p_time=random.random(),
        communication="blocking",
    )


def laid_out(random: Random) -> None:
    """The longest path of an order for random times of its stages."""
    rule = strategy(random.choice(("1f1b", "gpipe", "zbv")))
    schedule = rule(rule.shape(random.randint(2, 4), random.randint(1, 6)))
    times = np.array([[random.choice((1.0, 2.0, random.random())) for _ in range(3)] for _ in range(schedule.stages)])
    OrderGraph(schedule, random.choice((0.0, random.random()))).path(times)


def built(random: Random) -> None:
    """A schedule that repeats a building block."""
    rule = strategy(random.choice(("v-min", "v-half")))
    rule(rule.shape(random.randint(2, 5), random.randint(1, 6)))


def idle(random: Random) -> None:
    """The reasons of all idle time of a schedule."""
    pipeplan.explain(
        random.choice(("1f1b", "gpipe", "zb-h1", "zbv")),
        ranks=random.randint(2, 4),
        microbatches=random.randint(1, 8),
        p2p_time=random.choice((0.0, random.random())),
        forward_times=random.choice((1.0, random.random() + 0.1)),
    )


CASES: dict[str, tuple[int, Callable[[Random], None]]] = {
    "schedules": (50, kernels._simulate),
    "annealings": (50, lambda random: moved(random, random_problem(random))),
    "annealings in part": (3, lambda random: moved(random, long_problem(random), locally=True)),
    "searches": (12, kernels._search),
    "searches of microbatches that differ": (3, dispatched),
    "blocking sends": (6, blocking),
    "searches that are judged": (2, judged),
    "replanning": (4, replanned),
    "layouts": (10, laid_out),
    "building blocks": (10, built),
    "idle times": (10, idle),
}
"""Number of examples, and what an example does."""


@pytest.mark.parametrize("case", CASES)
def test_kernels_give_the_same_as_python_and_as_c(case):
    number, run = CASES[case]

    @settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32))
    def tried(seed: int) -> None:
        run(Random(seed))

    tried()


def test_no_kernel_is_left_out(request):
    """After the tests above: a new kernel needs a case there."""
    entries = re.findall(r"EXPORT i64 (\w+)_entry\(", write(SOURCE))
    assert len(entries) > 15
    if request.config.getoption("-k") or len(REACHED) == 0:
        pytest.skip("not all tests of this file have run")
    assert {name.replace(".", "_").replace("_kernel_", "_kernel__") for name in REACHED} == set(entries)
