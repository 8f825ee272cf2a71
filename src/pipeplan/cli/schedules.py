"""``pipeplan schedules``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from pipeplan import api
from pipeplan.cli.answers import print_json
from pipeplan.cli.names import ScheduleName
from pipeplan.cli.options import OUTPUT, Debug, Json, LookOptions
from pipeplan.cli.terminal_picture import show_above

_LOOK = LookOptions()
_NO_PICTURE = Parameter(group=OUTPUT, help="No picture in letters.")


def schedules(
    name: ScheduleName | None = None,
    /,
    *,
    machines: bool = False,
    looks: LookOptions = _LOOK,
    no_visualization: Annotated[bool, _NO_PICTURE] = False,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """List the schedules, or describe one: its picture, shapes, formulas, paper, figures on a few shapes, and its idea.

    Parameters
    ----------
    name
        A schedule's name. Default: all.
    machines
        List the machines that --machine takes instead: what ranks lose on them, and the runs that say so.
    """
    found = api.schedules(name, machines=machines)
    if json:
        print_json(found.to_dict())
        return 0
    if name is not None and not no_visualization:
        show_above(api.simulate(name).view(), looks.look)
    found.print()
    return 0
