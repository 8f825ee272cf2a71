"""What every strategy must keep, over random shapes, judged by the slow simulator; registration is all that a test needs."""

from importlib import import_module
from itertools import product
from pkgutil import iter_modules

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan import strategies
from pipeplan.checking import check
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Kind, Schedule
from pipeplan.strategies import STRATEGIES, Shape, Strategy, is_strategy, registry, strategy
from tests.slow_simulator import peak_activations, worst_bubble

FROM_COSTS = ("zb-auto", "zbv-heuristic")
"""Strategies whose figures depend on costs and limits."""


def assert_sound(strategy: Strategy, shape: Shape) -> None:
    """Complete, on the right ranks, free of deadlock (the slow simulator raises), with the published figures."""
    schedule = strategy(shape)
    assert schedule.name == strategy.name
    assert schedule.placement.rank_of == strategy.placed(shape).rank_of
    assert_complete(schedule, shape)
    idle, peak = worst_bubble(schedule), max(peak_activations(schedule))
    bubble, memory = strategy.bubble.value(shape), strategy.memory.value(shape)
    assert idle <= bubble + 1e-9
    assert peak <= memory + 1e-9
    if strategy.name not in FROM_COSTS:
        assert peak == pytest.approx(memory)
    if strategy.name not in FROM_COSTS and has_exact_idle_time(strategy, shape):
        assert idle == pytest.approx(bubble)


def has_exact_idle_time(strategy: Strategy, shape: Shape) -> bool:
    """Return whether the formula gives the idle time itself, and not only an upper bound on it."""
    whole = shape.microbatches % shape.ranks == 0
    if strategy.name.startswith("interleaved"):
        return shape.group_size is None and shape.variant is None and (whole or shape.microbatches < shape.ranks)
    return "at most" not in strategy.bubble.text or (whole and strategy.name == "chimera")


def assert_complete(schedule: Schedule, shape: Shape) -> None:
    """Every forward once, and every backward once, full or in two halves; each op on the rank that holds its stage."""
    kinds: dict[tuple[int, int, int], list[Kind]] = {}
    for rank, row in enumerate(schedule):
        for op in row:
            kinds.setdefault((op.stage, op.microbatch, op.slice), []).append(op.kind)
            copy = op.microbatch * schedule.placement.copies // shape.microbatches
            assert schedule.placement.rank_of[copy][op.stage] == rank
    stages = shape.ranks * shape.chunks
    assert set(kinds) == set(product(range(stages), range(shape.microbatches), range(shape.slices)))
    passes = [sorted(kind for kind in row if kind != Kind.R) for row in kinds.values()]
    assert all(row in ([Kind.F, Kind.B], [Kind.F, Kind.I, Kind.W]) for row in passes)


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
def test_it_is_found_by_each_of_its_names_in_any_case_and_without_hyphens(rule):
    for name in (rule.name, *rule.aliases):
        assert is_strategy(name)
        for spelling in (name, name.upper(), name.replace("-", ""), name.replace("-", "_"), f"Schedule{name}"):
            assert strategy(spelling) is rule


def test_the_table_of_families_has_every_file_and_all_of_its_names():
    files = {
        file.name: import_module(f"{strategies.__name__}.{file.name}") for file in iter_modules(strategies.__path__)
    }
    families = {
        name: tuple(rule.name for rule in file.FAMILY) for name, file in files.items() if hasattr(file, "FAMILY")
    }
    assert families == registry._FAMILIES
