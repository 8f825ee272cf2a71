"""Lower bounds on time and memory: never above an estimate, and close to most."""

import random
from statistics import median

import pytest

from pipeplan.extensions.planning import Configuration, estimate
from pipeplan.extensions.planning.choice.bounds import Bounds, Pricing
from pipeplan.extensions.planning.choice.branching import Space
from pipeplan.extensions.planning.choice.candidates import as_configuration, frames, savings, variants
from pipeplan.extensions.planning.choice.request import PlanRequest
from tests.extensions.planning.requests import request

ROUNDING = 1 + 1e-9

QUESTIONS = {
    "dense": request("llama3-8b", "h100-sxm:8x4", global_batch=64, sequence=8192),
    "latent, experts, MTP": request("deepseek-v3", "h800-sxm:8x64", global_batch=512),
    "unfused attention, gaps between ops": request(
        "gpt3-6.7b", "a100-sxm-80gb:8x4", global_batch=64, sequence=2048, fix={"software": "megatron-lm-2021"}
    ),
    "sharded parameters": request("llama3-8b", "h100-sxm:8x4", global_batch=64, fix={"software": "torchtitan"}),
    "schedules of all placements": request(
        "llama3-8b",
        "h100-sxm:8x2",
        global_batch=64,
        fix={"schedule": "gpipe,looped-bfs,dualpipe,chimera,hanayo,seq1f1b,interleaved-1f1b-overlap", "micro": "1,8"},
    ),
    "exchanges hidden in pairs": request(
        "qwen3-30b-a3b",
        "h100-sxm:8x4",
        global_batch=256,
        fix={"schedule": "1f1b-overlap,interleaved-1f1b-overlap", "ep": "8,16", "micro": "1,2"},
    ),
    "no barrier": request(
        "zero-bubble-6.2b", "a100-sxm-80gb:8x2", global_batch=64, sequence=1024, fix={"software": "zero-bubble"}
    ),
}


def _samples(requested: PlanRequest, count: int) -> list[Configuration]:
    choose = random.Random(7)
    every = list(frames(requested))
    result: list[Configuration] = []
    while len(result) < count:
        frame = choose.choice(every)
        orders = list(variants(requested, frame))
        if orders:
            order, saving = choose.choice(orders), choose.choice(list(savings(requested, frame)))
            result.append(as_configuration(requested, {**order, **saving}))
    return [entry for entry in result if entry.microbatches * entry.stages < 8000]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_estimate_is_below_its_bounds(name):
    requested = QUESTIONS[name]
    pricing = Pricing(requested.model, requested.cluster)
    closeness = []
    for configuration in _samples(requested, 60):
        result = estimate(requested.model, requested.cluster, configuration, with_error_bar=False)
        bounds = Bounds(pricing, configuration)
        of_order = bounds.of(configuration)
        of_frame = bounds.of_saving(configuration.recompute, float(configuration.offload))  # type: ignore[arg-type]
        assert of_order.seconds <= result.step_time * ROUNDING, configuration
        assert of_order.bytes <= result.peak_bytes * ROUNDING, configuration
        assert of_frame.seconds <= result.step_time * ROUNDING, configuration
        assert of_frame.bytes <= result.peak_bytes * ROUNDING, configuration
        assert bounds.state <= result.peak_bytes * ROUNDING, configuration
        closeness.append((of_order.seconds / result.step_time, of_order.bytes / result.peak_bytes))
    assert median(seconds for seconds, _ in closeness) > 0.8
    assert median(held for _, held in closeness) > 0.5


def test_a_layout_of_its_own_is_bounded_too():
    requested = QUESTIONS["dense"]
    configuration = Configuration(
        sequence=8192, global_batch=64, tensor=2, pipeline=4, data=4, sequence_parallel=True, layers=(7, 9, 9, 7)
    )
    result = estimate(requested.model, requested.cluster, configuration, with_error_bar=False)
    least = Bounds(Pricing(requested.model, requested.cluster), configuration).of(configuration)
    assert 0.9 * result.step_time < least.seconds <= result.step_time * ROUNDING
    assert 0.8 * result.peak_bytes < least.bytes <= result.peak_bytes * ROUNDING


@pytest.mark.parametrize(
    ("name", "machines", "count"), [("llama3-8b", "h100-sxm:8x2", 1), ("deepseek-v3", "h800-sxm:8x32", 3)]
)
def test_shorter_ends_take_the_place_of_the_head(name, machines, count):
    """DeepSeek-V3's MTP block, head and loss take as long as several layers."""
    requested = request(name, machines, global_batch=512, sequence=4096)
    space = Space.of(requested)
    even = Configuration(
        sequence=4096,
        global_batch=512,
        pipeline=16,
        data=requested.gpus // 16,
        expert=16 if count > 1 else 1,
        software="nemo",
    )
    same, short = space.layouts(even)
    assert same == even
    assert short.layers is not None
    assert sum(short.layers) == requested.model.layers
    assert max(short.layers) - short.layers[-1] >= count
    times = [requested.estimate(entry).step_time for entry in (even, short)]
    assert times[1] < times[0]
    for configuration, seconds in zip((even, short), times, strict=True):
        order = {"schedule": configuration.schedule, "chunks": configuration.chunks}
        assert Bounds(space.pricing, configuration).of_orders([order]) <= seconds * ROUNDING


def test_a_frame_is_bounded_with_the_fill_of_its_pipeline():
    requested = QUESTIONS["dense"]
    pricing = Pricing(requested.model, requested.cluster)
    for configuration in _samples(requested, 40):
        bounds, order = (
            Bounds(pricing, configuration),
            {"schedule": configuration.schedule, "chunks": configuration.chunks},
        )
        least = bounds.of_orders([order])
        assert least >= bounds.of_saving((), 0.0).seconds
        if configuration.recompute == () and not configuration.offload:
            result = estimate(requested.model, requested.cluster, configuration, with_error_bar=False)
            assert least <= result.step_time * ROUNDING, configuration


@pytest.mark.parametrize("name", ["dense", "latent, experts, MTP", "sharded parameters"])
def test_a_family_is_bounded_for_every_microbatch_size(name):
    requested = QUESTIONS[name]
    space, closeness = Space.of(requested), []
    for family in random.Random(7).sample(space.families(), 8):
        least = space.of_family(family)
        times = [space.bounds(frame).of_saving((), 0.0).seconds for frame in family]
        assert least <= min(times) * ROUNDING, family[0]
        closeness.append(least / min(times))
    assert median(closeness) > 0.9
