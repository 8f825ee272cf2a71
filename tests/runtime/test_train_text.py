"""The example that trains on text, in a short form."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("ortools", reason="the search needs OR-Tools")

import pipeplan
from pipeplan.model import Timeline

ROOT = Path(__file__).parents[2]
SHORT = {"steps": 3, "microbatches": 4, "length": 8, "width": 16, "blocks": 3, "vocabulary": 64, "evaluations": 200}


def test_the_guide_has_the_whole_script() -> None:
    script = (ROOT / "examples" / "train_text.py").read_text()
    assert f"```python\n{script.rstrip()}\n```\n" in (ROOT / "docs" / "how-to" / "training.md").read_text()


def test_all_schedules_train_alike(tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text("The quick brown fox jumps over the lazy dog; the dog does not mind.\n" * 20)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["examples/train_text.py", str(text), "--out", str(tmp_path)]
    command += [f"--{name}={value}" for name, value in SHORT.items()]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    for line, name in zip(lines[1:4], ("1f1b", "zb-h1", "searched"), strict=True):
        found = re.fullmatch(rf"{name} +step [\d.]+ s \([\d.]+ to [\d.]+\)  loss ([\d.]+) to ([\d.]+)", line)
        assert found, line
        assert float(found[2]) < float(found[1])
    assert re.fullmatch(r"searched against 1f1b: [+-][\d.]+% step time; [\d.]+ s were predicted", lines[4])
    assert float(lines[5].rpartition(" ")[2]) < 1e-5
    measured = pipeplan.read(tmp_path / "searched.json")
    assert isinstance(measured, Timeline)
    assert measured.source == "measured"
    assert pipeplan.read(tmp_path / "found.json").makespan > 0  # type: ignore[union-attr]
