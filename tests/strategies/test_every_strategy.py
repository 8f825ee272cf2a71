"""What every strategy must keep, over random shapes. A new one is tested by being registered."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan import strategies
from pipeplan.checking import check
from pipeplan.foundation.errors import ShapeError
from pipeplan.strategies import STRATEGIES, Shape, Strategy, is_strategy, registry, strategy
from tests.strategies.soundness import assert_sound

EVERY = pytest.mark.parametrize("rule", STRATEGIES.values(), ids=lambda rule: rule.name)


@st.composite
def shapes(draw: st.DrawFn, rule: Strategy) -> Shape:
    """Shapes with every option that the strategy has."""
    microbatches = draw(st.integers(1, 14))
    return rule.shape(
        draw(st.integers(1, 6)),
        microbatches,
        None if rule.fixed_chunks else draw(st.integers(1, 4)),
        group_size=draw(st.none() | st.integers(1, microbatches)) if rule.grouped else None,
        slices=draw(st.none() | st.integers(1, 7)) if rule.slices > 1 else None,
        variant=draw(st.none() | st.sampled_from(rule.variants)) if rule.variants else None,
    )


@EVERY
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_it_is_complete_in_order_and_has_its_published_figures_or_refuses_the_shape(rule, data):
    shape = data.draw(shapes(rule))
    if not rule.accepts(shape):
        with pytest.raises(ShapeError, match=rule.name):
            rule(shape)
        return
    assert check(rule(shape)).problems == ()
    assert_sound(rule, shape)


@EVERY
def test_usual_shapes_have_the_published_figures(rule):
    for ranks, microbatches in ((2, 4), (4, 8), (4, 16), (6, 18), (8, 24)):
        assert_sound(rule, rule.shape(ranks, microbatches))


@EVERY
def test_it_is_found_by_each_of_its_names_in_any_case(rule):
    for name in (rule.name, *rule.aliases):
        assert is_strategy(name)
        assert strategy(name) is strategy(name.upper()) is rule


@EVERY
def test_it_explains_itself(rule):
    for text in (rule.title, rule.shapes, rule.bubble.text, rule.memory.text, rule.paper, rule.idea):
        assert text.strip() == text != ""
    assert len(rule.idea.splitlines()) > 1


def test_the_table_of_families_has_every_file_and_all_of_its_names():
    files = {
        file.name: import_module(f"{strategies.__name__}.{file.name}") for file in iter_modules(strategies.__path__)
    }
    families = {
        name: tuple(rule.name for rule in file.FAMILY) for name, file in files.items() if hasattr(file, "FAMILY")
    }
    assert families == registry._FAMILIES
