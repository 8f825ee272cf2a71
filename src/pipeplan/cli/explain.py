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
    """Why each rank idles, what the critical path is made of, and what would help.

    Every idle moment has one reason, and the reasons of a rank add up to its idle time. What-ifs are simulated, not
    estimated. A measured timeline is explained as it was measured.

    Parameters
    ----------
    name
        A schedule's name (see `pipeplan schedules`), a CSV or JSON file with a schedule or a timeline, or the folder of
        a run's traces. Default: 1f1b.
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
