"""All files of published runs, and the source of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.published_runs.files import COLLECTED, read_rivals, read_runs
from benchmarks.published_runs.rows import RunRow

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "planning"
SHARED = tuple(FOLDER / f"published_runs{number}.json" for number in ("", "_2", "_3"))
"""Files beside the checkout."""

RUNS = (*SHARED, COLLECTED)
"""All files."""


def published() -> tuple[list[RunRow], dict[str, Mapping[str, Any]]]:
    """The rows of all files of published runs, and what other tools predicted for them, by id."""
    rows = [row for path in RUNS for row in read_runs(path)]
    rivals = {run: prediction for path in RUNS for run, prediction in read_rivals(path).items()}
    return rows, rivals


def source_of(row: RunRow) -> str:
    """The publication of a row."""
    title = row.source.split(",")[0].split(" (")[0]
    return "torchtitan benchmarks" if title.startswith("torchtitan") else title
