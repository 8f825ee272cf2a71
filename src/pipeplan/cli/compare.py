"""``pipeplan compare``: several schedules."""

from __future__ import annotations

from pipeplan import answers
from pipeplan.answers import AllowOptions, ColumnOptions, ShownOptions, require_outputs
from pipeplan.cli.answers import deliver, show_below
from pipeplan.cli.options import LineSettings, OutputOptions, ScheduleName, command, request


@command
def compare(
    *names: ScheduleName,
    options: AllowOptions,
    columns: ColumnOptions,
    shown: ShownOptions,
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
        Names or files of schedules. Default: every schedule for these ranks and microbatches, those that need nothing of
        the model and the trainer first.
    """
    query, named = request(names, settings, output), columns.names
    require_outputs(query.outputs, ("record", "report", "pictures"), what="a comparison")
    comparison = answers.comparison_of(query.names, query.settings, allow=options.allow)

    def show() -> None:
        comparison.print(named, all=shown.all, verbose=shown.verbose)
        if query.pictures:
            show_below((answers.view_of_result(result) for result in comparison.results), query.look)

    refusals = [f"not possible here: {name}: {reason}" for name, reason in comparison.refused.items()]
    deliver(comparison, query.outputs, json=json, look=query.look, messages=refusals, text=show)
    return 0 if comparison.fits else 1
