"""Gradients of orders that take microbatches out of turn, in the schedule that torchtitan builds from our settings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeplan.formats import parse_torch_csv, torch_csv
from pipeplan.model import Kind, Schedule, parse_schedule
from tests.peers.processes import run_ranks
from tests.peers.torchtitan.exports import Case, exported
from tests.peers.torchtitan.step import Step, in_one_process

SWAPPED = "0F1 0F0 0F3 0F2 0B1 0B0 0B3 0B2\n1F1 1F0 1B1 1B0 1F3 1F2 1B3 1B2"
ORDERS = {
    "in a line": SWAPPED,
    "split backwards": "0F2 0F0 0F1 0I2 0I0 0W2 0I1 0W0 0W1\n1F2 1I2 1F0 1I0 1F1 1W2 1I1 1W0 1W1",
    "on a V": "0F1 0F0 3F1 3B1 3F0 3B0 0B1 0B0\n1F1 2F1 1F0 2F0 2B1 1B1 2B0 1B0",
}
"""Orders of two ranks whose last stage does not take microbatch 0 first."""


@pytest.mark.parametrize("name", ORDERS)
def test_the_last_stage_takes_microbatches_in_turn(name: str, tmp_path: Path):
    """PyTorch keeps losses in the order in which they are made, and looks them up by microbatch."""
    case, _ = export(parse_schedule(ORDERS[name]), tmp_path)
    written = parse_torch_csv((tmp_path / "plan.csv").read_text())
    last = case.schedule.stages - 1
    rank = case.schedule.placement.rank_of[0][last]
    taken = [op.microbatch for op in written[rank] if op.stage == last and op.kind == Kind.F]
    assert taken == list(range(case.schedule.microbatches))


def test_orders_out_of_turn_train_right(tmp_path: Path, ran: Callable[[str], None]):
    steps = []
    for number, order in enumerate(ORDERS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        case, parallelism = export(parse_schedule(order), folder)
        steps.append(step(case.schedule, parallelism))
    for name, wrong in zip(ORDERS, errors(steps), strict=True):
        assert wrong < 1e-12, name
    ran(f"gradients of orders out of turn: {', '.join(ORDERS)}")


def test_microbatches_that_are_not_numbered_anew_train_on_wrong_gradients(tmp_path: Path):
    """Once this fails, PyTorch keeps losses by microbatch, and the export need not number microbatches anew."""
    case, parallelism = export(parse_schedule(SWAPPED), tmp_path)
    (tmp_path / "plan.csv").write_text(torch_csv(case.schedule))
    [wrong] = errors([step(case.schedule, parallelism)])
    assert wrong > 0.1


def export(schedule: Schedule, folder: Path) -> tuple[Case, dict[str, Any]]:
    """A case of one layer a stage, its CSV in the folder, and the parallelism that the Python export sets."""
    case = Case(schedule, (1,) * schedule.stages)
    tables: dict[str, Any] = {}
    exec(exported(case, folder, to="torchtitan-python"), tables)
    return case, tables["PARALLELISM"]


def step(schedule: Schedule, parallelism: dict[str, Any]) -> Step:
    return Step(parallelism, schedule.microbatches, tuple(schedule.placement.rank_of[0]))


def errors(steps: list[Step]) -> list[float]:
    """How far the gradients of each step are from those of one process, as a part of the largest."""
    by_rank = run_ranks("tests.peers.torchtitan.step", 2, steps)
    found = []
    for each, *parts in zip(steps, *by_rank, strict=True):
        right, trained = in_one_process(each), {name: grad for part in parts for name, grad in part.items()}
        assert trained.keys() == right.keys()
        found.append(max(float((trained[name] - grad).abs().max() / grad.abs().max()) for name, grad in right.items()))
    return found
