"""``pipeplan compare``."""

from __future__ import annotations

from functools import partial

from pipeplan import api
from pipeplan.api import ColumnOptions, CompareOptions, require_outputs
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import LineSettings, OutputOptions, ScheduleName, command
from pipeplan.cli.request import request


@command
def compare(
    *names: ScheduleName,
    options: CompareOptions,
    shown: ColumnOptions,
    settings: LineSettings,
    output: OutputOptions,
    json: bool = False,
) -> int:
    """Compare schedules, the fastest first.

    Ignores an option such as `--chunks` for schedules that do not take it. Exits with 1 if no schedule fits in the memory
    limit.

    Parameters
    ----------
    names
        Names or files of schedules. Default: every schedule for these ranks and microbatches.
    """
    asked, columns = request(names, settings, output), shown.names
    require_outputs(asked.outputs, ("record", "report", "pictures"), what="a comparison")
    comparison = api.comparison_of(asked.names, asked.settings, leads=options.leads)
    with written(dict.fromkeys(asked.outputs, partial(comparison.save, **asked.look))):
        if json:
            print_json(comparison.to_dict())
            for name, reason in comparison.refused.items():
                tell(f"not possible here: {name}: {reason}")
            for warning in comparison.warnings:
                tell(f"warning: {warning}")
        else:
            comparison.print(columns)
            if asked.pictures:
                from pipeplan.cli.terminal_picture import show_below

                show_below((result.view() for result in comparison.results), asked.look)
    return 0 if comparison.fits else 1
