"""``pipeplan export``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pipeplan import api
from pipeplan.api import as_keywords, export_formats
from pipeplan.cli.answers import tell
from pipeplan.cli.options import OUTPUT, Debug, SettingOptions
from pipeplan.cli.rearrangement import RearrangementOptions
from pipeplan.cli.request import request
from pipeplan.files import write_text

_SETTINGS = SettingOptions()
_REARRANGED = RearrangementOptions()

_FORMATS = "\n".join(f"- {each.name}: {each.help}" for each in export_formats().values())
_TO = Parameter(group=OUTPUT, help=f"The format.\n\n{_FORMATS}")
_FILE = Parameter(name=["--output", "-o"], group=OUTPUT, help="The file; stdout without it.")


def export(
    name: str | None = None,
    /,
    *,
    to: Annotated[str, _TO],
    output: Annotated[Path | None, _FILE] = None,
    rearranged: RearrangementOptions = _REARRANGED,
    settings: SettingOptions = _SETTINGS,
    debug: Debug = False,
) -> int:
    """Write a schedule in another tool's format.

    Parameters
    ----------
    name
        A schedule's name, or a CSV or JSON file that holds one. Default: 1f1b.
    """
    asked = request(() if name is None else (name,), settings, writes=() if output is None else (output,))
    text = api.export(asked.name, to, **asdict(rearranged), **as_keywords(asked.settings))
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(output, text)
        tell(f"wrote {output}")
    return 0
