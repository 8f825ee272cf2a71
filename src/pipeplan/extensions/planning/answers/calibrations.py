"""Calibrations: correction factors of a machine, measured kernel by kernel on one GPU, or taken from a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast, final

import msgspec

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.parts import columns, line
from pipeplan.costs import CalibrationOptions
from pipeplan.extensions.planning import (
    Calibration,
    CalibrationRecord,
    read_calibration,
    updated_by_run,
    write_calibration,
)
from pipeplan.extensions.planning import calibrated as kernels_calibrated
from pipeplan.extensions.planning.answers.ledgers import read_ledger
from pipeplan.extensions.planning.answers.options import FilePath, ModelLike
from pipeplan.extensions.planning.flags import model_of, read_configuration, read_keys
from pipeplan.extensions.planning.hardware import Gpu, cluster
from pipeplan.extensions.planning.hardware import gpu as gpu_of
from pipeplan.extensions.planning.runs.factors import TriedRun, fitted
from pipeplan.extensions.planning.runs.logs import measured_as
from pipeplan.foundation.documents import ENDINGS, read_document
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.files import path_of
from pipeplan.foundation.records import Evidence, holding

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.extensions.planning.names import GpuName

USUAL_SEQUENCE = 4096
"""Default sequence length in tokens, for models without a trained length."""


@final
class CalibrationProfile(CalibrationRecord, AnswerRecord, frozen=True, kw_only=True, eq=False):
    """Calibration of a machine: measured over expected time, by kind of work.

    ``save("calibration.yaml")`` writes what ``calibration`` of a plan takes; ``to_frame()`` has a row per kind.
    """

    calibration = Evidence[Calibration]()
    """The factors as plans and estimates take them."""

    @classmethod
    def of(cls, calibration: Calibration) -> CalibrationProfile:
        """Return the answer of a calibration."""
        return holding(cls(**msgspec.structs.asdict(calibration.record)), calibration=calibration)

    def _write_whole(self, path: Path) -> bool:
        """Write the file that ``calibration`` of a plan takes."""
        write_calibration(path, self.calibration)
        return True

    def _table(self) -> Iterator[RenderableType]:
        """Return a row per kind of work: its factor, and the times it was computed from."""
        calibration = self.calibration
        on = f", measured on {calibration.measured_on}" if calibration.measured_on else ""
        yield line(f"{calibration.gpu}{on}", "bold")
        yield line()
        table = columns("work", "factor", "measured (ms)", "analytic (ms)", "of", padding=1, text_last=True)
        for correction in calibration.corrections:
            times = (f"{seconds * 1e3:,.4g}" for seconds in (correction.measured, correction.analytic))
            table.add_row(correction.kind.replace("_", " "), f"{correction.factor:.3f}", *times, correction.source)
        yield table
        yield line()
        yield line("'--calibration' of a plan and of estimates takes this, saved as .yaml or .json")

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        names = ("kind", "factor", "measured", "analytic", "source")
        return [{name: getattr(each, name) for name in names} for each in self.calibration.corrections]

    def __repr__(self) -> str:
        factors = ", ".join(f"{correction.kind} {correction.factor:.3g}" for correction in self.calibration.corrections)
        return f"<CalibrationProfile of {self.calibration.gpu}: {factors}>"


def calibrated(
    calibrate: ModelLike,
    options: CalibrationOptions,
    *,
    gpu: GpuName | FilePath | Gpu | None = None,
    source: FilePath | None = None,
    calibration: FilePath | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> CalibrationProfile:
    """Return the calibration of one GPU, measured or taken from runs; see :func:`pipeplan.profile`."""
    if source is not None:
        of = path_of(cast("str", calibrate), "the file of the configuration", field="calibrate")
        if of.suffix.lower() not in ENDINGS:
            raise InputError(
                f"{of} is no configuration file: pass that of the run, as 'pipeplan plan -o best.yaml' writes it, before "
                "--from",
                field="calibrate",
            )
        return calibrate_on_run(of, source, calibration=calibration)
    if gpu is None and isinstance(calibrate, str | os.PathLike) and _is_ledger(Path(calibrate)):
        return CalibrationProfile.of(fitted(read_ledger(Path(calibrate)), base=_earlier(calibration)).calibration)
    if gpu is None:
        named = isinstance(calibrate, str | os.PathLike) and Path(calibrate).suffix.lower() in ENDINGS
        fault = f"{Path(cast('str', calibrate)).name} is no ledger, it has no 'runs'; " if named else ""
        raise InputError(f"{fault}gpu is required: a name such as h100-sxm, or a cluster file", field="gpu")
    shape = model_of(calibrate)
    sheet, preset = _sheet(gpu)
    sequence = options.sequence or min(shape.trained_sequence or USUAL_SEQUENCE, 2 * USUAL_SEQUENCE)
    from pipeplan.extensions.planning.kernel_timing import kernel_timer  # needs PyTorch

    timer = kernel_timer(
        options.device,
        precision="bf16",
        threads=options.threads,
        name=sheet.name if preset else "",
        samples=options.repeats,
    )
    factors = kernels_calibrated(
        shape,
        sheet,
        timer,
        sequence=sequence,
        microbatch_size=options.microbatch_size,
        loss=timer.loss,
        optimizer=timer.optimizer,
        measured_on=timer.described,
        progress=lambda share: None if progress is None else progress("measuring kernels", share),
    )
    return CalibrationProfile.of(factors)


def calibrate_on_run(
    configuration: FilePath, source: FilePath, *, calibration: FilePath | None = None
) -> CalibrationProfile:
    """Correct a calibration by the measured stage times of a run, or by the steps in its log."""
    path = Path(configuration)
    shape, machines, ran = read_configuration(read_keys(path), path.parent)
    before = _earlier(calibration)
    if _is_log(Path(source)):
        seconds = median(measured_as(str(source), ran).seconds(ran))
        tried = TriedRun(id=path.name, model=shape, cluster=machines, configuration=ran, seconds=seconds)
        return CalibrationProfile.of(fitted([tried], base=before).calibration)
    run = required_service("training", "run_costs")(source)
    return CalibrationProfile.of(
        updated_by_run(before, shape, machines, ran, run.microbatch_seconds(), source=run.source)
    )


def _earlier(calibration: FilePath | None) -> Calibration | None:
    return None if calibration is None else read_calibration(Path(calibration))


def _is_ledger(path: Path) -> bool:
    readable = path.suffix.lower() in ENDINGS
    document = read_document(path, "model or ledger") if readable else None
    return isinstance(document, dict) and "runs" in document


def _is_log(path: Path) -> bool:
    """Return True for a log of steps: traces are folders, files of JSON, or Nsight Systems' databases."""
    named = path.is_file() or (path.suffix and not path.exists())
    return bool(named) and not path.name.lower().endswith((".json", ".json.gz", ".sqlite"))


def _sheet(name: FilePath | Gpu) -> tuple[Gpu, bool]:
    if isinstance(name, Gpu):
        return name, False
    if Path(name).suffix.lower() in ENDINGS:
        return cluster(Path(name)).gpu, False
    return gpu_of(str(name)), True
