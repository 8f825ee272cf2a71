"""What a file of the corpus holds, in figures that no version may change."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pipeplan
from pipeplan.answers import load_config
from pipeplan.answers.sources import read
from pipeplan.extensions.planning import read_calibration
from pipeplan.extensions.training.traces import read_run
from pipeplan.foundation.sweeps.store import Store
from pipeplan.model import Timeline, format_cells

SHAPE = ("schedule", "ranks", "stages", "microbatches", "slices", "ops", "makespan", "spans", "work", "idle", "step")
"""Of a simulation's answer: the figures that follow from the file alone. Bounds may get better, words clearer."""


def figures(path: Path, holds: str, folder: Path) -> Any:
    """The figures of a file.

    Parameters
    ----------
    path, holds
        The file, and what it holds: ``order``, ``run``, ``config``, ``layers``, ``configuration``, ``calibration`` or
        ``store``.
    folder
        An empty one, to copy into what reading may write to.
    """
    return {
        "order": _order,
        "run": _run,
        "config": _config,
        "layers": lambda file, _: _simulated(layers=pipeplan_layers(file)),
        "configuration": _configuration,
        "calibration": lambda file, _: read_calibration(file).record.to_dict(),
        "store": _store,
    }[holds](path, folder)


def _order(path: Path, _: Path) -> Any:
    """A schedule or a timeline, as commands read it."""
    found = read(path)
    timed = isinstance(found, Timeline)
    schedule = found.schedule if isinstance(found, Timeline) else found
    order = {
        "schedule": schedule.name,
        "microbatches": schedule.microbatches,
        "slices": schedule.slices,
        "placement": [list(copy) for copy in schedule.placement.rank_of],
        "rows": [" ".join(format_cells(row)) for row in schedule],
    }
    if not timed:
        return order
    assert isinstance(found, Timeline)
    return order | {
        "unit": found.unit,
        "source": found.source,
        "start": found.start.tolist(),
        "end": found.end.tolist(),
    }


def _run(path: Path, _: Path) -> Any:
    """A folder of traces, as comparisons and costs take it."""
    typical = read_run(path).typical
    return {"unit": typical.unit, "makespan": typical.makespan, "work": typical.work.tolist()}


def _config(path: Path, _: Path) -> Any:
    config = load_config(path)
    said = _simulated(config.schedule or "1f1b", **config.settings)
    return said | {"output": list(config.output), "no_visualization": config.no_visualization}


def pipeplan_layers(path: Path) -> Any:
    """The layers that a file lists."""
    from pipeplan.costs import load_layers

    return load_layers(path)


def _simulated(name: str = "1f1b", **settings: Any) -> dict[str, Any]:
    found = pipeplan.simulate(name, **settings).to_dict()
    return {key: found[key] for key in SHAPE if key in found}


def _configuration(path: Path, _: Path) -> Any:
    rows = pipeplan.estimate(path).to_dict()["rows"]
    return [{"id": row["id"], "estimated": row["refused"] is None} for row in rows]


def _store(path: Path, folder: Path) -> Any:
    """How much is stored, once by this version and once as the file says it is asked."""
    copied = Path(shutil.copy(path, folder))
    with sqlite3.connect(copied) as opened:
        (asked,) = opened.execute("SELECT asked FROM sweep").fetchone()
    opened.close()
    store = Store(copied, asked)
    try:
        return {"finished": len(store), "asked": sorted(json.loads(asked))}
    finally:
        store.close()
