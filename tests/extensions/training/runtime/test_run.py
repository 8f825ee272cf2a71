"""Runs of schedules in PyTorch's runtime, in processes of this host."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch.distributed.pipelining.schedules import get_schedule_class

from pipeplan.costs import Limits, Settings
from pipeplan.extensions.search.choices import Choices
from pipeplan.extensions.search.portfolio import search
from pipeplan.extensions.search.problem import Problem
from pipeplan.extensions.training.options import RunOptions
from pipeplan.extensions.training.runtime.results import RunResult
from pipeplan.extensions.training.runtime.running import RunTask
from pipeplan.foundation.errors import GradientError, ShapeError
from pipeplan.model import Kind, Placement, Schedule, dependencies, parse_schedule
from pipeplan.passes import lower_for_torch
from pipeplan.runtime import Model
from pipeplan.strategies import strategy
from tests.extensions.training.runtime.models import tied
from tests.extensions.training.runtime.runs import run
from tests.extensions.training.runtime.torch_schedules import from_torch, stand_in
from tests.processes import run_ranks

TINY = "tests.extensions.training.runtime.models:tiny"

UNEVEN = "0F0 1F0 0F1 1F1 3F0 3B0 3F1 3B1 1B0 0B0 1I1 0I1 1W1 0W1\n2F0 2F1 2B0 2I1 2W1"
"""Hand-written: stages 0, 1 and 3 on rank 0, stage 2 on rank 1; neighbours on one rank; B mixed with I and W."""

BLOCKED = "0F0 1F0 0F1 1F1 1B0 0B0 1B1 0B1\n2F0 3F0 3B0 2B0 2F1 3F1 3B1 2B1"
BACKWARDS = "0F1 0F0 0B1 0B0\n1F1 1F0 1B1 1B0"
"""The last stage's forwards in another order than the microbatches'."""


def schedule(name: str, ranks: int, microbatches: int, chunks: int | None = None) -> Schedule:
    ours = strategy(name)
    return ours(ours.shape(ranks, microbatches, chunks))


def run_all(
    schedules: dict[str, Schedule], lengths: tuple[float, ...] | None = None, **options: object
) -> dict[str, RunResult]:
    ranks = next(iter(schedules.values())).ranks
    tasks = tuple(
        RunTask(
            schedule=one,
            options=RunOptions(device="cpu", **({"steps": 1, "verify": True} | options)),  # type: ignore[arg-type]
            lengths=lengths,
        )
        for one in schedules.values()
    )
    return dict(zip(schedules, run_ranks("tests.extensions.training.runtime.many", ranks, tasks)[0], strict=True))


def differences(results: dict[str, RunResult]) -> dict[str, tuple[float | None, float | None]]:
    return {name: (result.max_gradient_difference, result.max_loss_difference) for name, result in results.items()}


def saving(ranks: int, microbatches: int, **choices: bool) -> Schedule:
    """Searched for ranks that have no room for a microbatch of all their stages: something must be recomputed or leave."""
    placement = Placement.v(ranks)
    costs = Settings(offload_times=0.4).costs(placement)
    caps = Limits(np.full(ranks, 0.8), in_activations=True)
    return search(Problem(placement, microbatches, costs, caps, choices=Choices(**choices)), evaluations=60).schedule


EXPRESSIBLE = (
    "1f1b", "eager-1f1b", "looped-bfs", "interleaved-zb", "zb-h2", "zbv", "v-half", "dualpipev", "hanayo", "1f1b-overlap",
    "interleaved-1f1b-overlap",
)  # fmt: skip
"""Those that no training of ``own_loop`` steps through, and the few of all ways to pass messages."""


FEW = ("1f1b", "interleaved-1f1b-overlap", "zb-h2", "zbv", "dualpipev", "hanayo")
"""One of each way in which ranks pass messages."""


@pytest.mark.parametrize(("receives", "names"), [("early", EXPRESSIBLE), ("late", FEW)])
def test_two_ranks_give_the_gradients_of_one_process(receives: str, names: tuple[str, ...]) -> None:
    plans = {name: schedule(name, 2, 4) for name in names}
    plans |= {"three chunks": schedule("interleaved-1f1b", 2, 4, 3)}
    plans |= {name: parse_schedule(text) for name, text in
              {"uneven": UNEVEN, "blocked": BLOCKED, "backwards": BACKWARDS}.items()}  # fmt: skip
    plans |= {"recomputing": saving(2, 4, recompute=True), "offloading": saving(2, 4, offload=True)}
    assert plans["recomputing"].has(Kind.R)
    assert plans["offloading"].has(Kind.OFFLOAD)
    lowered = {name: lower_for_torch(plan, receives=receives) for name, plan in plans.items()}  # type: ignore[arg-type]
    assert differences(run_all(lowered, model=TINY, warmup=0)) == dict.fromkeys(plans, (0.0, 0.0))


def test_microbatches_of_different_lengths_give_the_gradients_of_one_process() -> None:
    plans = {name: schedule(name, 2, 4) for name in ("1f1b", "zbv", "interleaved-1f1b-overlap")}
    plans["offloading"] = saving(2, 4, offload=True)
    lowered = {name: lower_for_torch(plan) for name, plan in plans.items()}
    assert differences(run_all(lowered, (0.3, 1.0, 0.05, 0.7), model=TINY)) == dict.fromkeys(plans, (0.0, 0.0))


def test_four_ranks_give_the_gradients_of_one_process() -> None:
    plans = {name: schedule(name, 4, 8) for name in FEW}
    placement = Placement.v(4)
    caps = Limits(np.full(4, 3.0), in_activations=True)
    plans["searched"] = search(Problem(placement, 8, Settings().costs(placement), caps), evaluations=300).schedule
    plans["saving"] = saving(4, 8, recompute=True, offload=True)
    lowered = {name: lower_for_torch(plan) for name, plan in plans.items()}
    assert differences(run_all(lowered, model=TINY, warmup=0)) == dict.fromkeys(plans, (0.0, 0.0))


def test_a_run_is_measured(tmp_path: Path) -> None:
    plan = schedule("zbv", 2, 4)
    result = run(plan, TINY, steps=3, timeout=60.0, kineto=tmp_path)
    timeline = result.timeline
    assert timeline.source == "measured"
    assert timeline.unit == "ms"
    assert result.schedule == lower_for_torch(plan)
    assert len(result.step_seconds) == 3
    assert timeline.makespan == pytest.approx(1e3 * result.median_step_seconds)
    assert len(result.losses) == 4
    assert (timeline.end >= timeline.start).all()
    assert (result.wait >= 0).all()
    assert result.gradients_equal is None
    result.require_equal_gradients()
    _require_causal(result)
    _require_kineto(plan, tmp_path)


def _require_causal(result: RunResult) -> None:
    """On one clock nothing starts before what it waited for is there, and a rank computes one op at a time."""
    timeline, plan = result.timeline, result.schedule
    compute = plan.where(Kind.F, Kind.I, Kind.W, Kind.B)
    same_rank = plan.rank[compute[1:]] == plan.rank[compute[:-1]]
    assert (timeline.start[compute[1:]] >= timeline.end[compute[:-1]])[same_rank].all()
    source = dependencies(plan).arrival
    receives = plan.where(Kind.RECV_F, Kind.RECV_B)
    assert (timeline.end[receives] >= timeline.start[source[receives]]).all()
    fed = compute[source[compute] >= 0]
    assert (timeline.start[fed] >= timeline.end[source[fed]]).all()


def _require_kineto(plan: Schedule, folder: Path) -> None:
    """PyTorch's own profiles name every op of the rank that they say they are of."""
    for rank, row in enumerate(plan):
        trace = json.loads((folder / f"rank{rank}.json").read_text())
        assert trace["distributedInfo"]["rank"] == rank
        assert {f"PP:{op}" for op in row} <= {event.get("name") for event in trace["traceEvents"]}


def test_lower_precision_is_verified_within_its_tolerance() -> None:
    result = run_all({"zbv": lower_for_torch(schedule("zbv", 2, 4))}, model=TINY, dtype="bfloat16")["zbv"]
    assert result.dtype == "bfloat16"
    assert result.tolerance > 0
    assert result.gradients_equal


def test_training_lowers_the_loss() -> None:
    plan = lower_for_torch(schedule("1f1b", 2, 4))
    result = run_all({"1f1b": plan}, model=TINY, steps=12, learning_rate=3e-3, verify=False)["1f1b"]
    assert np.mean(result.losses[-3:]) < result.losses[0] - 0.3


def test_pytorchs_own_deferred_receives_are_found_wrong() -> None:
    """The channels that PyTorch 2.13 puts out of order: what verifying is for."""
    cls = get_schedule_class("ZBVZeroBubble")
    live = cls([stand_in(0, 4, 8), stand_in(4, 4, 8)], 8, loss_fn=abs, defer_pp_recv=True)
    wrong = from_torch(live, communication=True)
    right = lower_for_torch(from_torch(live), receives="late")
    results = run_all({"theirs": wrong, "ours": right}, model=TINY)
    assert results["ours"].max_gradient_difference == 0.0
    assert results["theirs"].gradients_equal is False
    with pytest.raises(GradientError, match="differ from the single-process run"):
        results["theirs"].require_equal_gradients()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dualpipe", "supports one rank per stage"),
        ("chimera", "supports one rank per stage"),
        ("seq1f1b", "has 2 slices per microbatch"),
    ],
)
def test_what_pytorchs_runtime_cannot_express(name: str, reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        run(schedule(name, 2, 4), TINY)


def test_tied_parameters_train_as_in_one_process() -> None:
    """ZBV holds the embedding and the head on one rank, the others on two; every rank's reference holds both."""
    names = ("zbv", "dualpipev", "1f1b", "zb-h1", "interleaved-1f1b")
    lowered = {name: lower_for_torch(schedule(name, 2, 4)) for name in names}
    results = run_all(lowered, model="tests.extensions.training.runtime.models:tied")
    assert differences(results) == dict.fromkeys(names, (0.0, 0.0))
    losses = trained_in_one_process(tied(), steps=2)
    assert [results[name].losses for name in names] == [pytest.approx(losses, rel=1e-5)] * len(names)


def test_blocks_that_are_one_train_as_in_one_process() -> None:
    """All stages of all ranks share every parameter of the block."""
    lowered = {name: lower_for_torch(schedule(name, 2, 4)) for name in ("hanayo", "interleaved-1f1b")}
    results = run_all(lowered, model="tests.extensions.training.runtime.models:tied_blocks")
    assert differences(results) == dict.fromkeys(lowered, (0.0, 0.0))


def trained_in_one_process(model: Model, steps: int, microbatches: int = 4) -> list[float]:
    """The mean loss of each step, from the weights with which a run begins."""
    whole = model.build(0, len(model.layers), seed=0, device=torch.device("cpu"))
    optimizer = torch.optim.AdamW(whole.parameters(), lr=1e-3)
    losses = []
    for step in range(steps):
        batch = [model.microbatch(step, number, seed=0) for number in range(microbatches)]
        loss = torch.stack([model.loss(whole(x), target) for x, target in batch]).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses
