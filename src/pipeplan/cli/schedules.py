"""``pipeplan schedules``."""

from __future__ import annotations

from pipeplan import api
from pipeplan.cli.answers import print_json
from pipeplan.cli.options import Debug, Json


def schedules(
    name: str | None = None,
    /,
    *,
    machines: bool = False,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """List the schedules, or describe one: its idea, timing table, shapes, formulas and paper.

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
    else:
        found.print()
    return 0
