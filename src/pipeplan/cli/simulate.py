"""``pipeplan simulate``."""

from __future__ import annotations

from functools import partial

from pipeplan import api
from pipeplan.cli.answers import deliver
from pipeplan.cli.options import LineSettings, OutputOptions, ScheduleName, command
from pipeplan.cli.request import request


@command
def simulate(
    name: ScheduleName | None = None,
    /,
    *,
    settings: LineSettings,
    output: OutputOptions,
    json: bool = False,
) -> int:
    """Simulate one schedule: times, bubble, memory, lower bound and picture.

    Prints a plain-text diagram and a table. Without `--output` and `--json` it also draws `pipeline_NAME.png`;
    `--no-visualization` omits both pictures. Exits with 1 if a rank exceeds its memory limit.

    Parameters
    ----------
    name
        Name of a schedule (see `pipeplan schedules`), a CSV, JSON or text file with one, or `-` for standard input.
        Default: 1f1b.
    """
    query = request(() if name is None else (name,), settings, output, draws=not json)
    result = api.simulated(query.name, query.settings)
    diagram = None
    if query.pictures and not json:
        from pipeplan.cli.terminal_picture import show_above

        diagram = partial(show_above, result.view(), query.look)
    warnings = [f"warning: {warning}" for warning in result.warnings]
    deliver(result, query.outputs, json=json, look=query.look, messages=warnings, above=diagram)
    return 0 if result.fits else 1
