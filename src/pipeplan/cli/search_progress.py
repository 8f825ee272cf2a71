"""What a search shows while it runs, and the best schedule so far, kept on disk."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from pipeplan.api import save
from pipeplan.api.tables.parts import number
from pipeplan.errors import PipeplanError
from pipeplan.files import is_stream
from pipeplan.model import Schedule
from pipeplan.solver import SearchProgress

EVERY = 1.0
"""Seconds between two writes of the best schedule so far."""


def keep_best(files: Sequence[Path]) -> Callable[[SearchProgress], None]:
    """Write each better schedule to the files, at most once a second; the caller writes the last one, and says what fails.

    A pipe or a device takes what is written once: it gets the last one alone.
    """
    state = {"value": float("inf"), "time": -EVERY}

    def keep(progress: SearchProgress) -> None:
        now = time.monotonic()
        if files and progress.value < state["value"] and now - state["time"] >= EVERY:
            state.update(value=progress.value, time=now)
            best: Schedule = progress.best()
            for path in files:
                with suppress(PipeplanError, OSError):
                    if not is_stream(path):
                        save(best.renamed("search"), path)

    return keep


class ProgressLine:
    """A bar with the best, the bound and the gap on stderr; nothing where that is no terminal."""

    def __init__(self, also: Callable[[SearchProgress], None], *, quiet: bool) -> None:
        self.also = also
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            disable=quiet or not sys.stderr.isatty(),
            transient=True,
        )
        self.task = self.bar.add_task("searching", total=1.0)
        self.bar.start()

    def __call__(self, progress: SearchProgress) -> None:
        """Show how far the search is."""
        self.also(progress)
        self.bar.update(
            self.task,
            completed=progress.share,
            description=f"best {number(progress.value)}  bound {number(progress.bound)}  gap {progress.optimality_gap:.2%}",
        )

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()
