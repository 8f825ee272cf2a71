"""``pipeplan simulate``."""

from __future__ import annotations

from functools import partial

from pipeplan import api
from pipeplan.cli.answers import print_json, tell, written
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
    asked = request(() if name is None else (name,), settings, output, draws=not json)
    result = api.simulated(asked.name, asked.settings)
    with written(dict.fromkeys(asked.outputs, partial(result.save, **asked.look))) as changes:
        if json:
            print_json(result.to_dict() | {"warnings": [*result.warnings, *changes]})
            for warning in result.warnings:
                tell(f"warning: {warning}")
        else:
            if asked.pictures:
                from pipeplan.cli.terminal_picture import show_above

                show_above(result.view(), asked.look)
            result.print()
    return 0 if result.fits else 1
