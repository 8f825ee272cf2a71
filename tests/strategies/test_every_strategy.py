"""What every strategy must keep, over random shapes. A new one is tested by being registered."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan import strategies
from pipeplan.checking import check
from pipeplan.errors import ShapeError
from pipeplan.strategies import STRATEGIES, Shape, Strategy, is_strategy, strategy
from pipeplan.testing import check_strategy
from tests.strategies.soundness import assert_sound

EVERY = pytest.mark.parametrize("found", STRATEGIES.values(), ids=lambda found: found.name)


@st.composite
def shapes(draw: st.DrawFn, found: Strategy) -> Shape:
    """Shapes with every option that the strategy has."""
    microbatches = draw(st.integers(1, 14))
    return found.shape(
        draw(st.integers(1, 6)),
        microbatches,
        None if found.fixed_chunks else draw(st.integers(1, 4)),
        group_size=draw(st.none() | st.integers(1, microbatches)) if found.grouped else None,
        slices=draw(st.none() | st.integers(1, 7)) if found.slices > 1 else None,
        variant=draw(st.none() | st.sampled_from(found.variants)) if found.variants else None,
    )


@EVERY
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_it_is_complete_in_order_and_within_its_published_figures_or_refuses_the_shape(found, data):
    shape = data.draw(shapes(found))
    try:
        schedule = found(shape)
    except ShapeError as error:
        assert found.name in str(error)  # noqa: PT017 - both outcomes are right
        return
    assert check(schedule).problems == ()
    assert_sound(found, shape)


@EVERY
def test_it_takes_a_usual_shape_and_says_where_the_stages_are(found):
    shape = found.shape(4, 8)
    assert found(shape).placement.rank_of == found.placed(shape).rank_of


@EVERY
def test_it_is_found_by_each_of_its_names_in_any_case(found):
    for name in (found.name, *found.aliases):
        assert is_strategy(name)
        assert strategy(name) is strategy(name.upper()) is found


@EVERY
def test_it_explains_itself(found):
    for text in (found.title, found.shapes, found.bubble.text, found.memory.text, found.paper, found.idea):
        assert text.strip() == text != ""
    assert len(found.idea.splitlines()) > 1


def test_every_family_is_registered_under_names_of_its_own():
    files = [import_module(f"{strategies.__name__}.{file.name}") for file in iter_modules(strategies.__path__)]
    members = [member for file in files for member in getattr(file, "FAMILY", ())]
    assert sorted(member.name for member in members) == sorted(STRATEGIES)


@EVERY
def test_it_passes_the_checks_of_plugins(found):
    check_strategy(found, cases=60)
