import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Costs, Memory, Overhead, Transfer
from pipeplan.extensions.planning import Configuration, costs_of, schedule_of
from pipeplan.extensions.planning.estimates.running import _repeated, _simulated, placed
from pipeplan.extensions.planning.estimates.stages import stage_costs
from pipeplan.simulation import simulate
from pipeplan.strategies import STRATEGIES
from tests.extensions.planning.configurations import H100, LLAMA, configuration

SHAPES = [entry for entry in STRATEGIES.values() if not entry.looks_at_costs and entry.slices == 1]


def costs(forward, inputs, weights, transfer, gap):
    stages = len(forward)
    return Costs(
        forward=forward,
        backward=inputs + weights,
        backward_input=inputs,
        backward_weight=weights,
        recompute=forward,
        memory=Memory(np.ones(stages), np.ones(stages), np.zeros(stages), in_bytes=True),
        transfer=Transfer(latency=transfer),
        overhead=Overhead(op_gap=gap),
    )


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_many_microbatches_are_what_few_say(data):
    rule = data.draw(st.sampled_from(SHAPES))
    ranks = data.draw(st.sampled_from([2, 4, 6]))
    chunks = rule.chunks if rule.fixed_chunks else data.draw(st.sampled_from([2, 4]))
    microbatches = 2 * ranks * data.draw(st.integers(4, 6))
    requested = Configuration(sequence=1, global_batch=microbatches, pipeline=ranks, chunks=chunks, schedule=rule.name)
    stages = placed(requested).stages
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    even = data.draw(st.booleans())
    forward, inputs, weights = (np.ones(stages) if even else rng.uniform(0.5, 1.5, stages) for _ in range(3))
    transfer, gap = data.draw(st.sampled_from([0.0, 0.1, 1.0])), data.draw(st.sampled_from([0.0, 0.05]))
    given_costs = costs(forward, inputs, weights, transfer, gap)
    whole = _simulated(schedule_of(requested, given_costs), given_costs)
    short = _repeated(requested, given_costs)
    if short is not None:
        assert short.ends == pytest.approx(whole.ends, rel=1e-9)
        assert short.busy == pytest.approx(whole.busy, rel=1e-9)
        assert short.schedule.microbatches < microbatches


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "zbv", "interleaved-1f1b"])
def test_even_stages_do_repeat_themselves(schedule):
    requested = Configuration(
        sequence=1,
        global_batch=256,
        pipeline=8,
        chunks=2 if schedule in ("zbv", "interleaved-1f1b") else 1,
        schedule=schedule,
    )
    ones = np.ones(placed(requested).stages)
    given_costs = costs(ones, ones, ones, 0.0, 0.0)
    short = _repeated(requested, given_costs)
    assert short is not None
    assert short.schedule.microbatches < 64
    assert short.ends.max() == pytest.approx(simulate(schedule_of(requested), given_costs).timeline.makespan)


def test_messages_that_block_take_time_from_their_ends():
    beside, blocking = (
        configuration(chunks=1, schedule="1f1b", software=name) for name in ("megatron-core", "megatron-deepspeed")
    )
    assert costs_of(stage_costs(LLAMA, H100, beside), beside).overhead.message_time == 0
    lost = costs_of(stage_costs(LLAMA, H100, blocking), blocking)
    assert lost.overhead.message_time > 0
    assert lost.transfer.latency == 0
