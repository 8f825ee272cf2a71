"""Progress of a command on stderr: a bar in a terminal, otherwise an occasional line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from pipeplan.cli.answers import tell

EVERY = 5.0
"""Minimum number of seconds between two lines if stderr is not a terminal; a shorter command prints none."""

FEW_REFRESHES = 2.0
"""Refreshes of the bar per second while the cores are being measured."""

_WIDE = 110
"""Minimum number of columns for a long bar."""


class ProgressBar:
    """Progress bar with a description; its share never decreases."""

    def __init__(
        self,
        task: str,
        *,
        quiet: bool,
        every: float = EVERY,
        refreshes: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = not quiet and not sys.stderr.isatty()
        self._every, self._clock = every, clock
        self._told = clock()
        self._share = 0.0
        self._line = ""
        console = Console(file=sys.stderr)
        self._bar = Bar(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=30 if console.width >= _WIDE else 10),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=quiet or self._lines,
            transient=True,
            refresh_per_second=refreshes,
        )
        self._task = self._bar.add_task(task, total=1.0)
        self._bar.start()

    def show(self, share: float, description: str) -> None:
        """Show the share that is done, from 0 to 1, and a description."""
        self._share = max(self._share, min(share, 1.0))
        self._bar.update(self._task, completed=self._share, description=description)
        line = f"{description} ({self._share:.0%})"
        if self._lines and self._clock() - self._told >= self._every and line != self._line:
            self._told, self._line = self._clock(), line
            tell(line)

    def close(self) -> None:
        """Remove the bar."""
        if not self._bar.disable:  # before rich 14.3, stopping a disabled bar prints an empty line
            self._bar.stop()


@contextmanager
def progress_bar(task: str, *, quiet: bool, every: float = EVERY, refreshes: float = 10.0) -> Iterator[ProgressBar]:
    """Show a bar while the block runs."""
    bar = ProgressBar(task, quiet=quiet, every=every, refreshes=refreshes)
    try:
        yield bar
    finally:
        bar.close()
