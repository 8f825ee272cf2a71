"""``pipeplan run``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from pipeplan import api
from pipeplan.api import as_keywords, model_files
from pipeplan.cli.answers import print_json, written
from pipeplan.cli.names import ScheduleName
from pipeplan.cli.options import Debug, Json, OutputOptions, SettingOptions, parameter_of
from pipeplan.cli.progress import progress_bar
from pipeplan.cli.request import request
from pipeplan.cli.training_options import REFRESHES, TRAINING, ModelOptions, training_option
from pipeplan.costs import RUN_SETTINGS


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How long, and what to look at."""

    steps: Annotated[int, parameter_of(RUN_SETTINGS["steps"], TRAINING)] = 5
    warmup: Annotated[int, parameter_of(RUN_SETTINGS["warmup"], TRAINING)] = 1
    verify: Annotated[
        bool, training_option("Compare every loss and gradient with a single-process run.", "--verify")
    ] = False
    receives: Annotated[
        Literal["early", "late"],
        training_option("Receive as early as possible, or right before it is needed (early).", "--receives"),
    ] = "early"
    trace: Annotated[
        Path | None, training_option("Write the measured timeline as a Chrome/Perfetto trace.", "--trace")
    ] = None


_SETTINGS = SettingOptions()
_OUTPUT = OutputOptions()
_MODEL = ModelOptions()
_RUN = RunOptions()


def run(
    name: ScheduleName | None = None,
    /,
    *,
    model: ModelOptions = _MODEL,
    run: RunOptions = _RUN,
    settings: SettingOptions = _SETTINGS,
    output: OutputOptions = _OUTPUT,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Train a model with a schedule, measure it, and compare it with the prediction. Needs PyTorch (`pipeplan[pytorch]`).

    Starts a process for each rank on this host, or joins the torchrun job that it is started in. Without costs it measures
    the model first, to predict from. `--output` writes the measured timeline. Exits with 1 if
    gradients differ, or a rank dies or hangs.

    Parameters
    ----------
    name
        A schedule's name (see `pipeplan schedules`), or a CSV or JSON file that holds one. Default: 1f1b.
    """
    traces = () if run.trace is None else (run.trace,)
    asked = request(() if name is None else (name,), settings, output, reads=model_files(model.model), writes=traces)
    first = os.environ.get("RANK", "0") == "0"
    with progress_bar("starting up", quiet=json or not first, refreshes=REFRESHES) as bar:
        training = api.run(
            asked.name,
            steps=run.steps,
            warmup=run.warmup,
            verify=run.verify,
            receives=run.receives,
            progress=lambda said, share: bar.show(share, said),
            **model.chosen(),
            **as_keywords(asked.settings),
        )
    if first:
        files = dict.fromkeys(asked.outputs, training.measured.save)
        files |= dict.fromkeys(traces, partial(training.measured.save, ending=".trace.json"))
        with written(files):
            if json:
                print_json(training.to_dict())
            else:
                training.print()
    training.run.require_equal_gradients()
    return 0
