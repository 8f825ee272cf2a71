import re

import numpy as np
import pytest

from pipeplan.costs import Limits, Settings
from pipeplan.model import Timeline
from pipeplan.simulation import simulate
from pipeplan.strategies import STRATEGIES, Strategy


@pytest.mark.parametrize(
    ("name", "ranks", "microbatches", "limit"),
    [("zb-auto", 3, 4, 3.0), ("zbv-heuristic", 2, 3, 2.0)],
)
def test_the_documented_timing_table_is_what_it_builds(name: str, ranks: int, microbatches: int, limit: float):
    strategy = STRATEGIES[name]
    shape = strategy.shape(ranks, microbatches)
    costs = Settings(times_per="stage").costs(strategy.placed(shape))
    schedule = strategy(shape, costs, Limits(np.full(ranks, limit), in_activations=True))
    assert drawn(simulate(schedule, costs).timeline) == documented(strategy)


def drawn(timeline: Timeline) -> list[dict[int, str]]:
    """Each rank's ops by their start."""
    rows: list[dict[int, str]] = [{} for _ in range(timeline.schedule.ranks)]
    for op, rank, start in zip(timeline.schedule.columns, timeline.schedule.rank, timeline.start, strict=True):
        rows[rank][int(start)] = str(op)
    return rows


def documented(strategy: Strategy) -> list[dict[int, str]]:
    """The same from the table in the docstring of the builder, in columns of four characters."""
    rows = re.findall(r"^ +rank \d+   (.*)$", strategy.idea, re.MULTILINE)
    cells = [[row[start : start + 4].strip(" .") for start in range(0, len(row), 4)] for row in rows]
    return [{start: cell for start, cell in enumerate(row) if cell} for row in cells]
