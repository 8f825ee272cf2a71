"""DeepSpeed's own pipeline engine, unchanged, trains by our schedules."""

from collections.abc import Callable
from pathlib import Path

import pytest

import pipeplan
from pipeplan.model import format_schedule
from pipeplan.strategies import Shape, strategy
from tests.processes import run_ranks

UNEQUAL_WARM_UPS = "0F0 0F1 0F2 0F3 0B0 0B1 0F4 0B2 0B3 0B4\n1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4"


def schedules(ranks: int) -> list[str]:
    """Published orders and, on two ranks, one with a warm-up of no rule."""
    shapes = [("1f1b", 1), ("1f1b", 2 * ranks), ("eager-1f1b", ranks + 1), ("eager-1f1b", 2 * ranks + 1)]
    found = [format_schedule(strategy(name)(Shape(ranks, microbatches))) for name, microbatches in shapes]
    return [*found, UNEQUAL_WARM_UPS] if ranks == 2 else found


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_losses_and_weights_are_those_of_its_own_order(ranks: int, tmp_path: Path, ran: Callable[[str], None]) -> None:
    """Of the example as a script, by a CSV with transfers, and of its function for each order."""
    plan = tmp_path / "plan.comms.csv"
    pipeplan.export("1f1b", "torch-csv-comms", ranks=ranks, microbatches=3).save(plan)
    orders = schedules(ranks)
    for code, differences in run_ranks("tests.peers.deepspeed.train", ranks, (plan, orders)):
        assert code == 0
        assert differences == [0.0] * len(orders)
    ran(
        f"PipelineEngine on {ranks} ranks by {len(orders)} of our schedules: losses and weights as by its own, bit by bit"
    )
