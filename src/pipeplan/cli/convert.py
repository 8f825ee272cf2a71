"""``pipeplan convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pipeplan.api import ConvertOptions, converted, output_endings
from pipeplan.cli.answers import tell, tell_written
from pipeplan.cli.options import command
from pipeplan.errors import InputError
from pipeplan.formats import STANDARD_INPUT

_TARGET = Parameter(help=f"File to write; its extension selects the format: {' '.join(output_endings())}.")


@command
def convert(source: Path, target: Annotated[Path, _TARGET], /, *, options: ConvertOptions) -> int:
    """Convert a file with a schedule, a timeline or costs to another format.

    Nothing is simulated.

    Parameters
    ----------
    source
        File with a schedule, a timeline or costs (.csv, .json).
    """
    if target == Path(STANDARD_INPUT):
        raise InputError("'-' is standard input: the output is a file, whose ending chooses the format")
    files = converted(source, target, options)
    tell_written(files)
    for warning in files.warnings:
        tell(f"warning: {warning}")
    return 0
