"""The size of a request: never less than the ops that it would make, and known from its numbers alone."""

from __future__ import annotations

from contextlib import suppress

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from pipeplan import Settings, schedules, simulate
from pipeplan.extensions.web.schedules import MOST_OPS, ops_at_most, require_servable, servable
from pipeplan.foundation.errors import InputError, PipeplanError, ShapeError

NAMES = [entry.name for entry in schedules()]


@pytest.mark.parametrize("communication", ["edge", "blocking"])
def test_no_schedule_has_more_ops_than_it_is_weighed_with(communication):
    settings = Settings(ranks=4, microbatches=8, communication=communication)
    weighed = 0
    for name in NAMES:
        with suppress(PipeplanError):  # not every schedule has blocking messages
            result = simulate(name, ranks=4, microbatches=8, communication=communication)
            assert len(result.schedule) <= ops_at_most(name, settings), name
            weighed += 1
    assert weighed > 15


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (Settings(ranks=1000, microbatches=1000), ["1f1b"]),
        (Settings(ranks=100, microbatches=1000), NAMES),
        (Settings(ranks=10, microbatches=100, chunks=1000), ["interleaved-1f1b"]),
        (Settings(ranks=10, microbatches=100, slices=1000), ["seq1f1b"]),
        (Settings(stages=60_000, microbatches=100), ["1f1b"]),
        (Settings(ranks=10_000), []),
    ],
)
def test_what_is_too_large_is_refused(settings, names):
    with pytest.raises(ShapeError, match=f"the limit is {MOST_OPS:,}"):
        require_servable(names, settings)


def test_what_is_not_is_not():
    require_servable(["1f1b"], Settings(ranks=64, microbatches=10_000))
    require_servable(["1f1b"], Settings(ranks=64, microbatches=1000, chunks=1000))


def test_of_a_large_shape_the_smallest_schedules_that_need_nothing_stay():
    settings = Settings(ranks=64, microbatches=512)
    kept, left_out = servable(NAMES, settings, frozenset())
    assert {"1f1b", "zb-h1", "zbv"} <= set(kept)
    assert {"slimpipe", "mepipe", "zb-auto"} <= set(left_out)
    assert sum(ops_at_most(name, settings) for name in kept) <= MOST_OPS
    assert [name for name in NAMES if name in {*kept, *left_out}] == NAMES
    assert servable(NAMES, Settings(ranks=8, microbatches=24), frozenset()) == (NAMES, [])
    with pytest.raises(ShapeError, match="too large to serve"):
        servable(NAMES, Settings(ranks=10_000, microbatches=100), frozenset())


def test_names_are_known():
    with pytest.raises(InputError, match="did you mean 'zbv'"):
        require_servable(["zbw"], Settings())
