"""``pipeplan search``, ``pareto`` and ``steady-state``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pipeplan.api import file_of, holds_schedule, require_outputs
from pipeplan.api.searching.options import ParetoOptions, ScheduleSearchOptions, SearchOptions, SteadyStateOptions
from pipeplan.api.searching.searches import front_found, searched
from pipeplan.api.searching.steady_states import steady_state_found
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import LineSettings, OutputOptions, command
from pipeplan.cli.request import Request, request
from pipeplan.cli.search_progress import ProgressLine, keep_best


@command
def search(*, options: SearchOptions, settings: LineSettings, output: OutputOptions, json: bool = False) -> int:
    """Search for a better schedule under a memory limit.

    Starts from every published schedule that fits, improves the order of its ops by simulated annealing, and proves a lower
    bound. Ctrl-C ends the search with the best schedule so far, which `--output` writes while the search runs.
    """
    asked = _request(options, settings, output)
    with _progress(asked, [path for path in asked.outputs if holds_schedule(path)], quiet=json) as progress:
        result = searched(options, asked.settings, progress=progress, outputs=asked.outputs)
    with written(dict.fromkeys(asked.outputs, partial(result.save, **asked.look))) as changes:
        if json:
            print_json(result.to_dict() | {"warnings": [*result.warnings, *changes]})
            for warning in result.warnings:
                tell(f"warning: {warning}")
        else:
            result.print()
    return 0


@command
def pareto(*, options: ParetoOptions, settings: LineSettings, output: OutputOptions, json: bool = False) -> int:
    """Find the Pareto front of time against memory.

    Searches for the best schedule under each of several memory limits, and without a limit.
    """
    asked = _request(options, settings, output)
    require_outputs(asked.outputs, ("record", "front picture"), what="a front")
    with _progress(asked, [], quiet=json) as line:
        front = front_found(options, asked.settings, progress=lambda _, progress: line(progress))
    with written(dict.fromkeys(asked.outputs, partial(front.save, **asked.look))):
        if json:
            print_json(front.to_dict())
        else:
            front.print()
    return 0


@command
def steady_state(
    *, options: SteadyStateOptions, settings: LineSettings, output: OutputOptions, json: bool = False
) -> int:
    """Find the shortest repeating pattern: the time of each further microbatch.

    Proves a lower bound on the period of every repeating schedule, too.
    """
    asked = request((), settings, output)
    require_outputs(asked.outputs, ("record",), what="a steady state")
    found = steady_state_found(options, asked.settings)
    with written(dict.fromkeys(asked.outputs, partial(found.save, **asked.look))):
        if json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0


def _request(options: ScheduleSearchOptions, settings: LineSettings, output: OutputOptions) -> Request:
    sources = options.start if isinstance(options.start, list | tuple) else [options.start]
    starts = [path for path in map(file_of, sources) if path is not None]
    return request((), settings, output, reads=starts, writes=[] if options.kept_in is None else [options.kept_in])


@contextmanager
def _progress(asked: Request, files: Sequence[Path], *, quiet: bool) -> Iterator[ProgressLine]:
    line = ProgressLine(keep_best(files), unit=asked.settings.time_unit, quiet=quiet)
    try:
        yield line
    finally:
        line.close()
