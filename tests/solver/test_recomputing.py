"""Proofs where microbatches may be recomputed, against every schedule of tiny problems."""

import time
from dataclasses import replace

import numpy as np
import pytest

from pipeplan.costs import Limits, Settings
from pipeplan.model import Kind, Placement
from pipeplan.solver import Choices, Problem, candidate, search
from pipeplan.solver.budget import Budget
from pipeplan.solver.exact.engines import NOTHING_RECOMPUTED_BETTER, ExactRecomputing
from pipeplan.solver.exact.recomputing_model import RecomputingProblem
from pipeplan.solver.run import Run
from tests.solver.recomputing_enumeration import least_makespan

pytest.importorskip("ortools")

SHAPES = ((Placement.linear(1), 3, False), (Placement.linear(1), 2, True), (Placement.v(1), 2, False),
          (Placement.linear(2), 2, False))  # fmt: skip


@pytest.fixture(autouse=True)
def undecorated(monkeypatch):
    """Nothing is compiled here: that takes longer than all of these tests."""
    monkeypatch.setattr(candidate._EVALUATE_WIDE, "compile_after", 1 << 60)


def instance(seed: int) -> Problem:
    """Random times and sizes, and a limit a little above the least."""
    random = np.random.default_rng(seed)
    placement, microbatches, split = SHAPES[seed % len(SHAPES)]

    def numbers(low: int, high: int) -> tuple[float, ...]:
        return tuple(map(float, random.integers(low, high + 1, placement.stages)))

    activation = numbers(2, 5)
    costs = Settings(
        forward_times=numbers(1, 5), backward_input_times=numbers(1, 5), backward_weight_times=numbers(1, 5),
        recompute_times=numbers(1, 5), p2p_time=float(random.integers(0, 3)), times_per="stage",
        activation_bytes=activation, recompute_bytes=tuple(map(min, activation, numbers(0, 3))),
    ).costs(placement)  # fmt: skip

    def within(limit: np.ndarray) -> Problem:
        limits = Limits(limit.astype(float), in_activations=False)
        return Problem(placement, microbatches, costs, limits, choices=Choices(recompute=True, split=split))

    return within(within(np.full(placement.ranks, 1e6)).least_limit + random.integers(0, 5, placement.ranks))


def prove(problem: Problem) -> Run:
    """The engine alone, on a budget that does for tiny problems."""
    run = Run(problem, Budget(None, 1_000_000, time.monotonic))
    ExactRecomputing(annealed_share=0.0, share=1.0)(run)
    return run


@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_is_the_least_of_all_schedules_and_no_bound_is_above_it(seed):
    least = least_makespan(instance(seed), compiled=False)
    run = prove(instance(seed))
    assert least is not None
    assert run.best is not None
    assert run.best.value == pytest.approx(least)
    assert run.bound.value <= least * (1 + 1e-9)


def test_a_search_is_proven_where_recomputation_decides():
    costs = Settings(forward_times=2, backward_times=4).costs(Placement.linear(2))
    limits = Limits(np.full(2, 1.5), in_activations=True)
    problem = Problem(Placement.linear(2), 4, costs, limits, choices=Choices(recompute=True))
    found = search(problem, evaluations=100_000, engines=(ExactRecomputing(annealed_share=0.0, share=1.0),))
    assert found.optimality_gap == 0
    assert found.bound.reason == f"{NOTHING_RECOMPUTED_BETTER}: the exact solver's proof"
    assert found.schedule.has(Kind.R)


def test_what_the_model_does_not_know_is_left_alone():
    limits = Limits(np.full(2, 20.0), in_activations=False)
    costs = Settings(
        forward_times=2, backward_times=4, offload_times=1, activation_bytes=10.0, times_per="stage"
    ).costs(Placement.linear(2))  # fmt: skip
    known = Problem(Placement.linear(2), 3, costs, limits, choices=Choices(recompute=True))
    for problem in (
        replace(known, choices=Choices(recompute=True, offload=True)),
        replace(known, slices=2),
        replace(known, communication="contended"),
    ):
        run = prove(problem)
        assert run.best is None
        assert run.bound == problem.bound


def test_sizes_without_a_common_unit_are_not_proven():
    costs = Settings(
        forward_times=2, backward_times=4, activation_bytes=(np.pi * 1e9, np.e * 1e9), recompute_bytes=0.0,
        times_per="stage",
    ).costs(Placement.v(1))  # fmt: skip
    limits = Limits(np.full(1, 6e9), in_activations=False)
    run = Run(
        Problem(Placement.v(1), 2, costs, limits, choices=Choices(recompute=True)), Budget(None, 10, time.monotonic)
    )
    assert not RecomputingProblem(run.problem).exact
