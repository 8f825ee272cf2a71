"""``pipeplan profile``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pipeplan import api
from pipeplan.api import as_keywords, model_files
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.names import ScheduleName
from pipeplan.cli.options import OUTPUT, Debug, Json, SettingOptions, parameter_of
from pipeplan.cli.progress import progress_bar
from pipeplan.cli.request import request
from pipeplan.cli.training_options import (
    CALIBRATION,
    REFRESHES,
    TRAINING,
    ModelOptions,
    calibration_option,
    training_option,
)
from pipeplan.costs import RUN_SETTINGS, require_costs_file
from pipeplan.errors import InputError
from pipeplan.files import require_apart, require_writable
from pipeplan.planner import require_calibration_file

_SETTINGS = SettingOptions()
_MODEL = ModelOptions()


def profile(
    name: ScheduleName | None = None,
    /,
    *,
    source: Annotated[
        Path | None,
        training_option(
            "Traces of a run, to take the costs from: their folder, or a file of `pipeplan run`.", "--from"
        ),
    ] = None,
    model: ModelOptions = _MODEL,
    repeats: Annotated[int, parameter_of(RUN_SETTINGS["repeats"], TRAINING)] = 15,
    calibrate: Annotated[
        str | None,
        calibration_option(
            "Measure the kernels of this model on one GPU: a preset or a config.json. With --from: the file of the "
            "configuration that ran.",
            "--calibrate",
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        calibration_option(
            "Whose data sheet is corrected: its name, or a cluster's file with one of your own.", "--gpu"
        ),
    ] = None,
    sequence: Annotated[int | None, parameter_of(RUN_SETTINGS["sequence"], CALIBRATION)] = None,
    microbatch_size: Annotated[int, parameter_of(RUN_SETTINGS["microbatch_size"], CALIBRATION)] = 1,
    calibration: Annotated[
        Path | None, calibration_option("With --from: what is known already.", "--calibration")
    ] = None,
    settings: SettingOptions = _SETTINGS,
    output: Annotated[
        Path | None,
        Parameter(
            name=("--output", "-o"),
            group=OUTPUT,
            help="The file of costs or factors: .yaml or .json.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """Measure what a model's stages cost, as a config file for the other commands. Needs PyTorch (`pipeplan[pytorch]`).

    Every rank measures its stages at the same time, as they will run. Times are medians in milliseconds. With `--from` they
    are taken from the traces of a run, which needs no PyTorch. With `--calibrate` one GPU's kernels, or the stages of a run,
    are held against what `pipeplan plan` expects of them: the factors are its `--calibration`.

    Parameters
    ----------
    name
        A schedule whose placement says which rank holds each stage. Default: 1f1b.
    """
    outputs = () if output is None else (output,)
    if calibrate is not None:
        beside = ([] if name is None else [name]) + [f"--{key.replace('_', '-')}" for key in settings.given()]
        if beside or settings.config is not None:
            raise InputError(f"a GPU is calibrated without a schedule: leave out {', '.join(beside) or '--config'}")
        require_outputs_of_calibration(outputs, calibrate, source, calibration)
        with progress_bar("starting up", quiet=json or source is not None, refreshes=REFRESHES) as bar:
            factors = api.profile(
                calibrate=calibrate,
                gpu=gpu,
                sequence=sequence,
                microbatch_size=microbatch_size,
                source=source,
                calibration=calibration,
                device=model.device,
                threads=model.threads,
                repeats=repeats,
                progress=lambda said, share: bar.show(share, said),
            )
        return _shown(factors, outputs, json=json)
    for path in outputs:
        require_costs_file(path)
    reads = model_files(model.model) if source is None else (source,)
    asked = request(() if name is None else (name,), settings, reads=reads, writes=outputs)
    schedule = name if source is not None else asked.name
    with progress_bar("starting up", quiet=json or source is not None, refreshes=REFRESHES) as bar:
        measured = api.profile(
            schedule,
            source=source,
            repeats=repeats,
            progress=lambda said, share: bar.show(share, said),
            **model.chosen(),
            **as_keywords(asked.settings),
        )
    notes = measured.checks() if json else ()
    return _shown(measured, outputs, json=json, notes=notes)


def _shown(
    measured: api.CostProfile | api.CalibrationProfile,
    outputs: Sequence[Path],
    *,
    json: bool,
    notes: Sequence[str] = (),
) -> int:
    with written(dict.fromkeys(outputs, measured.save)):
        if json:
            print_json(measured.to_dict())
            for line in notes:
                tell(line)
        else:
            measured.print()
    return 0


def require_outputs_of_calibration(
    outputs: Sequence[Path], calibrate: str, source: Path | None, calibration: Path | None
) -> None:
    """Check, before anything is measured, that factors can be written, and over nothing that is read but the old ones."""
    for path in outputs:
        require_calibration_file(path)
        require_writable(path)
    reads = [path for path in (Path(calibrate), source) if path is not None and os.path.exists(path)]
    require_apart([path for path in outputs if path != calibration], reads)
