"""The example that trains on text, in a short form."""

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("ortools", reason="the search needs OR-Tools")

import pipeplan
from tests.processes import run_ranks

SHORT = {"steps": 3, "microbatches": 4, "length": 8, "width": 16, "blocks": 3, "vocabulary": 64, "evaluations": 100}


def main(words: list[str]) -> str:
    """In each process: what the example prints with some arguments."""
    from examples.train_text import main as example

    with patch.object(sys, "argv", ["train_text.py", *words]), redirect_stdout(io.StringIO()) as printed:
        assert example() == 0
    return printed.getvalue()


def test_all_schedules_train_alike(tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text("The quick brown fox jumps over the lazy dog; the dog does not mind.\n" * 20)
    words = [str(text), "--out", str(tmp_path), *(f"--{name}={value}" for name, value in SHORT.items())]
    lines = run_ranks("tests.extensions.training.runtime.test_train_text", 2, words)[0].splitlines()
    for line, name in zip(lines[1:4], ("1f1b", "zb-h1", "searched"), strict=True):
        result = re.fullmatch(rf"{name} +step [\d.]+ s \([\d.]+ to [\d.]+\)  loss ([\d.]+) to ([\d.]+)", line)
        assert result, line
        assert float(result[2]) < float(result[1])
    assert re.fullmatch(r"searched against 1f1b: [+-][\d.]+% step time; [\d.]+ s were predicted", lines[4])
    assert float(lines[5].rpartition(" ")[2]) < 1e-5
    assert pipeplan.read_timeline(tmp_path / "searched.json").source == "measured"
    assert pipeplan.read_timeline(tmp_path / "found.json").makespan > 0
