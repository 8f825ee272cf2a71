"""A configuration's layers as layouts take them: the search's makespans and peaks are those of the estimate."""

from dataclasses import replace

import pytest

from pipeplan.extensions.planning import Configuration, costs_of, estimate, schedule_of, stage_costs
from pipeplan.extensions.planning.choice.finalists import best_layout_of, held_besides, laid_layers
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import model
from pipeplan.extensions.search.layouts import StageOption, layout_peaks
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.simulation import simulate

H100S = cluster("h100-sxm:8x8")
DENSE = Configuration(sequence=4096, global_batch=32, tensor=4, pipeline=4, data=4, sequence_parallel=True)
CASES = {
    "dense": ("llama-3-70b", DENSE),
    "interleaved": ("llama-3-70b", replace(DENSE, schedule="interleaved-1f1b", chunks=4)),
    "split backwards": ("llama-3-70b", replace(DENSE, schedule="zb-h1", recompute=("layernorm",))),
    "on the host": ("llama-3-70b", replace(DENSE, offload=0.4)),
    "blocking sends": ("llama-3-70b", replace(DENSE, software="megatron-lm-2021")),
    "experts in small formats": (
        "deepseek-v3",
        Configuration(
            sequence=4096,
            global_batch=64,
            pipeline=8,
            data=8,
            expert=8,
            chunks=2,
            schedule="zbv",
            precision="fp8",
            recompute=("mla_up_proj",),
        ),
    ),
}


def scheduled(shape, configuration):
    return schedule_of(configuration, costs_of(stage_costs(shape, H100S, configuration), configuration))


@pytest.mark.parametrize("name", CASES)
def test_times_and_peaks_are_those_of_the_estimate(name):
    shape, configuration = model(CASES[name][0]), CASES[name][1]
    schedule = scheduled(shape, configuration)
    result = best_layout_of(shape, H100S, configuration, schedule, seconds=0.3)
    laid = replace(configuration, layers=result.layout)
    costs = costs_of(stage_costs(shape, H100S, laid), laid)
    timeline = simulate(schedule, costs).timeline
    # The last op's messages are behind its end, and take its rank's time.
    assert timeline.makespan <= result.makespan * (1 + 1e-9)
    assert result.makespan == pytest.approx(max(timeline.makespan, timeline.longest_span))
    besides = [
        rank.total * GIBIBYTE - peak
        for rank, peak in zip(estimate(shape, H100S, laid, with_error_bar=False).memory, result.peaks, strict=True)
    ]
    assert min(besides) >= 0
    assert max(besides) < 2e9, "workspaces and placeholders of gradients"


def test_what_is_held_besides_is_what_an_estimate_has_beyond_the_search():
    shape, schedule = model("llama-3-70b"), scheduled(model("llama-3-70b"), DENSE)
    start = estimate(shape, H100S, DENSE, with_error_bar=False)
    layers = laid_layers(shape, H100S, DENSE, ((),))
    peaks = layout_peaks(layers, schedule, (20,) * 4, (StageOption(name=layers[0].options[0].name),) * 4)
    besides = held_besides(shape, H100S, start, schedule)
    assert besides == pytest.approx(
        max(rank.total * GIBIBYTE - peak for rank, peak in zip(start.memory, peaks, strict=True))
    )
    limit = start.peak_bytes * 1.0001
    result = best_layout_of(shape, H100S, DENSE, schedule, limits=limit - besides)
    laid = replace(DENSE, layers=result.layout)
    assert estimate(shape, H100S, laid, with_error_bar=False).peak_bytes <= limit


def test_equal_layers_are_counted():
    layers = laid_layers(model("deepseek-v3"), H100S, CASES["experts in small formats"][1], ((), ("full",)))
    assert [(layer.kind, layer.count) for layer in layers] == [
        ("embedding", 1),
        ("dense", 3),
        ("moe", 58),
        ("mtp", 1),
        ("head", 1),
        ("loss", 1),
    ]
    dense = layers[1].options
    assert dense[1].backward_input > dense[0].backward_input
    assert dense[1].activation_bytes < dense[0].activation_bytes
