"""Gradients of PyTorch's own runtime under our files, beside those of a single process."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from pipeplan.formats.pytorch_csv import torch_csv, torch_csv_comms, torch_csv_compute
from pipeplan.model import Schedule, parse_schedule

ROOT = Path(__file__).parents[2]

SWAPPED = parse_schedule("0F1 0F0 0B1 0B0\n1F1 1F0 1B1 1B0")
MIXED = parse_schedule("0F0 0F1 0F2 0B1 0B0 0B2\n1F2 1F0 1B0 1F1 1B2 1B1".replace("0B1 0B0", "0B0 0B1"))


def differences(folder: Path, text: str, form: str, microbatches: int) -> list[float]:
    """Return the difference of each of two ranks after a step by a file."""
    csv, answer = folder / f"{form}.csv", folder / form
    csv.write_text(text)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-m", "tests.runtime.trained_by_csv", str(csv), form, str(microbatches), str(answer)]
    started = [
        subprocess.Popen(
            command, cwd=ROOT, env=os.environ | place | {"RANK": str(rank)}, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=240)[1] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert not any(process.returncode for process in started), errors
    return [float(Path(f"{answer}.{rank}").read_text()) for rank in range(2)]


@pytest.mark.parametrize("schedule", [SWAPPED, MIXED], ids=["swapped", "mixed"])
def test_an_order_whose_losses_come_out_of_order_trains_as_a_single_process(tmp_path: Path, schedule: Schedule) -> None:
    exported = {"compute_only": torch_csv_compute(schedule), "compute_comms": torch_csv_comms(schedule)}
    for form, text in exported.items():
        assert max(differences(tmp_path, text, form, schedule.microbatches)) < 1e-5, form


def test_pytorch_takes_the_kth_loss_for_microbatch_k(tmp_path: Path) -> None:
    """Once this fails, PyTorch keeps losses by microbatch, and exports need not number microbatches anew."""
    assert max(differences(tmp_path, torch_csv(SWAPPED), "compute_only", 2)) > 0.1
