"""Which of the configurations that fit is chosen: the simplest of those that predictions cannot tell apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from pipeplan.extensions.planning import Estimate, plan
from pipeplan.extensions.planning.choice.candidates import unusual
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE, simpler_because, simplest
from pipeplan.extensions.planning.choice.legality import UNUSUAL
from pipeplan.extensions.planning.choice.plans import read_allowed
from pipeplan.extensions.planning.choice.recipes import of_practice
from pipeplan.extensions.planning.choice.trainers import widened
from pipeplan.extensions.planning.fitting import default_limit, fit_of, largest_limit, widest_limit
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.plan_records import Totals
from pipeplan.extensions.planning.workload import model
from pipeplan.foundation.errors import UnknownNameError
from pipeplan.trainers import TRAINERS
from tests.extensions.planning.requests import as_draft, broken_rule, request

REQUEST = request("llama3-8b", "h100-sxm:8x1", global_batch=16, sequence=8192)
PLAIN = REQUEST.estimate(next(configuration for configuration, _ in of_practice(REQUEST)))


def estimated(step_time: float, **changes: Any) -> Estimate:
    """An estimate with this step time, of a changed configuration."""
    return structs.replace(PLAIN, step_time=step_time, settings=replace(PLAIN.configuration, **changes).record)


def seconds(estimate: Estimate) -> float:
    return estimate.step_time


def never(_estimate: Estimate) -> bool:
    return False


def test_the_fastest_is_chosen_where_nothing_is_alike():
    fast, slow = estimated(1.0, tensor=2, data=2), estimated(1.0 + 2 * INDISTINGUISHABLE)
    assert simplest([fast, slow], seconds, never, never) is fast
    assert simplest([], seconds, never, never) is None


def test_within_the_error_what_has_memory_to_spare_comes_first_then_fewer_kinds_then_equal_stages():
    fast = estimated(1.0, tensor=2, pipeline=2, data=2, layers=(17, 15))
    equal = estimated(1.005, tensor=2, pipeline=2, data=2, layers=(16, 16))
    fewer = estimated(1.01, pipeline=2, data=4, layers=(17, 15))
    roomy = estimated(1.015, tensor=2, pipeline=2, context=2, data=1, layers=(17, 15))
    usual = estimated(1.018, tensor=2, pipeline=2, context=2, data=1, layers=(20, 12))
    every = [fast, equal, fewer, roomy, usual]

    def tight(estimate: Estimate) -> bool:
        return estimate is not roomy

    def unusual(estimate: Estimate) -> bool:
        return estimate is not usual

    assert simplest([fast, equal], seconds, never, never) is equal
    assert simplest([fast, equal, fewer], seconds, never, never) is fewer
    assert simplest(every, seconds, never, tight) is roomy
    assert simplest(every, seconds, unusual, tight) is usual
    assert simpler_because(equal, fast, never, never) == "its stages are unequal"
    assert simpler_because(fewer, fast, never, never) == "it has 2 kinds of parallelism, not 1"
    assert simpler_because(roomy, fast, never, lambda estimate: estimate is fast) == "its memory is tight"
    assert simpler_because(usual, fast, unusual, never) == "it is unusual"
    assert not simpler_because(fast, equal, never, never)
    assert not simpler_because(fast, fewer, never, never)


def test_of_as_many_kinds_whole_ranks_and_sizes_of_two_are_simpler():
    chunks = estimated(1.0, pipeline=2, data=4, chunks=2, schedule="interleaved-1f1b", layers=(8, 8, 8, 8))
    three = estimated(1.005, pipeline=2, data=4, microbatch_size=3, layers=(16, 16))
    plain = estimated(1.01, pipeline=2, data=4, microbatch_size=2, layers=(17, 15))
    assert simplest([chunks, three, plain], seconds, never, never) is plain
    assert simpler_because(plain, chunks, never, never) == "its ranks have 2 chunks, not one"
    assert simpler_because(plain, three, never, never) == "it has microbatches of 3"
    sharded = estimated(1.0, data=8, zero=3)
    assert simplest([sharded, estimated(1.01, data=8)], seconds, never, never) is not sharded


def test_on_the_same_number_of_gpus_the_steps_themselves_are_alike():
    """The objective gpus counts GPUs: all configurations that meet the deadline have nearly the same value."""
    fast, simple = estimated(1.0, tensor=2, pipeline=2, data=2), estimated(1.5)
    assert simplest([fast, simple], lambda estimate: 8 + 1e-6 * estimate.step_time, never, never) is fast


def test_a_peak_fits_is_tight_or_does_not_fit():
    machines = cluster("h100-sxm:8x1")
    limit, widest = default_limit(machines), widest_limit(machines)
    assert limit < largest_limit(machines) < widest
    assert [fit_of(share * limit, limit, widest) for share in (0.5, 0.99, 1.05, 1.3)] == [
        "fits", "tight", "tight", "does not fit",
    ]  # fmt: skip


def test_unusual_choices_are_allowed_by_name():
    assert set(UNUSUAL) == {"offload", "zero3-pipeline", "small-chunks", "any-schedule", "any-precision"}
    assert read_allowed(["offload, any-schedule"]) == {"offload", "any-schedule"}
    assert read_allowed(["schedules", "many-chunks,precision"]) == {"any-schedule", "small-chunks", "any-precision"}
    assert read_allowed(["all"]) == set(UNUSUAL)
    with pytest.raises(UnknownNameError, match="did you mean 'offload'"):
        read_allowed(["ofload"])


def test_what_fits_only_with_an_unusual_choice_is_given_and_named():
    """A limit that only offloading meets: the rules of practice give way, and the answer says so."""
    requested: dict[str, Any] = {"global_batch": 8, "sequence": 8192, "seconds": 1e-6, "trainers": TRAINERS}
    fixed = {"tp": 1, "pp": 1, "cp": 1, "zero": 3, "recompute": "none", "precision": "bf16"}
    result = plan(model("llama3-8b"), cluster("h100-sxm:8x1"), memory_limit=55 * 2**30, fix=fixed, **requested)
    assert result.best is not None
    assert result.best.configuration.offload == 0.5
    assert result.unusual == ("offloaded activations",)


def test_a_limit_of_the_user_is_not_widened():
    strict, free = (list(widened(REQUEST, strict=strict)) for strict in (True, False))
    assert {entry.memory_limit for entry in strict} == {REQUEST.memory_limit}
    assert [set(entry.allowed) for entry in strict] == [set(), *({name} for name in UNUSUAL), set(UNUSUAL)]
    assert len(free) == 2 * len(strict)
    assert free[1].memory_limit == widest_limit(REQUEST.cluster)


@pytest.mark.parametrize("name", ["llama3-70b", "deepseek-v3"])
def test_recipes_that_apply_are_valid(name: str):
    requested = request(name, "h100-sxm:8x32", global_batch=1024, sequence=4096)
    applied = list(of_practice(requested))
    assert applied
    assert all(broken_rule(requested, as_draft(entry)) is None for entry, _ in applied)
    assert {entry.gpus for entry, _ in applied} == {256}
    # What was published for another model is held to the rules of practice.
    for entry, recipe in applied:
        assert recipe.is_for(requested) or not unusual(requested, entry)


def test_totals_of_a_training():
    estimate = estimated(2.0)
    assert Totals.of(estimate, 16 * 8192 * 43_200, 2.5) == Totals(
        tokens=16 * 8192 * 43_200, steps=43_200, days=1.0, gpu_hours=8 * 24, dollars=8 * 24 * 2.5
    )
    assert Totals.of(estimate, 1e12, None).dollars is None
