"""``pipeplan convert``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pipeplan.api import convert as convert_file
from pipeplan.api import output_endings
from pipeplan.cli.answers import tell
from pipeplan.cli.options import Debug, LookOptions
from pipeplan.cli.rearrangement import RearrangementOptions
from pipeplan.errors import InputError
from pipeplan.formats import STANDARD_INPUT

_REARRANGED = RearrangementOptions()
_LOOK = LookOptions()
_TARGET = Parameter(help=f"The file to write; its ending chooses the format: {' '.join(output_endings())}.")


def convert(
    source: Path,
    target: Annotated[Path, _TARGET],
    /,
    *,
    rearranged: RearrangementOptions = _REARRANGED,
    looks: LookOptions = _LOOK,
    debug: Debug = False,
) -> int:
    """Turn a file that holds a schedule, a timeline or costs into another format; nothing is simulated.

    Parameters
    ----------
    source
        A schedule, a timeline or costs (.csv, .json).
    """
    if target == Path(STANDARD_INPUT):
        raise InputError("'-' is standard input: the output is a file, whose ending chooses the format")
    for path in convert_file(source, target, **asdict(rearranged), **looks.look):
        tell(f"wrote {path}" if path == target else f"wrote {path}, which {target} names")
    return 0
