"""Slices that causal attention makes longer, the later the more."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.costs import FactorTables, Settings
from pipeplan.foundation.errors import CostError, InputError
from pipeplan.model import Kind
from pipeplan.passes import insert_recompute
from pipeplan.simulation import lower_bound, simulate, span_bound
from pipeplan.strategies import STRATEGIES
from tests.slow_simulator import slow_simulate

NAMES = ("seq1f1b", "slimpipe", "svpp", "mepipe")


def test_forwards_grow_with_their_place_and_sum_to_the_whole_sequence() -> None:
    # Half of the forward is attention: slice q of 4 takes (1/2 + (2q + 1)/8) of a quarter. I takes 1, of which 2/3.
    result = pipeplan.simulate("mepipe", ranks=1, microbatches=1, chunks=1, slices=4, slice_attention=0.5)
    took = result.timeline.end - result.timeline.start
    kinds = result.schedule.columns.kind
    assert took[kinds == Kind.F] == pytest.approx([0.15625, 0.21875, 0.28125, 0.34375])
    assert took[kinds == Kind.I] == pytest.approx([0.375, 1 / 4 + 1 / 24, 1 / 4 - 1 / 24, 0.125])
    assert took[kinds == Kind.W] == pytest.approx([0.25] * 4)
    assert result.makespan == pytest.approx(3)


def test_exchanged_attention_is_what_slimpipe_saves() -> None:
    shape = Settings(ranks=4, microbatches=8, slices=8)
    for name, least in (("slimpipe", 1.0), ("svpp", 1.1), ("seq1f1b", 1.1)):
        exchanged = pipeplan.simulate(name, settings=shape)
        unequal = (shape.replace(slice_attention=share) for share in (0.0, 0.3, 0.8))
        zero, some, more = (pipeplan.simulate(name, settings=options) for options in unequal)
        assert zero.makespan == exchanged.makespan
        assert exchanged.makespan * least < some.makespan < more.makespan


@st.composite
def cases(draw: st.DrawFn):
    rule = STRATEGIES[draw(st.sampled_from(NAMES))]
    chunks = 1 if rule.fixed_chunks else draw(st.integers(1, 2))
    shape = rule.shape(draw(st.integers(1, 4)), draw(st.integers(1, 4)), chunks, slices=draw(st.integers(1, 4)))
    stages = shape.ranks * shape.chunks

    def numbers(low: float, high: float) -> tuple[float, ...]:
        return tuple(draw(st.floats(low, high)) for _ in range(stages))

    def factors() -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(draw(st.floats(0.2, 5)) for _ in range(shape.microbatches)) for _ in range(stages))

    differ = FactorTables(forward=factors(), backward_input=factors(), backward_weight=factors(), size=factors())
    costs = Settings(
        times_per="stage",
        microbatch_factors=differ if draw(st.booleans()) else None,
        backward_times=draw(st.sampled_from((None, numbers(1, 4)))),
        forward_times=numbers(0.5, 2),
        backward_input_times=numbers(0.5, 2),
        backward_weight_times=numbers(0.5, 2),
        slice_attention=numbers(0, 1),
        p2p_time=draw(st.sampled_from((0.0, 0.3))),
        op_gap=draw(st.sampled_from((0.0, 0.1))),
    ).costs(rule.placed(shape))
    schedule = rule(shape)
    return (insert_recompute(schedule) if draw(st.booleans()) else schedule), costs


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_simulator_and_bounds_agree_with_the_slow_simulator(case) -> None:
    schedule, costs = case
    timeline = simulate(schedule, costs).timeline
    slow = slow_simulate(schedule, costs)
    assert timeline.start == pytest.approx(slow.start)
    assert timeline.end == pytest.approx(slow.end)
    recomputed = range(schedule.stages) if schedule.has(Kind.R) else ()
    shape = (schedule.placement, schedule.microbatches, costs)
    bound = lower_bound(*shape, slices=schedule.slices, recomputed=recomputed)
    assert bound.value <= timeline.makespan * (1 + 1e-9)
    assert span_bound(*shape, slices=schedule.slices).value <= timeline.spans.max() * (1 + 1e-9)


def test_a_full_backward_is_the_sum_of_its_halves_for_every_slice_and_microbatch() -> None:
    lengths, share, slices = (500.0, 4000.0, 1500.0), 0.4, 4
    mean = sum(lengths) / len(lengths)
    for inputs, weights in ((1.0, 1.0), (1.4, 0.6)):
        result = pipeplan.simulate(
            "seq1f1b",
            ranks=1,
            microbatches=len(lengths),
            slices=slices,
            slice_attention=share,
            lengths=lengths,
            attention_share=share,
            backward_input_times=inputs,
            backward_weight_times=weights,
            forward_times=1.0,
        )
        in_inputs = 2 * share / (1 + share)
        took = result.timeline.end - result.timeline.start
        for op, time in zip((op for row in result.schedule for op in row), took.tolist(), strict=True):
            length = lengths[op.microbatch] / mean
            later = (2 * op.slice + 1 - slices) / slices
            if op.kind == Kind.B:
                of_inputs = inputs * ((1 - in_inputs) * length + in_inputs * length**2) * (1 + in_inputs * later)
                assert time == pytest.approx((of_inputs + weights * length) / slices, rel=1e-12)


@pytest.mark.needs("search")
def test_wrong_shares_and_searches_are_refused() -> None:
    with pytest.raises(CostError, match=r"slice attention: 3 values for 2 stages"):
        pipeplan.simulate("seq1f1b", ranks=2, microbatches=2, slice_attention=(0.1, 0.2, 0.3))
    with pytest.raises(InputError, match=r"1\.5"):
        pipeplan.simulate("seq1f1b", ranks=2, microbatches=2, slice_attention=1.5)
    with pytest.raises(CostError, match="a search needs slices that take equally long"):
        pipeplan.search(ranks=2, microbatches=2, slices=2, slice_attention=0.5, placement="linear", evaluations=10)
    assert pipeplan.search(ranks=2, microbatches=2, slice_attention=0.5, evaluations=10).makespan > 0
