"""``pipeplan check``."""

from __future__ import annotations

from pipeplan.api import CheckOptions, checked
from pipeplan.cli.answers import print_json
from pipeplan.cli.options import LineSettings, command
from pipeplan.cli.request import request


@command
def check(file: str, /, *, options: CheckOptions, settings: LineSettings, json: bool = False) -> int:
    """Check that a schedule is valid, and that a trainer can run it.

    Checks structure, order, deadlocks and channels, and with `--memory-limit` the memory of every rank. Notes name
    requirements that not every runtime meets, such as sends that do not block. Exits with 1 if the schedule is invalid.

    Parameters
    ----------
    file
        A CSV, JSON or text file with a schedule or a timeline, whose order and simulated times are checked, `-` for standard
        input, or a schedule's name.
    """
    asked = request((file,), settings)
    verdict = checked(file, options, asked.settings)
    if json:
        print_json(verdict.to_dict())
    else:
        verdict.print()
    return 0 if verdict.valid else 1
