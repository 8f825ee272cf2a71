"""The timing table in the docstring of each strategy is the schedule that it builds, simulated."""

from typing import Any

import pytest

from pipeplan.strategies import STRATEGIES
from tests.strategies.tables import documented_table, timing_table

TABLES: list[tuple[str, int, int, dict[str, Any]]] = [
    ("gpipe", 3, 3, {}),
    ("looped-bfs", 2, 2, {}),
    ("kfkb", 2, 4, {}),
    ("1f1b", 3, 4, {}),
    ("eager-1f1b", 3, 5, {}),
    ("1f1b-overlap", 2, 4, {}),
    ("interleaved-1f1b", 2, 4, {}),
    ("interleaved-1f1b-overlap", 2, 2, {}),
    ("interleaved-zb", 2, 4, {}),
    ("seq1f1b", 2, 2, {}),
    ("slimpipe", 2, 1, {"slices": 2}),
    ("svpp", 2, 1, {"slices": 2}),
    ("mepipe", 2, 2, {"chunks": 1, "slices": 2}),
    ("mario", 3, 4, {}),
    ("v-min", 3, 3, {}),
    ("v-half", 3, 3, {}),
    ("zbv", 2, 4, {}),
    ("zb-h1", 3, 4, {}),
    ("zb-h2", 3, 5, {}),
    ("dualpipe", 4, 6, {}),
    ("dualpipev", 2, 3, {}),
    # These tables draw backwards as long as forwards.
    ("hanayo", 3, 4, {"backward": 1.0}),
    ("chimera", 4, 4, {"backward": 1.0}),
    ("bitpipe", 4, 4, {"backward": 1.0}),
]


@pytest.mark.parametrize(("name", "ranks", "microbatches", "options"), TABLES, ids=str)
def test_the_documented_table_is_what_the_strategy_builds(name, ranks, microbatches, options):
    strategy = STRATEGIES[name]
    shape = strategy.shape(ranks, microbatches, **{key: options[key] for key in options if key != "backward"})
    table = documented_table(strategy)
    assert table
    assert timing_table(strategy(shape), backward=options.get("backward", 2.0)) == table
