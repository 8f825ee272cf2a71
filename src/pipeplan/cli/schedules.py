"""``pipeplan schedules`` and ``catalogue``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pipeplan import api
from pipeplan.cli.answers import deliver, print_json, show_above
from pipeplan.cli.options import PictureOptions, ScheduleName, command


@command
def schedules(
    name: ScheduleName | None = None,
    /,
    *,
    looks: PictureOptions,
    json: bool = False,
) -> int:
    """List the schedules, or describe one.

    A description has a picture, the supported shapes, bubble and memory formulas, the paper, and the idea.

    Parameters
    ----------
    name
        Name of a schedule. Default: all.
    """
    entries = api.schedules(name)

    def show() -> None:
        if name is not None and not looks.no_visualization:
            show_above(api.view_of_result(api.simulate(name)), looks.look)
        entries.print()

    deliver(entries, json=json, text=show)
    return 0


@command
def catalogue(*names: Literal["models", "gpus", "machines"], json: bool = False) -> int:
    """List the built-in models, GPUs and machines.

    `pipeplan plan` takes the models and GPUs; `--machine` takes the machines, which are overhead presets fitted to runs.

    Parameters
    ----------
    names
        Catalogues to list. Default: all.
    """
    lists: dict[str, Callable[[], Any]] = {
        "models": api.models,
        "gpus": api.gpus,
        "machines": partial(api.schedules, machines=True),
    }
    catalogues = [lists[name]() for name in names or lists]
    if json:
        print_json({name: value for entries in catalogues for name, value in entries.to_dict().items()})
    else:
        for entries in catalogues:
            entries.print()
    return 0
