"""``pipeplan run`` and ``profile``, which need PyTorch or the traces of a run, and ``diff``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeplan.answers import ShownOptions, require_outputs
from pipeplan.cli.answers import deliver, print_answer
from pipeplan.cli.options import LineSettings, OutputOptions, ScheduleName, SourceOptions, command, request
from pipeplan.cli.progress import FEW_REFRESHES, progress_bar
from pipeplan.costs import Options, option, require_costs_file
from pipeplan.extensions.training.answers.cost_profiles import costs_of_run, profiled
from pipeplan.extensions.training.answers.measuring import TrainingReport
from pipeplan.extensions.training.answers.training_runs import model_files, trained
from pipeplan.extensions.training.diff.diff import DiffOptions, differences
from pipeplan.extensions.training.options import ModelOptions, ProfileOptions, RunOptions
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.files import Written, require_apart, require_writable


@dataclass(frozen=True, kw_only=True)
class TraceOptions(Options):
    """File of a run's trace."""

    trace: Path | None = option(
        kind="file", group="training", help="File for the measured timeline, as a Chrome or Perfetto trace."
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
    """Train a model with a schedule, and compare the measured step with the prediction.

    Starts a process per rank on this host, or joins the torchrun job that it runs in. Without costs it profiles the model
    first. `--output` writes the measured timeline. Needs PyTorch (`pip install '.[pytorch]'`). Exits with 1 if
    gradients differ, or a rank dies or hangs.

    Parameters
    ----------
    name
        Name of a schedule (see `pipeplan list schedules`), or a CSV or JSON file with one. Default: 1f1b.
    """
    traces = () if trace.trace is None else (trace.trace,)
    names = () if name is None else (name,)
    query = request(names, settings, output, reads=model_files(_model(options)), writes=traces)
    first = os.environ.get("RANK", "0") == "0"
    with _bar(quiet=json or not first) as progress:
        training = trained(query.name, query.settings, options, progress=progress)
    if first:
        files = dict.fromkeys(query.outputs, partial(training.save, **query.look))
        files |= dict.fromkeys(traces, partial(training.save, ending=".trace.json"))
        deliver(training, files, json=json)
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
    """Measure the costs of a model's stages, as a config file.

    All ranks measure their stages at the same time. Times are medians in milliseconds. Needs PyTorch
    (`pip install '.[pytorch]'`), except with `--from`, which reads the costs from the traces of a run. Pass the file to
    other commands with `-c`.

    Parameters
    ----------
    name
        Schedule whose placement assigns stages to ranks. Default: 1f1b.
    """
    source = beside.source
    for path in beside.outputs:
        require_costs_file(path)
    reads = model_files(_model(options)) if source is None else (source,)
    query = request(() if name is None else (name,), settings, reads=reads, writes=beside.outputs)
    with _bar(quiet=json or source is not None) as progress:
        measured = (
            profiled(query.name, query.settings, options, progress=progress, overrides=settings.values)
            if source is None
            else costs_of_run(source, name, query.settings, options)
        )
    deliver(measured, beside.outputs, json=json, messages=measured.checks() if json else ())
    return 0


@command
def diff(
    planned: str,
    measured: Path,
    /,
    *,
    options: DiffOptions,
    settings: LineSettings,
    output: OutputOptions,
    shown: ShownOptions,
    json: bool = False,
) -> int:
    """Compare a planned with a measured timeline, op by op.

    Attributes the difference of the makespans to op times and to waiting. `--output` draws both timelines on one axis; in an
    .html page each op is coloured by the ratio of its measured to its planned time.

    Parameters
    ----------
    planned
        Schedule (a name or a file), simulated with these costs, or the file of a timeline.
    measured
        Timeline of a run (`pipeplan run -o FILE.json`), or a folder of traces: of PyTorch's profiler (also compressed),
        torchtitan, or an Nsight Systems export. Of several steps and replicas, the timeline of median length is taken.
    """
    query = request((planned,), settings, output, reads=[measured])
    require_outputs(query.outputs, ("record", "report", "pictures"), what="a diff")
    calibration = None if options.calibration is None else Path(options.calibration)
    if calibration is not None and options.configuration is not None:
        required_service("planning", "require_calibration_file")(calibration)
        require_writable(calibration)
        require_apart([calibration, *query.outputs], [Path(options.configuration), measured])
    difference = differences(planned, measured, options, query.settings)
    writers: dict[Path, Callable[[Path], Written]] = dict.fromkeys(
        query.outputs, partial(difference.save, **query.look)
    )
    if calibration is not None and difference.calibration is not None:
        writers[calibration] = difference.calibration.save
    deliver(difference, writers, json=json, text=partial(print_answer, difference, shown))
    return 0


def _model(options: ModelOptions) -> str:
    assert isinstance(options.model, str)
    return options.model


@contextmanager
def _bar(*, quiet: bool) -> Iterator[TrainingReport]:
    with progress_bar("starting up", quiet=quiet, refreshes=FEW_REFRESHES) as bar:
        yield lambda description, share: bar.show(share, description)
