"""Gradients of PyTorch's own runtime under our files, beside those of a single process."""

import re

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from pipeplan.formats.pytorch_csv import torch_csv, torch_csv_comms, torch_csv_compute
from pipeplan.model import parse_schedule
from tests.processes import run_ranks

ORDERS = {
    "swapped": parse_schedule("0F1 0F0 0B1 0B0\n1F1 1F0 1B1 1B0"),
    "mixed": parse_schedule("0F0 0F1 0F2 0B0 0B1 0B2\n1F2 1F0 1B0 1F1 1B2 1B1"),
}
WRONG, UNREDUCED = "wrong.compute_only", "unreduced.compute_comms"


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Return the larger difference of two ranks after a step by each file."""
    folder = tmp_path_factory.mktemp("trained")
    texts = {WRONG: torch_csv(ORDERS["swapped"])}
    texts[UNREDUCED] = re.sub(r",\dREDUCE_GRAD|,\dWAIT_REDUCE_GRAD", "", torch_csv_comms(ORDERS["mixed"]))
    for name, schedule in ORDERS.items():
        texts[f"{name}.compute_only"] = torch_csv_compute(schedule)
        texts[f"{name}.compute_comms"] = torch_csv_comms(schedule)
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    ranks = run_ranks("tests.extensions.training.runtime.trained_by_csv", 2, folder)
    return {name: max(item[name] for item in ranks) for name in texts}


def test_an_order_whose_losses_come_out_of_order_trains_as_a_single_process(differences: dict[str, float]) -> None:
    assert len(differences) == 6
    assert max(value for name, value in differences.items() if name not in (WRONG, UNREDUCED)) < 1e-5


def test_pytorch_takes_the_kth_loss_for_microbatch_k(differences: dict[str, float]) -> None:
    """Once this fails, PyTorch keeps losses by microbatch, and exports need not number microbatches anew."""
    assert differences[WRONG] > 0.1


def test_pytorch_divides_gradients_by_the_microbatches_at_the_reduction(differences: dict[str, float]) -> None:
    """Without REDUCE_GRAD, gradients are as many times too large."""
    assert differences[UNREDUCED] == pytest.approx(ORDERS["mixed"].microbatches - 1, rel=1e-4)
