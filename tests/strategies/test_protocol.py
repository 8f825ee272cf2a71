import pytest

from pipeplan.foundation.errors import ShapeError, UnknownNameError
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
        ("interleaved-zb", {"group_size": 9}, "group size of 1 to 8 for this shape, not 9"),
        ("kfkb", {"group_size": 9}, "kfkb needs a group size of 1 to 8 for this shape, not 9"),
        ("hanayo", {"group_size": 3}, "needs a group size of 4 to 8 for this shape, not 3"),
        ("hanayo", {"chunks": 3}, "even number of chunks per rank, two per wave, not 3"),
        ("v-half", {"chunks": 1}, "2 chunk"),
        ("chimera", {"ranks": 3}, "an even number of ranks, not 3"),
        ("chimera", {"microbatches": 5}, "even number of microbatches, half for each direction, not 5"),
        ("bitpipe", {"ranks": 3, "microbatches": 6}, "an even number of ranks, not 3"),
        ("bitpipe", {"microbatches": 6}, "a multiple of 4 microbatches"),
        ("dualpipe", {"ranks": 5, "microbatches": 20}, "an even number of ranks, not 5"),
        ("dualpipe", {"microbatches": 9}, "even number of microbatches, half for each direction, not 9"),
        ("dualpipe", {"microbatches": 4}, "on 4 ranks needs at least 6 microbatches, not 4"),
        ("dualpipev", {"microbatches": 6}, "on 4 ranks needs at least 7 microbatches, not 6"),
    ],
)
def test_shapes_and_options_that_a_strategy_does_not_have(name, options, rule):
    with pytest.raises(ShapeError, match=rule):
        STRATEGIES[name](STRATEGIES[name].shape(**{"ranks": 4, "microbatches": 8} | options))


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
