"""The zero-bubble authors' schedulers on a common grid, in the conformance data."""

from __future__ import annotations

import pytest

from pipeplan.costs import Settings
from pipeplan.strategies.protocol import Strategy
from tests.conformance import conformance
from tests.slow_simulator import peak_activations, slow_simulate


def assert_matches_common_grid(strategy: Strategy, name: str, chunks: int = 1) -> None:
    """Makespan, longest span and per-rank peaks, exactly. The costs there are of one of two chunks a rank."""
    rows = [row for row in conformance("zero_bubble_schedulers.json")["rows"] if row["sched"] == name]
    assert rows
    for row in rows:
        forward, backward_input, backward_weight = (2.0 * cost for cost in row["chunk_cost"])
        schedule = strategy(strategy.shape(row["p"], row["n"], chunks))
        settings = Settings(
            forward_times=forward,
            backward_input_times=backward_input,
            backward_weight_times=backward_weight,
            backward_times=backward_input + backward_weight,
            p2p_time=float(row["comm"]),
        )
        timeline = slow_simulate(schedule, settings.costs(schedule.placement))
        assert timeline.makespan == pytest.approx(row["makespan"], rel=1e-12)
        assert timeline.spans.max() == pytest.approx(row["max_stage_span"], rel=1e-12)
        assert peak_activations(schedule) == row["peak_mem_stageF"]
