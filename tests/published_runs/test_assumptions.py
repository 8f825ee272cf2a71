from dataclasses import replace

import pytest

from benchmarks.published_runs.assumptions import balanced_layout, lightest
from pipeplan.extensions.planning import Configuration, estimate, stage_costs
from pipeplan.extensions.planning.hardware import cluster
from tests.extensions.planning.configurations import DEEPSEEK, H100, LLAMA, configuration


def slowest_stage(model, machines, chosen):
    """Return the seconds of F, I and W of the slowest stage."""
    stages = stage_costs(model, machines, chosen)
    return (stages.forward + stages.backward_input + stages.backward_weight).max()


def test_a_balanced_layout_counts_the_ends():
    asked = Configuration(sequence=4096, global_batch=2048, pipeline=16, data=16, expert=8, schedule="1f1b")
    found = balanced_layout(DEEPSEEK, cluster("h100-sxm:8x32"), asked)
    assert sum(found) == 61
    assert found[-1] < max(found)
    machines = cluster("h100-sxm:8x32")
    slowest, even = (slowest_stage(DEEPSEEK, machines, replace(asked, layers=layers)) for layers in (found, None))
    assert slowest < even


@pytest.mark.parametrize("stages", [1, 2, 3, 7])
def test_it_is_the_best_of_all_layouts(stages):
    small = replace(LLAMA, layers=7)
    asked = configuration(tensor=1, pipeline=stages, context=1, data=64 // stages, chunks=1, schedule="1f1b")
    eight = replace(H100, nodes=1, per_node=stages * (64 // stages), domain=stages * (64 // stages))
    asked = replace(asked, global_batch=asked.data * 4)

    def slowest(layers):
        return slowest_stage(small, eight, replace(asked, layers=layers))

    def layouts(layers, left):
        if left == 1:
            yield (layers,)
            return
        for first in range(layers + 1):
            yield from ((first, *rest) for rest in layouts(layers - first, left - 1))

    best = min(map(slowest, layouts(7, stages))) if stages < 7 else slowest((1,) * 7)
    assert slowest(balanced_layout(small, eight, asked)) <= best * (1 + 1e-9)


def test_nothing_is_computed_again_where_all_fits():
    roomy = replace(H100, gpu=replace(H100.gpu, memory_bytes=1e13))
    asked = configuration()
    assert lightest(LLAMA, roomy, asked) == asked


def test_what_does_not_fit_is_made_lighter_step_by_step():
    asked = Configuration(
        sequence=4096, global_batch=2048, pipeline=16, data=16, expert=8, layers=(4,) * 15 + (1,), schedule="1f1b"
    )
    large = cluster("h100-sxm:8x32")
    peak = estimate(DEEPSEEK, large, asked).peak_bytes
    tight = replace(large, gpu=replace(large.gpu, memory_bytes=0.95 * peak))
    found = lightest(DEEPSEEK, tight, asked)
    assert found.recompute == ("mla_up_proj",)
    assert estimate(DEEPSEEK, tight, found).peak_bytes <= tight.gpu.memory_bytes
    none = replace(large, gpu=replace(large.gpu, memory_bytes=1e9))
    assert lightest(DEEPSEEK, none, asked).recompute == ("full",)


def test_what_does_not_fit_without_a_pipeline_is_fully_sharded():
    asked = configuration(tensor=1, pipeline=1, context=1, data=64, chunks=1, schedule="1f1b")
    found = lightest(LLAMA, cluster("h100-sxm:8x8"), asked)
    assert (found.zero, found.recompute) == (3, ("full",))


def test_fsdp_recomputes_whole_layers():
    asked = configuration(tensor=1, pipeline=1, context=1, data=64, chunks=1, schedule="1f1b", zero=3)
    assert lightest(LLAMA, cluster("h100-sxm:8x8"), replace(asked, software="automodel")).recompute == ("full",)


def test_fast_links_to_the_host_take_what_is_left():
    asked = configuration(tensor=1, pipeline=1, context=1, data=64, chunks=1, schedule="1f1b", zero=3)
    asked = replace(asked, software="megatron-bridge")
    joined = cluster("gb200:4x16")
    peak = estimate(LLAMA, joined, replace(asked, recompute=("layernorm",))).peak_bytes
    tight = replace(joined, gpu=replace(joined.gpu, memory_bytes=0.95 * peak))
    assert lightest(LLAMA, tight, asked).offload == 0.25
