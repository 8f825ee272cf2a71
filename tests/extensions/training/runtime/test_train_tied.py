"""The example with tied embeddings on four processes."""

import io
import os
import re
import sys
from contextlib import redirect_stdout
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from tests.processes import free_port, run_ranks


def main(jobs: list[tuple[list[str], int]]) -> list[str]:
    """In each process: what the example prints with some arguments, each time as a job with a port of its own."""
    from examples.train_tied import main as example

    texts = []
    for arguments, port in jobs:
        os.environ["MASTER_PORT"] = str(port)
        with patch.object(sys, "argv", ["train_tied.py", *arguments]), redirect_stdout(io.StringIO()) as printed:
            assert example() == 0
        texts.append(printed.getvalue())
    return texts


def trained(*schedules: str) -> list[list[tuple[float, float]]]:
    """Loss and gradient norm of the printed steps, by schedule."""
    size = ["--steps=21", "--width=32", "--vocabulary=32", "--length=16", "--microbatches=4"]
    jobs = [([f"--schedule={schedule}", *size], free_port()) for schedule in schedules]
    printed = run_ranks("tests.extensions.training.runtime.test_train_tied", 4, jobs)[0]
    lines = [re.findall(r"^step +\d+  loss ([\d.]+)  gradient norm ([\d.]+)$", text, re.MULTILINE) for text in printed]
    return [[(float(loss), float(norm)) for loss, norm in result] for result in lines]


def test_a_tied_model_learns_on_four_processes_as_on_any_schedule() -> None:
    """1F1B and ZB-H1 hold the embedding and the head on different ranks, and train alike."""
    by_1f1b, by_zb = trained("1f1b", "zb-h1")
    assert len(by_1f1b) == 3
    assert by_1f1b[-1][0] < by_1f1b[0][0] - 0.5
    assert np.allclose(np.array(by_zb), np.array(by_1f1b), rtol=1e-3)
