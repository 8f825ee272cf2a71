"""``pipeplan check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pipeplan import api
from pipeplan.api import TRAINERS, as_keywords
from pipeplan.cli.answers import print_json
from pipeplan.cli.options import OUTPUT, Debug, Json, SettingOptions
from pipeplan.cli.request import request
from pipeplan.formats import TORCH_RELEASES

if TYPE_CHECKING:
    TrainerName = str
else:
    TrainerName: Any = Literal[TRAINERS]

_SETTINGS = SettingOptions()

_FOR = Parameter(
    name="--for",
    group=OUTPUT,
    help="The trainer that runs it: what it refuses, or would train on wrong gradients, is then a problem.",
)
_VERSION = Parameter(
    group=OUTPUT,
    help=f"With --for pytorch, its release (default: the installed one, else {TORCH_RELEASES[-1]}).",
)


def check(
    file: str,
    /,
    *,
    trainer: Annotated[TrainerName | None, _FOR] = None,
    trainer_version: Annotated[str | None, _VERSION] = None,
    settings: SettingOptions = _SETTINGS,
    json: Json = False,
    debug: Debug = False,
) -> int:
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
    verdict = api.check(file, trainer=trainer, trainer_version=trainer_version, **as_keywords(asked.settings))
    if json:
        print_json(verdict.to_dict())
    else:
        verdict.print()
    return 0 if verdict.valid else 1
