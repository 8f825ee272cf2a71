"""``pipeplan diff``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeplan import api
from pipeplan.api import differences, require_outputs
from pipeplan.cli.answers import print_json, written
from pipeplan.cli.options import LineSettings, OutputOptions, command
from pipeplan.cli.request import request
from pipeplan.costs import Options, option
from pipeplan.errors import InputError
from pipeplan.files import require_apart, require_writable
from pipeplan.planner import require_calibration_file


@dataclass(frozen=True, kw_only=True)
class FactorsOptions(Options):
    """Factors of a plan that a run updates."""

    configuration: Path | None = option(
        kind="file", title="Configuration", group="calibration",
        help="Configuration that ran, in the format of `pipeplan estimate`.",
    )  # fmt: skip
    calibration: Path | None = option(
        kind="file", title="Calibration", group="calibration",
        help="Calibration file to update with the ratio of measured to expected stage times; created if missing.",
    )  # fmt: skip


@command
def diff(
    planned: str,
    measured: Path,
    /,
    *,
    options: FactorsOptions,
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
    asked = request((planned,), settings, output, reads=[measured])
    require_outputs(asked.outputs, ("record", "report", "pictures"), what="a diff")
    calibration = options.calibration
    factors = _factors(options.configuration, calibration, measured, asked.outputs)
    found = differences(planned, measured, asked.settings)
    writers = dict.fromkeys(asked.outputs, found.save)
    if factors is not None and calibration is not None:
        writers[calibration] = factors.save
    with written(writers):
        if json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0


def _factors(
    configuration: Path | None, calibration: Path | None, measured: Path, outputs: Sequence[Path]
) -> api.CalibrationProfile | None:
    """The factors with what the run says; None where none are asked for."""
    if configuration is None and calibration is None:
        return None
    if configuration is None or calibration is None:
        said = "--calibration" if configuration is None else "--configuration"
        other = "--configuration" if configuration is None else "--calibration"
        raise InputError(f"factors are of a configuration that ran: give {other} beside {said}")
    require_calibration_file(calibration)
    require_writable(calibration)
    require_apart([calibration, *outputs], [configuration, measured])
    known = calibration if calibration.exists() else None
    return api.profile(calibrate=str(configuration), source=measured, calibration=known)
