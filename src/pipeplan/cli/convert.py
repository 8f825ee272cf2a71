"""``pipeplan convert``."""

from __future__ import annotations

from pathlib import Path

from pipeplan.api.outputs import convert_file
from pipeplan.cli.answers import tell
from pipeplan.cli.options import Debug


def convert(
    source: Path,
    target: Path,
    /,
    *,
    debug: Debug = False,
) -> int:
    """Turn a schedule or timeline file into another format.

    Parameters
    ----------
    source
        A schedule (.csv, .json) or a timeline (.json).
    target
        The ending chooses: .csv, .json, .trace.json (of a timeline), .png, .svg, .pdf.
    """
    convert_file(source, target)
    tell(f"wrote {target}")
    return 0
