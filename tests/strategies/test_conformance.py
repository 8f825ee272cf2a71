"""Orders, totals and peaks of other implementations, in the conformance data."""

from __future__ import annotations

import re

import pytest

from pipeplan.costs import Settings
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import format_cells
from pipeplan.strategies import STRATEGIES
from tests.conformance import conformance
from tests.slow_simulator import peak_activations, slow_simulate

PYTORCH = {
    "gpipe": "GPipe",
    "looped-bfs": "LoopedBFS",
    "1f1b": "1F1B",
    "interleaved-1f1b": "Interleaved1F1B",
    "interleaved-zb": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
}
VISUALIZER = [
    ("1f1b", "1f1b", 1),
    ("1f1b-overlap", "1f1b_overlap", 1),
    ("interleaved-1f1b", "interleave_v2", 2),
    ("interleaved-1f1b", "interleave_v4", 4),
    ("interleaved-1f1b-overlap", "1f1b_interleave_overlap_v2", 2),
    ("zb-h1", "zb1p", 1),
    ("dualpipe", "dualpipe", None),
    ("dualpipev", "dualpipe_v", None),
]
COMMON_GRID = [
    ("1f1b", "1f1b", 1),
    ("interleaved-1f1b", "vpp2", 2),
    ("interleaved-1f1b", "vpp4", 4),
    ("seq1f1b", "seq2", 1),
    ("zbv", "handcraft_zbv", 2),
]


@pytest.mark.parametrize(("name", "torch_name"), PYTORCH.items())
def test_rows_are_pytorchs_op_by_op(name, torch_name):
    """Bubbles are passed over."""
    orders = conformance("torch_orders.json")["orders"]
    keys = [key for key in orders if key.split("|")[0] == torch_name]
    assert keys
    for key in keys:
        ranks, microbatches, chunks = (int(number) for number in re.findall(r"\|[a-z]+(\d+)", key))
        strategy = STRATEGIES[name]
        schedule = strategy(strategy.shape(ranks, microbatches, chunks))
        expected = [[cell for cell in row.split() if cell != "."] for row in orders[key]]
        assert [format_cells(row) for row in schedule] == expected, key


def cells_of(row: str) -> list[str]:
    """A row in our notation: the visualizer's ``D7@2`` is the input backward of microbatch 7 on stage 2."""
    cells = re.sub(r"([FBDW])(\d+)@(\d+)", lambda match: match[3] + match[1].replace("D", "I") + match[2], row)
    return cells.replace("|", ";").replace(")", ")OVERLAP_F_B").split()


@pytest.mark.parametrize(("name", "theirs", "chunks"), VISUALIZER)
def test_totals_and_orders_are_the_visualizers(name, theirs, chunks):
    """At F = 1, B = 2 and an overlapped pair of 3 a stage; shapes that the visualizer could not do build or are refused."""
    data = conformance("visualizer_totals.json")
    rows = [row for row in data["totals"] + data["orders"] if row["strategy"] == theirs]
    assert {"order" in row for row in rows} == {True, False}
    strategy = STRATEGIES[name]
    for row in rows:
        shape = strategy.shape(row["devices"], row["batches"], chunks)
        if "error" in row and name.startswith("dualpipe"):
            with pytest.raises(ShapeError, match=r"at least .* microbatches, not 8"):
                strategy(shape)
            continue
        schedule = strategy(shape)
        costs = Settings(times_per="stage", p2p_time=row.get("p2p", 0.0)).costs(schedule.placement)
        assert "error" in row or slow_simulate(schedule, costs).makespan == row["total"]
        for rank, order in row.get("order", {}).items():
            assert format_cells(schedule[int(rank)]) == cells_of(order)


@pytest.mark.parametrize(("name", "scheduler", "chunks"), COMMON_GRID)
def test_makespans_spans_and_peaks_are_those_of_the_zero_bubble_authors(name, scheduler, chunks):
    """The costs there are of one of two chunks a rank."""
    rows = [row for row in conformance("zero_bubble_schedulers.json")["rows"] if row["sched"] == scheduler]
    assert rows
    for row in rows:
        forward, backward_input, backward_weight = (2.0 * cost for cost in row["chunk_cost"])
        schedule = STRATEGIES[name](STRATEGIES[name].shape(row["p"], row["n"], chunks))
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
