"""``pipeplan diff``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pipeplan.answers import require_outputs
from pipeplan.cli.answers import deliver
from pipeplan.cli.options import LineSettings, OutputOptions, command, request
from pipeplan.extensions.training.diff.diff import DiffOptions, differences
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.files import Written, require_apart, require_writable


@command
def diff(
    planned: str,
    measured: Path,
    /,
    *,
    options: DiffOptions,
    settings: LineSettings,
    output: OutputOptions,
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
    deliver(difference, writers, json=json)
    return 0
