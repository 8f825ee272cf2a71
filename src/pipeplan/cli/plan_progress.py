"""What a plan, or many estimates, show while they are made."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from pipeplan.api.planning.planned import PlanProgress
from pipeplan.readable import time_text


class ShareLine:
    """A bar with a share that is done on stderr; nothing where that is no terminal."""

    def __init__(self, *, quiet: bool, task: str) -> None:
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            disable=quiet or not sys.stderr.isatty(),
            transient=True,
        )
        self.task = self.bar.add_task(task, total=1.0)
        self.bar.start()

    def share(self, share: float) -> None:
        """Show how far it is."""
        self.bar.update(self.task, completed=share)

    def plan(self, progress: PlanProgress) -> None:
        """Show how far a plan is, with the best so far."""
        best = "" if progress.best is None else f"  best {time_text(progress.best.step_time, 's')}"
        said = f"{progress.phase}: {progress.estimated:,} estimated{best}"
        self.bar.update(self.task, completed=progress.share, description=said)

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()
