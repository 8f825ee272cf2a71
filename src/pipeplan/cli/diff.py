"""``pipeplan diff``."""

from __future__ import annotations

from pathlib import Path

from pipeplan import api
from pipeplan.api import as_keywords
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
    """Planned against measured, op by op: how much of the error op times explain, and how much waiting.

    `--output` draws both timelines on one axis; an .html page also overlays them.

    Parameters
    ----------
    planned
        A schedule (a name or a file), simulated on the costs given; or a timeline's file, as it stands.
    measured
        The timeline of a run (`pipeplan run -o FILE.json`), or the folder of its traces: of PyTorch's profiler, packed or
        not, torchtitan's, or Nsight Systems' export. Of several steps and replicas, the timeline of median length.
    """
    asked = request((planned,), settings, output, reads=[measured])
    found = api.diff(planned, measured, **as_keywords(asked.settings))
    with written(dict.fromkeys(asked.outputs, found.save)):
        if json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0
