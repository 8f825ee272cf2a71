"""Segments of an estimate: what is computed between the exchanges of a layer, and what pairs hide of them."""

from dataclasses import replace
from itertools import pairwise

import pytest

from pipeplan.costs import OPS, Costs, Segments
from pipeplan.extensions.planning import Configuration, costs_of, estimate, stage_costs
from pipeplan.extensions.planning.estimates.running import OVERLAPPED, run
from pipeplan.extensions.planning.hardware import Cluster, cluster
from pipeplan.extensions.planning.workload import ModelShape, model
from tests.extensions.planning.configurations import DEEPSEEK, H100, LLAMA

MIXTURE = model("qwen3-30b-a3b")
NODES = cluster("h100-sxm:8x2")
ALONE = Configuration(sequence=4096, global_batch=128, data=16, expert=16, schedule="1f1b-overlap")
PIPED = Configuration(
    sequence=4096,
    global_batch=128,
    pipeline=4,
    data=16,
    expert=16,
    chunks=2,
    schedule="interleaved-1f1b-overlap",
    layers=(8, 8, 8, 8, 8, 8, 8, 5),
)


def costs_and_segments(
    chosen: Configuration, shape: ModelShape = MIXTURE, machines: Cluster = NODES
) -> tuple[Costs, Segments]:
    costs = costs_of(stage_costs(shape, machines, chosen), chosen)
    assert costs.segments is not None
    return costs, costs.segments


RUNS = pytest.mark.parametrize(("shape", "machines", "chosen"), [(MIXTURE, NODES, ALONE), (DEEPSEEK, H100, PIPED)])


@RUNS
@pytest.mark.parametrize("recompute", [(), ("layernorm", "moe_act"), ("full",)])
def test_the_segments_of_each_stage_add_up_to_its_times(
    shape: ModelShape, machines: Cluster, chosen: Configuration, recompute: tuple[str, ...]
) -> None:
    costs, segments = costs_and_segments(replace(chosen, recompute=recompute), shape, machines)
    for op in OPS:
        assert [stage.time(op) for stage in segments.stages] == pytest.approx(getattr(costs, op))


def test_layers_stay_aligned_whether_they_have_experts_or_not():
    """Three dense layers come first: each layer has two exchanges, and a computation of W for each of I."""
    stages = costs_and_segments(PIPED, DEEPSEEK, H100)[1].stages[:2]
    for stage in stages:
        lanes = [lane for lane, _ in stage.forward]
        assert lanes.count("all_to_all") == 2 * 8
        assert not any(pair == ("all_to_all", "all_to_all") for pair in pairwise(lanes))
        computed = [sum(lane == "compute" for lane, _ in getattr(stage, op)) for op in OPS[1:]]
        assert computed[0] == computed[1]
    times = [time for lane, time in stages[0].forward if lane == "all_to_all"]
    assert times[:6] == [0.0] * 6
    assert min(times[6:]) > 0


def test_weights_of_experts_follow_the_inputs_of_experts():
    stage = costs_and_segments(ALONE)[1].stages[0]
    computed = [[t for lane, t in getattr(stage, op) if lane == "compute"] for op in OPS[1:]]
    # From the end of the list: the embedding, then attention, experts, and what follows the combination of a layer.
    _, (attention, experts, rest) = computed[1][-1], computed[1][-2:-5:-1]
    assert attention > 0
    assert experts > attention  # 8 experts of three products each
    assert rest == 0


def test_without_pipeline_the_first_forward_and_the_last_backward_are_alone():
    stages = stage_costs(MIXTURE, NODES, ALONE)
    costs, segments = costs_and_segments(ALONE)
    pair = segments.together(0, 0)
    ends = run(stages, ALONE).ends[0]
    forward, backward = costs.forward[0], segments.alone().time[0]
    assert ends == pytest.approx(forward + (ALONE.microbatches - 1) * float(pair.time) + backward)
    assert float(pair.hidden) > 0
    few = replace(ALONE, global_batch=16)
    assert run(stages, few).ends[0] == pytest.approx(forward + backward)


@RUNS
def test_only_pairs_hide_exchanges(shape: ModelShape, machines: Cluster, chosen: Configuration) -> None:
    plain = next(name for name, paired in OVERLAPPED.items() if paired == chosen.schedule)
    hidden = estimate(shape, machines, chosen, with_error_bar=False)
    exposed = estimate(shape, machines, replace(chosen, schedule=plain), with_error_bar=False)
    assert hidden.time.expert < 0.6 * exposed.time.expert
    assert hidden.step_time < exposed.step_time
    assert hidden.time.compute == pytest.approx(exposed.time.compute)
    apart = estimate(shape, machines, replace(chosen, software="megatron-core+exposed-expert"), with_error_bar=False)
    assert apart.time.expert == pytest.approx(exposed.time.expert)


def test_delayed_weights_never_take_longer_and_a_reserved_part_is_no_slower():
    at_once = estimate(MIXTURE, NODES, replace(ALONE, software="megatron-core+weights-at-once"), with_error_bar=False)
    assert estimate(MIXTURE, NODES, ALONE, with_error_bar=False).step_time < at_once.step_time
    for software, slowdown in (("megatron-core", 1.5), ("hai-llm", 1.0)):
        assert costs_and_segments(replace(ALONE, software=software))[1].slowdown == slowdown


def test_a_dense_model_has_no_segments():
    dense = Configuration(sequence=4096, global_batch=128, pipeline=4, data=16, chunks=2, schedule=PIPED.schedule)
    assert costs_of(stage_costs(LLAMA, H100, dense), dense).segments is None


def test_a_pair_holds_one_layer_and_both_ends_of_an_exchange_more_than_one_microbatch():
    plain = estimate(MIXTURE, NODES, replace(ALONE, schedule="1f1b"), with_error_bar=False)
    paired = estimate(MIXTURE, NODES, ALONE, with_error_bar=False)
    exchange = 2 * 2 * 4096 * 8 * MIXTURE.hidden / 2**30  # both ends, 16 bits, 8 experts for each token
    more = paired.peak_memory_gib - plain.peak_memory_gib
    assert more == pytest.approx(exchange + plain.memory[0].activations / 48, rel=0.05)  # 48 layers
