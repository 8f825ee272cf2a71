"""``pipeplan explain``."""

from __future__ import annotations

from functools import partial

from pipeplan import api
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import LineSettings, OutputOptions, ScheduleName, command
from pipeplan.cli.request import request


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
    asked = request(() if name is None else (name,), settings, output)
    explanation = api.explained(asked.name, asked.settings)
    with written(dict.fromkeys(asked.outputs, partial(explanation.save, **asked.look))):
        if json:
            print_json(explanation.to_dict())
            for warning in explanation.result.warnings:
                tell(f"warning: {warning}")
        else:
            explanation.print()
    return 0 if explanation.result.fits else 1
