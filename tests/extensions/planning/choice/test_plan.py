"""Plans: what is chosen, why others lost, and what is said where nothing can be chosen."""

import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from benchmarks.planning import QUESTIONS, best_public
from pipeplan.extensions.planning import PlanProgress, PlanResult, estimate, plan
from pipeplan.extensions.planning.choice import planning
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE
from pipeplan.extensions.planning.choice.comparing import CHANGES, LIMITS
from pipeplan.extensions.planning.flags import cluster_of
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.planning.workload import model
from pipeplan.foundation.errors import InfeasibleError, InputError, ShapeError
from pipeplan.foundation.records import replaced

MODEL, CLUSTER = model("llama3-8b"), cluster("h100-sxm:8x2")


def planned(machines: str = "h100-sxm:8x2", name: str = "llama3-8b", **changes: Any) -> PlanResult:
    """A plan of a small request, but for what is changed."""
    overrides: dict[str, Any] = {
        "global_batch": 32,
        "sequence": 8192,
        "seconds": 20.0,
        "order_seconds": 0.0,
        "trainers": plan_trainers(),
    } | changes
    return plan(model(name), cluster(machines), **overrides)


@pytest.fixture(scope="module")
def result() -> PlanResult:
    """One plan that several tests look at."""
    return planned()


def test_the_best_fits_and_is_estimated_as_anyone_estimates_it(result):
    assert result.best is not None
    assert result.complete
    assert f"{result.best.peak_memory_gib:.1f} of {result.memory_limit_gib:.1f} GiB; the " in result.headline
    assert ("simplest within 3% of the fastest" in result.headline) == bool(result.simpler_because)
    assert result.best.peak_memory_gib <= result.memory_limit_gib
    again = estimate(MODEL, CLUSTER, result.best.configuration)
    assert again.step_time == pytest.approx(result.best.step_time)
    assert again.error_bar == result.best.error_bar


def test_no_runner_up_that_fits_is_better_and_each_says_why_it_lost(result):
    assert len(result.runners_up) >= 4
    for runner in result.runners_up:
        fits = runner.peak_memory_gib <= result.memory_limit_gib
        reason = runner.lost_because
        if fits and runner.step_time < result.best.step_time:
            assert runner.step_time == pytest.approx(result.best.step_time / (1 + result.given_up))
            assert f"faster, but {result.simpler_because}" in reason
        else:
            assert ("slower" in reason or "no faster" in reason) if fits else "over the limit" in reason
    degrees = {
        tuple(getattr(entry.configuration, name) for name in ("tensor", "pipeline", "context", "schedule"))
        for entry in result.runners_up
    }
    assert len(degrees) >= len(result.runners_up) / 2


def test_the_front_trades_time_against_memory(result):
    times = [entry.step_time for entry in result.front]
    peaks = [entry.peak_memory_gib for entry in result.front]
    assert result.best.configuration in [entry.configuration for entry in result.front]
    assert result.front[0].step_time == pytest.approx(result.best.step_time / (1 + result.given_up))
    assert times == sorted(times)
    assert peaks == sorted(peaks, reverse=True)
    assert len(result.front) > 2
    assert peaks[-1] < 0.5 * result.memory_limit_gib


def test_every_input_that_is_varied_is_in_the_sensitivity(result):
    assert [(entry.input, entry.factor) for entry in result.sensitivity] == [
        *((change.input, change.factor) for change in CHANGES),
        *(("memory limit", factor) for factor in LIMITS),
    ]
    slower = {entry.input: entry.step_time for entry in result.sensitivity if entry.factor < 1}
    assert slower["speed of matrix products"] > result.best.step_time
    assert all(bool(entry.instead) == entry.changes for entry in result.sensitivity)


def test_a_complete_plan_is_no_worse_than_one_with_a_microbatch_size_of_three():
    requested: dict[str, Any] = {"global_batch": 6, "sequence": 1024}
    free = planned("a100-80gb:2x1", "gpt2-xl", fix={"offload": 0}, **requested)
    fixed = planned("a100-80gb:2x1", "gpt2-xl", fix={"offload": 0, "micro": 3, "pp": 1}, **requested)
    assert free.complete
    assert free.optimality_gap == 0
    assert free.best is not None
    assert fixed.best is not None
    assert free.best.step_time <= fixed.best.step_time


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [20.0, 0.5])
def test_two_workers_choose_what_one_does(result, monkeypatch, seconds):
    monkeypatch.setattr(planning, "STARTING", 0.0)
    one = result if seconds == 20.0 else planned(seconds=seconds)
    two = planned(workers=2, seconds=seconds)
    assert two.complete == (seconds == 20.0)
    assert replaced(two, seconds=0.0) == replaced(one, seconds=0.0)


@pytest.mark.slow
def test_a_store_keeps_estimates_for_another_question(tmp_path: Path, result):
    store = tmp_path / "plan.sqlite"
    first = planned(store=store)
    assert first.best == result.best
    heard: list[PlanProgress] = []
    second = planned(store=store, fix={"tp": 2}, progress=heard.append)
    assert second.best is not None
    assert second.best.configuration.tensor == 2
    assert {entry.phase for entry in heard} >= {"choosing", "comparing"}
    assert all(0 <= entry.share <= 1 for entry in heard)


def test_a_loaded_machine_gives_the_same_answer(monkeypatch):
    """With a budget that ends early; every reading of the clock is ages after the one before."""
    usual, readings = planned(seconds=0.5), count(step=1e6)
    monkeypatch.setattr(time, "monotonic", lambda: next(readings))
    late = planned(seconds=0.5)
    assert not late.complete
    assert late.counts.estimated > 20
    assert replaced(late, seconds=0.0) == replaced(usual, seconds=0.0)


def test_the_best_with_a_pipeline_is_compared_with_the_best_without(result):
    both = result.pipelined
    assert both is not None
    assert both.configuration.pipeline > 1
    assert both.won == (result.best.configuration.pipeline > 1)
    assert both.because.startswith("the best without, ") == both.won
    if not both.won:
        assert both.step_time >= result.best.step_time / (1 + result.given_up)
    assert planned(fix={"pp": 1, "tp": 2}, seconds=1e-6).pipelined is None
    fixed = planned(fix={"pp": 4}, seconds=1e-6).pipelined
    assert fixed is not None
    assert (fixed.won, fixed.because) == (True, "the pipeline is fixed")


def test_zero3_beside_a_pipeline_is_named_where_nothing_else_can_be():
    """torchtitan shards parameters always: with a pipeline that is unusual, and done only if a pipeline is fixed."""
    free = planned(fix={"trainer": "torchtitan"}, seconds=1e-6)
    assert free.best is not None
    assert free.best.configuration.pipeline == 1
    fixed = planned(fix={"trainer": "torchtitan", "pp": 2}, seconds=1e-6)
    assert fixed.best is not None
    assert fixed.best.configuration.zero == 3
    assert fixed.unusual == ("ZeRO-3 next to a pipeline",)


def test_what_is_fixed_holds_for_everything_that_is_said():
    result = planned(fix={"schedule": "1f1b", "pp": 4, "recompute": "none", "offload": 0})
    for entry in [result.best, *result.front, *result.runners_up]:
        assert entry is not None
        here = entry.configuration
        assert (here.schedule, here.pipeline, here.recompute, here.offload) == ("1f1b", 4, (), 0.0)
        assert here.recompute_by_stage is None


def test_nothing_fits_and_what_would():
    result = planned("h100-sxm:8x1", "llama3-70b", global_batch=8)
    assert result.best is None
    assert result.complete
    assert not result.runners_up
    assert not result.front
    miss = result.closest_miss
    assert miss is not None
    assert miss.over_by_gib == pytest.approx(miss.peak_memory_gib - result.memory_limit_gib)
    assert miss.over_by_gib > 0
    assert "with 16 GPUs" in miss.change


def test_a_fixed_choice_in_the_way_is_the_cheapest_change():
    result = planned(
        fix={"recompute": "none", "offload": 0, "tp": 1, "pp": 1, "zero": 1, "cp": 1}, memory_limit=60 * 2**30
    )
    assert result.best is None
    assert result.closest_miss is not None
    assert "instead of" in result.closest_miss.change


@pytest.mark.slow
def test_the_fewest_gpus_that_meet_a_deadline():
    whole = planned("h100-sxm:8x4", objective="step-time").best
    assert whole is not None
    few = planned("h100-sxm:8x4", objective="gpus", deadline=3 * whole.step_time).best
    assert few is not None
    assert few.step_time <= 3 * whole.step_time
    assert few.configuration.gpus < 32
    smaller = planned(f"h100-sxm:8x{few.configuration.gpus // 16}").best
    assert smaller is None or smaller.step_time > 3 * whole.step_time
    cheap = planned("h100-sxm:8x4", objective="cost", seconds=1e-6).best
    assert cheap is not None
    assert cheap.step_time * cheap.configuration.gpus <= whole.step_time * 32
    with pytest.raises(InfeasibleError, match=r"deadline of 0\.001 s per step: the fastest step on all 32 GPUs"):
        planned("h100-sxm:8x4", objective="gpus", deadline=0.001)


@pytest.mark.parametrize(
    ("changes", "kind", "words", "field"),
    [
        ({"seconds": 0}, InputError, "invalid time budget", "seconds"),
        ({"global_batch": 0}, ShapeError, "global_batch must be at least 1", "global_batch"),
        ({"memory_limit": 0.0}, InputError, "invalid memory limit of 0 bytes", "memory_limit"),
        ({"objective": "gpus"}, InputError, "needs a deadline", "deadline"),
        ({"fix": {"micro": 5}}, ShapeError, "nearest valid batch: 30 or 35", "global_batch"),
    ],
)
def test_bad_questions(changes, kind, words, field):
    with pytest.raises(kind, match=words) as error:
        planned(**changes)
    assert error.value.field == field


def test_a_schedule_that_refuses_all_costs_says_why():
    with pytest.raises(InfeasibleError, match="no room for the F of microbatch 1"):
        planned(fix={"schedule": "zbv-heuristic", "pp": 4, "in_flight": 2})


def test_a_schedule_that_is_made_for_a_limit_is_tried_under_several():
    result = planned(fix={"schedule": "zb-auto", "pp": 4})
    assert result.best is not None
    assert result.best.configuration.in_flight in {4, 5, 6, 8}


def test_a_plan_that_is_stopped_answers_with_what_it_has():
    def stop(progress: PlanProgress) -> None:
        if progress.phase == "comparing":
            raise KeyboardInterrupt

    result = planned(progress=stop)
    assert result.best is not None
    assert not result.sensitivity[:-2]


def test_a_better_order_is_searched_for_where_none_is_fixed():
    fix = {"pp": 4, "tp": 2, "vp": 1, "micro": 1, "recompute": "none", "offload": 0, "layers": "8+8+8+8"}
    fix["software"] = "megatron-core-overlapped"
    requested: dict[str, Any] = {"order_seconds": 3.0, "memory_limit": 31 * 2**30}
    assert planned(fix=fix, **requested).searched is None
    result = planned(fix=fix, allow=["any-schedule"], **requested)
    assert result.best is not None
    order = result.searched
    assert order is not None
    assert order.step_time < order.instead_of_s
    assert order.peak_memory_gib <= result.memory_limit_gib
    assert order.schedule.microbatches == order.configuration.microbatches
    assert order.optimality_gap >= 0
    assert planned(fix=fix | {"trainer": "megatron"}, allow=["any-schedule"], order_seconds=3.0).searched is None


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 8])
def test_a_plan_is_as_fast_as_what_was_published(number):
    question = QUESTIONS[number]
    result = plan(
        model(question.model),
        cluster_of(question.cluster),
        global_batch=question.global_batch,
        sequence=question.sequence,
        fix=question.fix,
        order_seconds=0,
        trainers=plan_trainers(),
    )
    assert result.best is not None
    assert result.complete
    public = best_public(question, result.best.configuration.software)
    assert public is not None
    assert result.best.step_time <= (1 + INDISTINGUISHABLE) * public[0].step_time
