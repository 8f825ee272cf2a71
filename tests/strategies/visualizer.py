"""The visualizer's totals and orders in the conformance data."""

from __future__ import annotations

import re
from typing import Any

from pipeplan.costs import Settings
from pipeplan.model import Schedule, format_cells
from pipeplan.strategies.protocol import Strategy
from tests.conformance import conformance
from tests.slow_simulator import slow_simulate

_OP = re.compile(r"([FB])(\d+)@(\d+)")


def assert_matches_visualizer(strategy: Strategy, name: str, chunks: int = 1) -> None:
    """Totals at F = 1, B = 2 and an overlapped pair of 3 a stage, and orders; shapes it could not do must only build."""
    data = conformance("visualizer_totals.json")
    totals = [row for row in data["totals"] if row["strategy"] == name]
    orders = [row for row in data["orders"] if row["strategy"] == name]
    assert totals
    assert orders
    for row in totals + orders:
        schedule = strategy(strategy.shape(row["devices"], row["batches"], chunks))
        total = slow_simulate(schedule, Settings(times_per="stage").costs(schedule.placement)).makespan
        assert "error" in row or total == row["total"]
    for row in orders:
        _assert_same_order(strategy(strategy.shape(row["devices"], row["batches"], chunks)), row)


def _assert_same_order(schedule: Schedule, row: dict[str, Any]) -> None:
    for rank, ops in row["order"].items():
        cells = _OP.sub(r"\3\1\2", ops).replace("|", ";").replace(")", ")OVERLAP_F_B").split()
        assert format_cells(schedule[int(rank)]) == cells
