"""Why a configuration lost, and in what two differ, in words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pipeplan.extensions.planning import Configuration, Estimate, GpuMemory, StepTime
from pipeplan.extensions.planning.choice.comparing import CHANGES, lost_because, of_change, of_limit
from pipeplan.extensions.planning.choice.describing import beside, degrees_in_words, differences
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.records import titles_of


def _estimate(memory: float = 50.0, replicas: int = 1, **time: float) -> Estimate:
    parts = StepTime(**(dict.fromkeys(StepTime.__struct_fields__, 0.0) | {"compute": 10.0} | time))
    return Estimate(
        step_time=parts.total,
        peak_memory_gib=memory,
        peak_memory_by_rank_gib=(memory,),
        time=parts,
        memory=(GpuMemory(**(dict.fromkeys(GpuMemory.__struct_fields__, 0.0) | {"weights": memory})),),
        tokens_per_second=1.0,
        flops=1.0,
        mfu=0.5,
        error_bar=None,
        costs_from={},
        assumed=(),
        settings=Configuration(sequence=1, global_batch=replicas, data=replicas).record,
    )


BEST = _estimate(bubble=0.25)
LIMIT = 80.0 * GIBIBYTE


@pytest.mark.parametrize(
    ("lost", "best", "deadline", "message"),
    [
        (_estimate(bubble=1.0), BEST, None, r"7\.3% slower: \+0\.75 s bubble"),
        (
            _estimate(memory=83.1, bubble=0.05),
            BEST,
            None,
            r"3\.1 GiB over the limit; would be 2\.0% faster",
        ),
        (_estimate(memory=83.1, bubble=1.0), BEST, None, r"3\.1 GiB over the limit"),
        (_estimate(compute=12.0, bubble=0.25), BEST, None, r"19\.5% slower: \+2\.00 s compute"),
        (_estimate(compute=11.0), _estimate(bubble=0.5), None, r"4\.8% slower: \+1\.00 s compute, -0\.50 s bubble"),
        (_estimate(bubble=1.0), BEST, 10.0, "misses the deadline of .*"),
        (_estimate(bubble=1.0), BEST, 22.0, "7.3% slower: .*bubble"),
        (_estimate(memory=52.0, bubble=0.25), BEST, None, r"no faster, and it needs 2\.0 GiB more"),
        (_estimate(memory=40.0, bubble=0.25), BEST, None, "no faster"),
        (
            _estimate(replicas=2, compute=6.0),
            BEST,
            None,
            r"17\.1% more GPU time on 2 GPUs instead of 1: \+2\.00 s compute",
        ),
    ],
)
def test_the_reason_why_an_estimate_lost(lost, best, deadline, message):
    assert re.fullmatch(message, lost_because(lost, best, LIMIT, deadline))


def test_a_part_that_grew_is_named_by_its_title():
    for part, title in titles_of(StepTime).items():
        if part != "compute":
            loser = _estimate(memory=50.0, replicas=1, **{part: 20.0})
            assert f" s {title}" in lost_because(loser, BEST, LIMIT)


def test_of_two_that_are_as_fast_the_less_simple_one_lost_for_what_makes_it_so():
    lean = _estimate(memory=40.0, bubble=0.25)
    reason = lost_because(lean, BEST, LIMIT, complication="it has 3 kinds of parallelism, not 2")
    assert reason == "no faster, and it has 3 kinds of parallelism, not 2"


CHOSEN = Configuration(sequence=1, global_batch=16, tensor=2, data=4, offload=0.5, zero=3, recompute=("full",))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"tensor": 4, "data": 2}, "tp4 dp2"),
        ({"data": 2, "pipeline": 2, "schedule": "zbv", "chunks": 2}, "pp2 dp2, zbv v2"),
        ({"microbatch_size": 2, "recompute": ("mlp", "layernorm")}, "microbatch 2, recompute mlp+layernorm"),
        ({"offload": 0.25}, "25% offloaded"),
        ({"offload": 0.0, "zero": 1}, "no offload, ZeRO-1"),
        ({"recompute": ()}, "no recomputation"),
        ({}, "another layout"),
    ],
)
def test_only_what_differs_is_named(other, words):
    assert differences(replace(CHOSEN, **other), CHOSEN) == words


def test_an_input_changes_the_choice_beyond_the_error_of_predictions():
    alike, faster = _estimate(compute=10.1), _estimate(compute=9.0, memory=90.0)
    assert not of_change(CHANGES[0], BEST, [alike]).changes
    assert of_change(CHANGES[0], BEST, [alike, faster]).instead == "another layout (12.2% faster)"
    assert not of_limit(0.9, LIMIT, BEST, [BEST, alike, faster]).changes
    assert of_limit(1.1, 1.2 * LIMIT, BEST, [BEST, alike, faster]).instead == "another layout (12.2% faster)"
    assert of_limit(0.1, 0.1 * LIMIT, BEST, [BEST, faster]).instead == "no evaluated configuration fits"


def test_a_row_names_all_degrees_and_the_rest_where_it_differs():
    staged = replace(CHOSEN, global_batch=64, data=2, pipeline=4, microbatch_size=1)
    alone = replace(staged, data=8, pipeline=1)
    assert beside(alone, staged) == f"{degrees_in_words(alone)}, no pipeline"
    assert beside(staged, alone) == f"{degrees_in_words(staged)}, {staged.schedule}"
    assert beside(replace(staged, microbatch_size=4), staged) == f"{degrees_in_words(staged)}, microbatch 4"
    assert beside(staged, staged) == f"{degrees_in_words(staged)}, another layout"


def test_equally_much_gpu_time_on_more_gpus_is_not_called_as_fast():
    half = _estimate(replicas=2, compute=5.0, bubble=0.125)
    assert lost_because(half, BEST, LIMIT) == "no less GPU time on 2 GPUs instead of 1"
