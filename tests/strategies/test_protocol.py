from itertools import product

import pytest

from pipeplan.checking import check
from pipeplan.errors import ShapeError, UnknownNameError
from pipeplan.strategies import STRATEGIES, strategy


@pytest.mark.parametrize(
    ("name", "options", "rule"),
    [
        ("zbv", {"chunks": 3}, "zbv needs 2 chunk"),
        ("1f1b", {"slices": 2}, "does not support sequence slices"),
        ("1f1b", {"group_size": 4}, "does not run microbatches in groups"),
        ("interleaved-1f1b", {"group_size": 0}, "group size must be at least 1, not 0"),
        ("1f1b", {"chunks": 0}, "1f1b needs 1 chunk per rank, not 0$"),
        (
            "interleaved-1f1b",
            {"chunks": 10**9},
            "4 ranks x 1000000000 chunks x 8 microbatches need 32,000,000,000 forwards",
        ),
        ("seq1f1b", {"slices": 2**15 + 1}, "slices must be at most 32,768, not 32,769"),
    ],
)
def test_options_that_a_strategy_does_not_have(name, options, rule):
    with pytest.raises(ShapeError, match=rule):
        STRATEGIES[name].shape(4, 8, **options)


def test_slices_that_nobody_asked_for_count_too():
    with pytest.raises(ShapeError, match="10000 ranks x 2000 microbatches x 2 slices need 40,000,000 forwards"):
        STRATEGIES["seq1f1b"].shape(10_000, 2000)


def test_names_aliases_and_the_nearest_name():
    assert strategy("ZBVZeroBubble").name == strategy("zbv").name == "zbv"
    assert strategy("1f1b_interleave_overlap").name == "interleaved-1f1b-overlap"
    with pytest.raises(UnknownNameError, match="did you mean 'zb-h1'"):
        strategy("zb-h11")
    with pytest.raises(UnknownNameError, match="variant of interleaved-1f1b 'megatrom'; did you mean 'megatron'"):
        STRATEGIES["interleaved-1f1b"].shape(4, 8, variant="megatrom")


def test_a_name_in_any_case_means_one_strategy():
    owners: dict[str, set[str]] = {}
    for found in STRATEGIES.values():
        for name in (found.name, *found.aliases):
            owners.setdefault(name.lower(), set()).add(found.name)
    assert all(len(names) == 1 for names in owners.values())


def test_a_strategy_makes_a_right_schedule_of_each_shape_that_it_accepts_and_refuses_the_others():
    for rule, ranks, microbatches, chunks in product(
        STRATEGIES.values(), range(1, 6), (1, 2, 3, 4, 6, 9), (None, 1, 3)
    ):
        if rule.looks_at_costs or (chunks is not None and rule.fixed_chunks):
            continue
        shape = rule.shape(ranks, microbatches, chunks)
        if rule.accepts(shape):
            check(rule(shape)).require_valid()
        else:
            with pytest.raises(ShapeError, match=f"^{rule.name} "):
                rule(shape)
