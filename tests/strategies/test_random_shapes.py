"""The strategies with full pipelines of 1F1B's kin, over random shapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.errors import ShapeError
from pipeplan.strategies import gpipe, interleaved, one_f_one_b, seq1f1b
from pipeplan.strategies.protocol import Strategy
from tests.slow_simulator import peak_activations, worst_bubble
from tests.strategies.soundness import assert_sound

FAMILIES = (*gpipe.FAMILY, *one_f_one_b.FAMILY, *interleaved.FAMILY, *seq1f1b.FAMILY)
ANY = pytest.mark.parametrize("strategy", FAMILIES, ids=lambda strategy: strategy.name)


@pytest.mark.parametrize("strategy", interleaved.FAMILY, ids=lambda strategy: strategy.name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_group_is_sound_or_refused(strategy: Strategy, data: st.DataObject) -> None:
    ranks, microbatches, chunks = (data.draw(st.integers(1, most)) for most in (5, 14, 3))
    group = data.draw(st.integers(1, microbatches))
    shape = strategy.shape(ranks, microbatches, chunks, group_size=group)
    try:
        strategy(shape)
    except ShapeError as error:
        assert "deadlocks" in str(error)  # noqa: PT017 - both outcomes are right; the rule itself has its own test
        return
    assert_sound(strategy, shape)


@ANY
@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("rounds", [1, 3])
def test_figures_are_exact_in_whole_rounds(strategy: Strategy, ranks: int, rounds: int) -> None:
    shape = strategy.shape(ranks, ranks * rounds)
    assert worst_bubble(strategy(shape)) == pytest.approx(strategy.bubble.value(shape))
    assert max(peak_activations(strategy(shape))) == strategy.memory.value(shape)


@ANY
@pytest.mark.parametrize("microbatches", [1, 2, 3, 5])
def test_figures_are_exact_with_fewer_microbatches_than_ranks(strategy: Strategy, microbatches: int) -> None:
    shape = strategy.shape(6, microbatches)
    assert worst_bubble(strategy(shape)) == pytest.approx(strategy.bubble.value(shape))
    assert max(peak_activations(strategy(shape))) == strategy.memory.value(shape)
