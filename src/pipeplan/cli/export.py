"""``pipeplan export``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from pipeplan import api
from pipeplan.api import as_keywords, export_formats, file_of
from pipeplan.cli.answers import tell
from pipeplan.cli.options import OUTPUT, Debug, SettingOptions
from pipeplan.cli.rearrangement import RearrangementOptions
from pipeplan.cli.request import request
from pipeplan.cli.trainer_options import TrainerOptions
from pipeplan.files import require_apart

_SETTINGS = SettingOptions()
_REARRANGED = RearrangementOptions()
_TRAINER = TrainerOptions()

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
    trainer: TrainerOptions = _TRAINER,
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
    given: Any = {**as_keywords(asked.settings), **trainer.given()}
    text = api.export(asked.name, to, **asdict(rearranged), **given)
    if output is None:
        sys.stdout.write(text)
        for path in text.files:
            tell(f"{path}, which these settings name, is written beside them with -o FILE")
    else:
        files = [output, *map(Path, text.written_to(output).files)]
        read = [path for path in (file_of(asked.name), *settings.files()) if path is not None]
        require_apart(files, read)
        text.save(output)
        tell(f"wrote {' and '.join(map(str, files))}")
    for warning in text.warnings:
        tell(f"warning: {warning}")
    return 0
