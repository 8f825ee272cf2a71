"""Files of published runs: three beside the checkout in ``shared/planning``, and one in this folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.published_runs.rows import RunRow, row_from

COLLECTED = Path(__file__).with_name("collected.json")
"""Further runs, in the form of the files in ``shared/planning``."""


def read_runs(path: Path) -> list[RunRow]:
    """Return the runs of a file of them. Their notes decide nothing."""
    return [row_from(row, index) for index, row in enumerate(json.loads(path.read_text())["rows"])]


def read_rivals(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return what another tool predicted for runs, by their id: ``tool``, ``step_time_s``, ``peak_memory_gib``."""
    rows = json.loads(path.read_text())["rows"]
    return {row["id"]: row["rival_prediction"] for row in rows if row.get("rival_prediction")}
