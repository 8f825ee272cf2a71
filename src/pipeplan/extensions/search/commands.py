"""``pipeplan search`` and ``pareto``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from pipeplan.answers import ShownOptions, file_of, holds_schedule, require_outputs, save
from pipeplan.cli.answers import deliver, print_answer
from pipeplan.cli.options import OutputOptions, Request, SearchSettings, command, request
from pipeplan.cli.progress import progress_bar
from pipeplan.extensions.search import SearchProgress
from pipeplan.extensions.search.answers.options import ParetoOptions, ScheduleSearchOptions, SearchOptions
from pipeplan.extensions.search.answers.searches import front_found, searched
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import is_stream
from pipeplan.foundation.readable import Times, change, percent
from pipeplan.model import Schedule


@command
def search(
    *,
    options: SearchOptions,
    shown: ShownOptions,
    settings: SearchSettings,
    output: OutputOptions,
    json: bool = False,
) -> int:
    """Search for a better schedule under a memory limit.

    Starts from the published schedules that fit, improves the order of its ops by simulated annealing, and proves a lower
    bound. Ctrl-C ends the search with the best schedule so far, which `--output` writes while the search runs.
    """
    query = _request(options, settings, output)
    kept = [path for path in query.outputs if holds_schedule(path)]
    with progress_line(kept, unit=query.settings.time_unit, quiet=json) as progress:
        result = searched(options, query.settings, progress=progress, outputs=query.outputs)
    deliver(result, query.outputs, json=json, look=query.look, text=partial(print_answer, result, shown))
    return 0


@command
def pareto(
    *,
    options: ParetoOptions,
    shown: ShownOptions,
    settings: SearchSettings,
    output: OutputOptions,
    json: bool = False,
) -> int:
    """Find the Pareto front of time against memory.

    Searches for the best schedule under each of several memory limits, up to `--memory-limit`.
    """
    query = _request(options, settings, output)
    require_outputs(query.outputs, ("record", "front picture"), what="a front")
    with progress_line((), unit=query.settings.time_unit, quiet=json) as line:
        front = front_found(options, query.settings, progress=lambda _, progress: line(progress))
    deliver(front, query.outputs, json=json, look=query.look, text=partial(print_answer, front, shown))
    return 0


def _request(options: ScheduleSearchOptions, settings: SearchSettings, output: OutputOptions) -> Request:
    sources = options.start if isinstance(options.start, list | tuple) else [options.start]
    starts = [path for path in map(file_of, sources) if path is not None]
    return request((), settings, output, reads=starts)


@contextmanager
def progress_line(files: Sequence[Path], *, unit: str, quiet: bool) -> Iterator[Callable[[SearchProgress], None]]:
    """Show the progress of a search on stderr: best value, lower bound, gap, and the best published schedule."""
    keep = keep_best(files)
    with progress_bar("searching", quiet=quiet, every=EVERY_LINE) as bar:

        def show(progress: SearchProgress) -> None:
            keep(progress)
            bar.show(progress.share, progress_text(progress, unit))

        yield show


EVERY = 1.0
"""Minimum number of seconds between two writes of the best schedule so far."""

EVERY_LINE = 10.0
"""Minimum number of seconds between two lines if stderr is not a terminal."""


def keep_best(files: Sequence[Path]) -> Callable[[SearchProgress], None]:
    """Return a callback that writes each better schedule, at most once per second, and ignores errors.

    The caller writes the last schedule, and reports its errors. A pipe or a device receives only the last schedule.
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


def progress_text(progress: SearchProgress, unit: str) -> str:
    """Return the quality of the best schedule: ``best 2.115 s, -5.3% against v-half; bound 2.057 s, gap 2.8%``."""
    published = progress.published
    times = Times.of((progress.value, progress.bound), unit)
    against = "" if published is None else f", {change(progress.value / published.value - 1)} against {published.name}"
    bound = f"bound {times.text(progress.bound)}, gap {percent(progress.optimality_gap)}"
    return f"best {times.text(progress.value)}{against}; {bound}"
