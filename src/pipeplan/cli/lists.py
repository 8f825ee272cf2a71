"""``pipeplan list``."""

from __future__ import annotations

from pipeplan import answers
from pipeplan.cli.answers import deliver, show_above
from pipeplan.cli.options import PictureOptions, ScheduleName, command
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.foundation.extensions import extensions, loaded
from pipeplan.strategies import STRATEGIES

OWN = {"machines": "pipeplan.answers.listing:machines", "costs": "pipeplan.answers.listing:bundled_costs"}
"""Addresses of the functions of the core's lists, beside that of schedules, by kind."""


@command
def list(
    kind: str = "schedules",
    name: ScheduleName | None = None,
    /,
    *,
    looks: PictureOptions,
    json: bool = False,
) -> int:
    """List the built-in schedules, costs, models, GPUs, machines or review rules, or describe one schedule.

    A description has a picture, the supported shapes, bubble and memory formulas, the paper, and the idea. `-c` takes the
    costs; `pipeplan plan` the models and GPUs; `--machine` the machines, which are overhead presets fitted to runs.

    Parameters
    ----------
    kind
        What to list: schedules, costs, models, gpus, machines or rules.
    name
        Name of a schedule to describe. Default: all.
    """
    if kind != "schedules":
        lists = OWN | {kind: address for each in extensions() for kind, address in each.lists.items()}
        if kind not in lists and name is None and STRATEGIES.find(kind) is not None:
            raise InputError(f"unknown list '{kind}'; write 'pipeplan list schedules {kind}'")
        if kind not in lists:
            raise UnknownNameError("list", kind, ["schedules", *lists])
        if name is not None:
            raise InputError(f"list {kind} takes no name, but got '{name}'")
        deliver(loaded(lists[kind])(), json=json)
        return 0
    entries = answers.schedules(name)

    def show() -> None:
        if name is not None and not looks.no_visualization:
            show_above(answers.view_of_result(answers.simulate(name)), looks.look)
        entries.print()

    deliver(entries, json=json, text=show)
    return 0
