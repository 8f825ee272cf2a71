"""``pipeplan check``."""

from __future__ import annotations

from pipeplan.api import CheckOptions, checked
from pipeplan.cli.answers import print_json
from pipeplan.cli.options import LineSettings, command
from pipeplan.cli.request import request


@command
def check(file: str, /, *, options: CheckOptions, settings: LineSettings, json: bool = False) -> int:
    """Is this schedule right, and would it run?

    Structure, order, deadlock, channels, and with `--memory-limit` the memory of every rank. Notes say what is right here
    but not everywhere, such as sends that must not block. Exits with 1 if anything is wrong.

    Parameters
    ----------
    file
        A CSV, JSON or text file that holds a schedule or a timeline, whose order is checked, or `-` for standard input; or a
        schedule's name.
    """
    asked = request((file,), settings)
    verdict = checked(file, options, asked.settings)
    if json:
        print_json(verdict.to_dict())
    else:
        verdict.print()
    return 0 if verdict.valid else 1
