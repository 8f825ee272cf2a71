"""What a search shows while it runs, and the best schedule so far, kept on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pipeplan.api import save
from pipeplan.cli.progress import ProgressBar
from pipeplan.errors import PipeplanError
from pipeplan.files import is_stream
from pipeplan.kernels import are_being_compiled
from pipeplan.model import Schedule
from pipeplan.readable import Times, change, percent
from pipeplan.solver import SearchProgress

EVERY = 1.0
"""Seconds between two writes of the best schedule so far."""

EVERY_LINE = 10.0
"""Seconds between two lines where stderr is no terminal."""

GETTING_READY = "; getting ready, once on this machine"


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
    """The best, the bound, the gap and the published schedule to beat, on stderr."""

    def __init__(self, also: Callable[[SearchProgress], None], *, unit: str, quiet: bool) -> None:
        self.also, self.unit = also, unit
        self.bar = ProgressBar("searching", quiet=quiet, every=EVERY_LINE)

    def __call__(self, progress: SearchProgress) -> None:
        """Show how far the search is."""
        self.also(progress)
        waits = GETTING_READY if are_being_compiled() and progress.share < 1 else ""
        self.bar.show(progress.share, said_of(progress, self.unit) + waits)

    def close(self) -> None:
        """Take the bar away."""
        self.bar.close()


def said_of(progress: SearchProgress, unit: str) -> str:
    """How good the best is: ``best 2.115 s, -5.3% against v-half; bound 2.057 s, gap 2.8%``."""
    published = progress.published
    times = Times.of((progress.value, progress.bound), unit)
    against = "" if published is None else f", {change(progress.value / published.value - 1)} against {published.name}"
    bound = f"bound {times.text(progress.bound)}, gap {percent(progress.optimality_gap)}"
    return f"best {times.text(progress.value)}{against}; {bound}"
