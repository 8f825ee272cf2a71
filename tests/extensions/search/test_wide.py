"""Timing candidates of problems in which more is decided or modelled: against the simulator and the checker."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeplan.checking import check
from pipeplan.costs import Limits, Settings
from pipeplan.extensions.search import Choices, Problem
from pipeplan.extensions.search.candidate import Candidate, Encoder
from pipeplan.extensions.search.kernels.arrays import OFFLOADED
from pipeplan.model import HOST_KINDS, Kind, Placement
from pipeplan.simulation import simulate

PLACEMENTS = (
    Placement.linear(3),
    Placement.v(2),
    Placement.v(3),
    Placement.loop(2, 2),
    Placement.wave(2, 3),
    Placement.bidirectional(4),
)


def vary(encoder: Encoder, candidate: Candidate, random: np.random.Generator) -> Candidate:
    """Another candidate with a few things changed at random; the same where that does not run or fit."""
    decisions = candidate.copy().decisions
    places, share = len(decisions.order), len(decisions.order) // 8
    for place in random.integers(0, places - 1, random.integers(1, 4)).tolist():
        if encoder.rank_of[decisions.order[place]] == encoder.rank_of[decisions.order[place + 1]]:
            decisions.order[[place, place + 1]] = decisions.order[[place + 1, place]]
    some = random.integers(0, places, share)
    decisions.forced[some] = random.random(share) < 0.3
    decisions.joined[some] = encoder.overlaps & (random.random(share) < 0.5)
    if encoder.may_run_full:
        gains = ~encoder.is_forward & encoder.problem.full_gains[encoder.stage_of]
        decisions.full[some] = np.repeat(gains, encoder.share)[some] & (random.random(share) < 0.5)
    if encoder.decides_weight:
        ranks = encoder.rank_of[decisions.order[some]]
        owing = [np.flatnonzero(~encoder.is_forward & (encoder.rank_of == rank)) for rank in ranks]
        decisions.prefer[some] = [random.choice([0, *(classes + 1)]) for classes in owing]
    if encoder.decides_mode:
        decisions.mode[some] = random.choice(np.flatnonzero(encoder.flat.more.modes), share)
        decisions.lead[some] = random.integers(0, 6, share)
    result = encoder.evaluate(decisions)
    return result if np.isfinite(result.value) else candidate


def compare(case: Problem, seed: int, candidates: int = 12) -> set[Kind]:
    """Walk through candidates of a case at random, and hold some of them against the simulator and the checker.

    Gives the kinds of ops that they had.
    """
    encoder, random = Encoder(case), np.random.default_rng(seed)
    assert encoder.is_wide
    candidate, kinds = encoder.from_order(encoder.one_by_one()), set[Kind]()
    for _ in range(candidates):
        for _ in range(12):
            candidate = vary(encoder, candidate, random)
        schedule = encoder.decode(candidate)
        kinds |= set(schedule.kinds)
        assert check(schedule, memory=case.memory_limit).valid
        timeline = simulate(schedule, case.costs, communication=case.communication).timeline
        assert case.value(timeline) == pytest.approx(candidate.value, rel=1e-12)
        assert encoder.encode(schedule).value <= candidate.value * (1 + 1e-12)
    return kinds


def costs_of(placement: Placement, random: np.random.Generator, **more: Any) -> Settings:
    """Times that differ from stage to stage."""
    times: dict[str, Any] = {
        name: tuple(random.integers(1, 5, placement.stages).astype(float).tolist())
        for name in ("forward_times", "backward_input_times", "backward_weight_times")
    }
    return Settings(times_per="stage", p2p_time=float(random.integers(0, 3)), **{**times, **more})


WAYS: dict[str, dict[str, Any]] = {
    "weights": {},
    "contended": {"communication": "contended", "overlap": True},
    "slices": {"communication": "contended", "slices": 2},
    "overlapped slices": {"slices": 4, "overlap": True},
    "recompute": {"choices": Choices(recompute=True), "overlap": True},
    "offload": {"choices": Choices(offload=True)},
    "tight": {"choices": Choices(offload=True), "slices": 2, "tight": True},
    "both": {"choices": Choices(recompute=True, offload=True), "communication": "contended", "slices": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(PLACEMENTS)))
@pytest.mark.parametrize("way", WAYS)
def test_the_value_is_the_simulators(way, seed):
    random = np.random.default_rng([seed, len(way)])
    placement, options = PLACEMENTS[seed], dict(WAYS[way])
    more = {"overlap_times": 9.5, "message_time": 0.25, "op_gap": 0.5} if options.pop("overlap", False) else {}
    if "choices" in options:
        more |= {
            "recompute_times": 2.5,
            "offload_times": 1.5,
            "activation_bytes": 8.0,
            "recompute_bytes": 1.0,
            "offload_bytes": 6.0,
        }
    costs = costs_of(placement, random, **more).costs(placement)
    limits = Limits(np.full(placement.ranks, 1.5 * placement.copies), in_activations=True)
    tight = options.pop("tight", False)
    case = Problem(placement, 4, costs, limits, objective="span" if seed % 2 else "makespan", **options)
    case = replace(case, limits=Limits(1.1 * case.least_limit, in_activations=True)) if tight else case
    if Encoder(case).is_wide:
        kinds = compare(case, seed)
        assert (Kind.R in kinds) == case.choices.recompute
        assert set(HOST_KINDS).issubset(kinds) == case.choices.offload


def test_a_copy_back_comes_no_earlier_than_it_fits():
    """It may stand one place ahead of its backward, but there the first microbatch is still held."""
    costs = Settings(forward_times=6, backward_times=8, offload_times=1, activation_bytes=8.0).costs(
        Placement.linear(1)
    )
    choices = Choices(split=False, offload=True)
    case = Problem(Placement.linear(1), 3, costs, Limits(np.full(1, 16.0), in_activations=False), choices=choices)
    encoder = Encoder(case)
    decisions = encoder.decisions(np.array([0, 0, 0, 1, 1, 1]))
    decisions.mode[1], decisions.lead[1] = OFFLOADED, 1
    candidate = encoder.evaluate(decisions)
    row = encoder.decode(candidate)[0]
    assert [str(op) for op in row] == ["0F0", "0F1", "0OFFLOAD1", "0F2", "0B0", "0RELOAD1", "0B1", "0B2"]
    # The rank waits for both copies: before the third forward and before the second backward.
    assert candidate.value == 3 * (6 + 8) + 2
