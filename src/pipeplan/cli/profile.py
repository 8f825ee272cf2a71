"""``pipeplan profile``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pipeplan import api
from pipeplan.api import as_keywords, model_files
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import OUTPUT, Debug, Json, SettingOptions
from pipeplan.cli.request import request
from pipeplan.cli.training_options import ModelOptions, training_option
from pipeplan.costs import require_costs_file

_SETTINGS = SettingOptions()
_MODEL = ModelOptions()


def profile(
    name: str | None = None,
    /,
    *,
    source: Annotated[
        Path | None,
        training_option(
            "Traces of a run, to take the costs from: their folder, or a file of `pipeplan run`.", "--from"
        ),
    ] = None,
    model: ModelOptions = _MODEL,
    repeats: Annotated[int, training_option("Measured rounds (15).", "--repeats")] = 15,
    settings: SettingOptions = _SETTINGS,
    output: Annotated[
        Path | None,
        Parameter(name=("--output", "-o"), group=OUTPUT, help="The costs file: .yaml or .json.", show_default=False),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Measure what a model's stages cost, as a config file for the other commands. Needs PyTorch (`pipeplan[pytorch]`).

    Every rank measures its stages at the same time, as they will run. Times are medians in milliseconds. With `--from` they
    are taken from the traces of a run, which needs no PyTorch.

    Parameters
    ----------
    name
        A schedule whose placement says which rank holds each stage. Default: 1f1b.
    """
    outputs = () if output is None else (output,)
    for path in outputs:
        require_costs_file(path)
    reads = model_files(model.model) if source is None else (source,)
    asked = request(() if name is None else (name,), settings, reads=reads, writes=outputs)
    schedule = name if source is not None else asked.name
    measured = api.profile(schedule, source=source, repeats=repeats, **model.chosen(), **as_keywords(asked.settings))
    with written(dict.fromkeys(outputs, measured.save)):
        if json:
            print_json(measured.to_dict())
            for line in measured.checks():
                tell(line)
        else:
            measured.print()
    return 0
