"""How large a schedule can be."""

import pytest

from pipeplan.foundation.errors import ShapeError
from pipeplan.model.values import MOST_FORWARDS, require_size


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ({"ranks": 0}, "^ranks must be at least 1, not 0$"),
        ({"ranks": 10**9}, "^ranks must be at most 65,536, not 1,000,000,000$"),
        (
            {"ranks": 4, "chunks": 1, "microbatches": 10**7},
            "^4 ranks x 10000000 microbatches need 40,000,000 forwards;",
        ),
        (
            {"microbatches": 10**17, "slices": 2},
            "^100000000000000000 microbatches x 2 slices need 200,000,000,000,000,000",
        ),
        ({"slices": 2**15 + 1}, "^slices must be at most 32,768, not 32,769$"),
        ({"ranks": 2 << 99_999}, r"^ranks must be at most 65,536, not about 10\^30103$"),
        ({"chunks": 2 << 99_999}, r"^about 10\^30103 chunks need about 10\^30103 forwards"),
        ({"ranks": -(2 << 99_999)}, r"^ranks must be at least 1, not about -10\^30103$"),
    ],
)
def test_what_is_too_large_or_nothing(counts, rule):
    with pytest.raises(ShapeError, match=rule):
        require_size(**counts)


def test_what_is_planned():
    require_size(ranks=64, chunks=4, microbatches=1024)
    require_size(ranks=1, microbatches=MOST_FORWARDS)
    require_size(slices=2**15)
