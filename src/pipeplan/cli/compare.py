"""``pipeplan compare`` and ``explain``."""

from __future__ import annotations

from functools import partial

from pipeplan import api
from pipeplan.api import ColumnOptions, CompareOptions, require_outputs
from pipeplan.cli.answers import deliver, print_json, tell, written
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
    query, columns = request(names, settings, output), shown.names
    require_outputs(query.outputs, ("record", "report", "pictures"), what="a comparison")
    comparison = api.comparison_of(query.names, query.settings, leads=options.leads)
    with written(dict.fromkeys(query.outputs, partial(comparison.save, **query.look))):
        if json:
            print_json(comparison.to_dict())
            for name, reason in comparison.refused.items():
                tell(f"not possible here: {name}: {reason}")
            for warning in comparison.warnings:
                tell(f"warning: {warning}")
        else:
            comparison.print(columns)
            if query.pictures:
                from pipeplan.cli.terminal_picture import show_below

                show_below((result.view() for result in comparison.results), query.look)
    return 0 if comparison.fits else 1


@command
def explain(
    name: ScheduleName | None = None,
    /,
    *,
    settings: LineSettings,
    output: OutputOptions,
    json: bool = False,
) -> int:
    """Explain why each rank idles, and what would help.

    Attributes every idle moment of a rank to one reason, shows what the critical path consists of, and simulates the
    effect of changes. A measured timeline is explained with its measured times.

    Parameters
    ----------
    name
        Name of a schedule (see `pipeplan schedules`), a CSV or JSON file with a schedule or a timeline, or a folder of
        traces. Default: 1f1b.
    """
    query = request(() if name is None else (name,), settings, output)
    explanation = api.explained(query.name, query.settings)
    warnings = [f"warning: {warning}" for warning in explanation.result.warnings]
    deliver(explanation, query.outputs, json=json, look=query.look, messages=warnings)
    return 0 if explanation.result.fits else 1
