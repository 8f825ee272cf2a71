"""Published runs with what only their notes say, as fields of the rows that ``pipeplan estimate`` reads.

The rows stand beside the checkout, in ``shared/planning``. Their notes tell what a run recomputed, in which of torchtitan's
settings it ran, and which rank a log is of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeplan.planner import RunRow, row_from
from pipeplan.planner.runs.settings import recompute_of


def read_runs(path: Path) -> list[RunRow]:
    """Return the runs of a file of them, with what their notes say."""
    return [row_from(with_notes(row), index) for index, row in enumerate(json.loads(path.read_text())["rows"])]


def read_rivals(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return what another tool predicted for runs, by their id: ``tool``, ``step_time_s``, ``peak_memory_gib``."""
    rows = json.loads(path.read_text())["rows"]
    return {row["id"]: row["rival_prediction"] for row in rows if row.get("rival_prediction")}


def with_notes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with fields for what its notes say."""
    found = dict(row)
    notes, title = str(row.get("notes") or ""), str(row["source"]["title"])
    if not row.get("recompute") and recompute_of(notes) is not None:
        found["recompute"] = notes
    if title.startswith("torchtitan") and not row.get("framework"):
        found["framework"] = f"{title} {row.get('precision') or ''} {notes}"
    if "reporting rank" in notes:
        found["measured"] = {**row["measured"], "peak_rank": row["parallel"]["pp"] - 1}
    return found
