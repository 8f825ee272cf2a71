"""``pipeplan export``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from pipeplan.api.commands import export_with
from pipeplan.cli.answers import tell
from pipeplan.cli.options import OUTPUT, Debug, SettingOptions
from pipeplan.cli.request import request
from pipeplan.files import write_text

_SETTINGS = SettingOptions()

To = Literal[
    "torch-csv", "torch-csv-comms", "zb-nodes", "json", "trace", "timeline-csv", "costs", "torchtitan", "megatron"
]


def export(
    name: str | None = None,
    /,
    *,
    to: Annotated[To, Parameter(group=OUTPUT, help="The format.")],
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], group=OUTPUT, help="The file; stdout without it.")
    ] = None,
    settings: SettingOptions = _SETTINGS,
    debug: Debug = False,
) -> int:
    """Write a schedule in another tool's format.

    torch-csv and torch-csv-comms are PyTorch's, without and with communication; zb-nodes the zero-bubble runtime's; json
    pipeplan's own; trace is for Perfetto, timeline-csv for pandas; costs are the numbers per stage that were meant.
    torchtitan and megatron are the settings with which these trainers run the schedule.

    Parameters
    ----------
    name
        A schedule's name, or a CSV or JSON file that holds one. Default: 1f1b.
    """
    asked = request(() if name is None else (name,), settings, writes=() if output is None else (output,))
    text = export_with(asked.name, to, asked.settings)
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(output, text)
        tell(f"wrote {output}")
    return 0
