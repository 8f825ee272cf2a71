"""Schedules in other tools' formats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Unpack, final

from pipeplan.api.arguments import Given, ScheduleLike, asked
from pipeplan.api.outputs import exported, require_export
from pipeplan.api.simulations import simulated, timed
from pipeplan.api.sources import resolve
from pipeplan.files import write_text
from pipeplan.passes import Rearrangement


@final
class Export(str):
    """The text of an export, which can also be saved."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, as a whole or not at all. Raises InputError where that is not possible."""
        write_text(Path(path), self)

    def print(self) -> None:
        """Print it."""
        print(self, end="")


def export(
    schedule: ScheduleLike | None = None,
    /,
    to: str = "torch-csv",
    *,
    split_backward: bool = False,
    retime: bool = False,
    merge_backward: bool = False,
    **settings: Unpack[Given],
) -> Export:
    """A schedule in another tool's format, as text.

    Parameters
    ----------
    schedule
        What :func:`pipeplan.simulate` takes. A timeline is exported as it stands: with the times that were measured, or
        simulated before unless costs are given here.
    to
        The format, by its name in ``pipeplan export --to``; ``docs/formats.md`` lists them.
    split_backward, retime, merge_backward
        What is done to the order of ops before; see :func:`pipeplan.convert`.
    **settings
        Shape and costs.

    Raises
    ------
    UnknownNameError
        For an unknown format.
    FormatError, ShapeError
        For a schedule that the format has no words for.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.

    Examples
    --------
    >>> print(pipeplan.export("1f1b", to="torch-csv", ranks=2, microbatches=2))
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1
    <BLANKLINE>
    """
    wanted = Rearrangement(split_backward=split_backward, retime=retime, merge_backward=merge_backward)
    require_export(to)
    meant, known = asked(schedule, settings)
    result = simulated(wanted(resolve(meant, known)), known) if wanted else timed(meant, known)
    return Export(exported(result, to))
