"""The example with tied embeddings on four processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

ROOT = Path(__file__).parents[2]


def trained(schedule: str, steps: int) -> list[tuple[float, float]]:
    """Loss and gradient norm of the printed steps."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    command += ["examples/train_tied.py", f"--schedule={schedule}", f"--steps={steps}", "--width=32", "--vocabulary=32"]
    command += ["--length=16", "--microbatches=4"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = re.findall(r"^step +\d+  loss ([\d.]+)  gradient norm ([\d.]+)$", done.stdout, re.MULTILINE)
    return [(float(loss), float(norm)) for loss, norm in found]


def test_a_tied_model_learns_on_four_processes_as_on_any_schedule() -> None:
    """1F1B and ZB-H1 hold the embedding and the head on different ranks, and train alike."""
    by_1f1b, by_zb = trained("1f1b", 41), trained("zb-h1", 41)
    assert len(by_1f1b) == 5
    assert by_1f1b[-1][0] < by_1f1b[0][0] - 0.5
    assert np.allclose(np.array(by_zb), np.array(by_1f1b), rtol=1e-3)
