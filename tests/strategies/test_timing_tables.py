"""The timing table in the docstring of each strategy is the schedule that it builds, simulated."""

import re

import numpy as np
import pytest

from pipeplan.costs import Limits, Settings
from pipeplan.model import Schedule, Timeline
from pipeplan.strategies import STRATEGIES, Strategy
from tests.slow_simulator import slow_simulate


def picture(timeline: Timeline) -> str:
    """Return a row per rank, with a column per unit of time.

    An op stands where it starts and is followed by ``--`` as long as it lasts; ``.`` is idle. An overlapped pair stands as
    ``(0F2 7B1)`` in its first two columns.
    """
    schedule = timeline.schedule
    rows = [["."] * round(timeline.makespan) for _ in range(schedule.ranks)]
    for position, op in enumerate(schedule.columns):
        row, start, end = rows[schedule.rank[position]], round(timeline.start[position]), round(timeline.end[position])
        if schedule.joined[position]:
            row[start : start + 2] = ["(" + row[start], f"{op})"]
        else:
            row[start:end] = [str(op), *["--"] * (end - start - 1)]
    width = max(len(cell) for row in rows for cell in row)
    lines = (" ".join(cell.ljust(width) for cell in row).rstrip() for row in rows)
    return "\n".join(f"rank {rank} | {line}" for rank, line in enumerate(lines))


def schedule_of_table(rule: Strategy, table: str) -> Schedule:
    """Return the schedule of the shape that a table shows; a rule that looks at costs gets p activations per rank."""
    ops = [[int(part or 0) for part in op] for op in re.findall(r"(\d+)[FBIW](\d+)(?:\.(\d+))?", table)]
    stages, microbatches, slices = (max(column) + 1 for column in zip(*ops, strict=True))
    ranks = len(table.splitlines())
    chunks = None if rule.fixed_chunks else stages // ranks
    shape = rule.shape(ranks, microbatches, chunks, slices=slices if rule.slices > 1 else None)
    costs = Settings(times_per="stage").costs(rule.placed(shape))
    return rule(shape, costs, Limits(np.full(ranks, float(ranks)), in_activations=True))


@pytest.mark.parametrize("rule", STRATEGIES.values(), ids=lambda rule: rule.name)
def test_the_documented_table_is_what_the_strategy_builds(rule: Strategy) -> None:
    lines = [line.strip() for line in rule.idea.splitlines()]
    table = "\n".join(line for line in lines if line.startswith("rank "))
    schedule = schedule_of_table(rule, table)
    # Times are those of a stage and a slice. Some tables draw backwards as long as forwards.
    backward = 2.0 if "--" in table or "I" in table else 1.0
    settings = Settings(times_per="stage", forward_times=schedule.slices, backward_times=backward * schedule.slices)
    assert picture(slow_simulate(schedule, settings.costs(schedule.placement))) == table
