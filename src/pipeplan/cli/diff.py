"""``pipeplan diff``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pipeplan.api.differences import diff_with
from pipeplan.api.outputs import save_views
from pipeplan.cli.answers import print_json, written
from pipeplan.cli.options import Debug, Json, OutputOptions, SettingOptions
from pipeplan.cli.request import request

_SETTINGS = SettingOptions()
_OUTPUT = OutputOptions()


def diff(
    planned: str,
    measured: Path,
    /,
    *,
    settings: SettingOptions = _SETTINGS,
    output: OutputOptions = _OUTPUT,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Planned against measured, op by op: what costs explain of the difference, and what waiting does.

    `--output` draws both timelines on one axis (.png .svg .pdf), or as a page that also overlays them (.html).

    Parameters
    ----------
    planned
        A schedule, simulated on the costs given (a name, or a file), or a timeline's file as it stands.
    measured
        The timeline of a run (`pipeplan run -o FILE.json`), or a folder of PyTorch's traces of it.
    """
    asked = request((planned,), settings, output, reads=[measured])
    found = diff_with(planned, measured, asked.settings)
    with written(dict.fromkeys(asked.outputs, partial(save_views, found.views()))):
        if json:
            print_json(found.to_dict())
        else:
            from pipeplan.api.tables.differences import diff_parts
            from pipeplan.api.tables.parts import show

            show(*diff_parts(found))
    return 0
