"""``pipeplan run``, ``profile`` and ``calibrate``: what needs PyTorch, or the traces of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeplan import api
from pipeplan.api import TrainingReport, calibrated, costs_of_run, model_files, profiled, trained
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import LineSettings, OutputOptions, ScheduleName, command
from pipeplan.cli.progress import progress_bar
from pipeplan.cli.request import request
from pipeplan.costs import (
    CalibrationOptions,
    ModelOptions,
    Options,
    ProfileOptions,
    RunOptions,
    option,
    require_costs_file,
)
from pipeplan.files import require_apart, require_writable
from pipeplan.planner import require_calibration_file

REFRESHES = 2.0
"""Of the bar, a second: the cores are what is measured."""


@dataclass(frozen=True, kw_only=True)
class TraceOptions(Options):
    """Where a run's trace goes."""

    trace: Path | None = option(
        kind="file", title="Trace", group="training", help="Write the measured timeline as a Chrome/Perfetto trace."
    )


@dataclass(frozen=True, kw_only=True)
class SourceOptions(Options):
    """Traces in place of a measurement, and where the answer goes."""

    source: Path | None = option(
        kind="file", title="Traces", group="training", flags=("--from",),
        help="Traces of a run, to take the costs from: their folder, or a file of `pipeplan run`.",
    )  # fmt: skip
    output: Path | None = option(
        kind="file", title="Output", group="output", flags=("-o",), help="The file of costs or factors: .yaml or .json."
    )

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The file to write, if there is one."""
        return () if self.output is None else (self.output,)


@dataclass(frozen=True, kw_only=True)
class FactorOptions(SourceOptions):
    """What factors are of, beside a model."""

    gpu: str | None = option(
        kind="text", title="GPU", group="calibration", longest=4096,
        help="Whose data sheet is corrected: its name, or a cluster's file with one of your own.",
    )  # fmt: skip
    calibration: Path | None = option(
        kind="file", title="Calibration", group="calibration", help="With --from: what is known already."
    )


@command
def run(
    name: ScheduleName | None = None,
    /,
    *,
    options: RunOptions,
    trace: TraceOptions,
    settings: LineSettings,
    output: OutputOptions,
    json: bool = False,
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
    traces = () if trace.trace is None else (trace.trace,)
    names = () if name is None else (name,)
    asked = request(names, settings, output, reads=model_files(_model(options)), writes=traces)
    first = os.environ.get("RANK", "0") == "0"
    with _bar(quiet=json or not first) as progress:
        training = trained(asked.name, asked.settings, options, progress=progress)
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


@command
def profile(
    name: ScheduleName | None = None,
    /,
    *,
    options: ProfileOptions,
    beside: SourceOptions,
    settings: LineSettings,
    json: bool = False,
) -> int:
    """Measure what a model's stages cost, as a config file for the other commands. Needs PyTorch (`pipeplan[pytorch]`).

    Every rank measures its stages at the same time, as they will run. Times are medians in milliseconds. With `--from` they
    are taken from the traces of a run, which needs no PyTorch. `pipeplan calibrate` corrects what `pipeplan plan` expects of
    a GPU.

    Parameters
    ----------
    name
        A schedule whose placement says which rank holds each stage. Default: 1f1b.
    """
    source = beside.source
    for path in beside.outputs:
        require_costs_file(path)
    reads = model_files(_model(options)) if source is None else (source,)
    asked = request(() if name is None else (name,), settings, reads=reads, writes=beside.outputs)
    with _bar(quiet=json or source is not None) as progress:
        measured = (
            profiled(asked.name, asked.settings, options, progress=progress)
            if source is None
            else costs_of_run(source, name, asked.settings, options)
        )
    return _shown(measured, beside.outputs, json=json, notes=measured.checks() if json else ())


@command
def calibrate(model: str, /, *, options: CalibrationOptions, beside: FactorOptions, json: bool = False) -> int:
    """Hold the kernels of one GPU, or the stages of a run, against what `pipeplan plan` expects: its `--calibration`.

    Parameters
    ----------
    model
        The model whose kernels are measured: a preset or a config.json. With --from: the file of the configuration that ran.
    """
    for path in beside.outputs:
        require_calibration_file(path)
        require_writable(path)
    reads = [path for path in (Path(model), beside.source) if path is not None and os.path.exists(path)]
    require_apart([path for path in beside.outputs if path != beside.calibration], reads)
    with _bar(quiet=json or beside.source is not None) as progress:
        factors = calibrated(
            model,
            options,
            gpu=beside.gpu,
            source=beside.source,
            calibration=beside.calibration,
            progress=progress,
        )
    return _shown(factors, beside.outputs, json=json)


def _model(options: ModelOptions) -> str:
    assert isinstance(options.model, str)
    return options.model


@contextmanager
def _bar(*, quiet: bool) -> Iterator[TrainingReport]:
    with progress_bar("starting up", quiet=quiet, refreshes=REFRESHES) as bar:
        yield lambda said, share: bar.show(share, said)


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
