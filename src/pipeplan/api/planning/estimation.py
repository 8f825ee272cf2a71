"""From files of configurations and of runs to estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Unpack

from pipeplan.api.arguments import takes
from pipeplan.api.keywords import EstimateOptionsKeywords
from pipeplan.api.planning.configurations import read_configuration
from pipeplan.api.planning.estimates import EstimatedRow, Estimates, estimated_row
from pipeplan.api.planning.options import EstimateOptions, FilePath
from pipeplan.api.searching.searches import usable_cores
from pipeplan.costs import options_of
from pipeplan.documents import read_document
from pipeplan.errors import FormatError, PipeplanError
from pipeplan.files import GIBIBYTE, MEBIBYTE, path_of
from pipeplan.planner import Calibration, Estimate, RunRow, error_bar, read_calibration, row_from
from pipeplan.planner import estimate as estimate_one
from pipeplan.sweeps import SweepProgress, SweepTask, sweep

LARGEST = 64 * MEBIBYTE
"""No file of runs is larger than this, in bytes."""

FEW = 32
"""Rows up to which other processes take longer to start than to be waited for."""


@dataclass(frozen=True, slots=True)
class _NumberedRow:
    """A row of a file, and its place in it."""

    place: int
    document: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prediction:
    """Arguments of a row of the answer, as processes hand them over and files keep them."""

    id: str
    estimate: Estimate | None = None
    refused: str | None = None
    source: str = ""
    assumed: tuple[str, ...] = ()
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def row(self) -> EstimatedRow:
        """The row."""
        return estimated_row(**{each.name: getattr(self, each.name) for each in fields(self)})


@takes(EstimateOptions)
def estimate(
    source: FilePath | Mapping[str, Any],
    *,
    progress: Callable[[float], None] | None = None,
    **options: Unpack[EstimateOptionsKeywords],
) -> Estimates:
    """Estimate step time and memory of given configurations without a search, next to measured figures if a file has them.

    Parameters
    ----------
    source
        A YAML, TOML or JSON file, or what it holds: one configuration (``model``, ``cluster``, ``global_batch``,
        ``sequence``, and what ``fix`` of :func:`pipeplan.plan` takes, by its names), or ``rows``: a list of such
        configurations, or of published runs.
    progress
        Called with the share that is done.
    **options
        The options of estimates (:class:`~pipeplan.api.planning.options.EstimateOptions`).

    Raises
    ------
    InputError
        For a file that cannot be read, and for one configuration that cannot be. Of several rows each that cannot be
        estimated says why instead.

    Examples
    --------
    >>> one = {"model": "llama3-8b", "cluster": "h100-sxm:8x1", "global_batch": 16, "sequence": 8192, "tp": 8}
    >>> len(pipeplan.estimate(one))
    1
    """
    return estimated(source, options_of(EstimateOptions, options), progress=progress)


def estimated(
    source: FilePath | Mapping[str, Any],
    options: EstimateOptions,
    *,
    progress: Callable[[float], None] | None = None,
) -> Estimates:
    """See :func:`estimate`."""
    document, name, folder = _opened(source)
    factors = calibration_of(options.calibration)
    if "rows" not in document and "parallel" not in document:
        return Estimates(rows=(_configured(document, name, folder, factors).row,))
    rows = document.get("rows", [document])
    if not isinstance(rows, list) or not rows:
        raise FormatError(f"{name}: 'rows' must be a non-empty list of configurations")
    count = 1 if len(rows) < FEW else usable_cores() if options.workers is None else options.workers
    predictions: dict[str, _Prediction] = {}
    for finished in sweep(
        partial(_estimated, folder=folder, calibration=factors),
        (SweepTask(str(place), _NumberedRow(place, row)) for place, row in enumerate(rows)),
        answer=_Prediction,
        asked={"what": "estimate", "rows": _digest(rows), "calibration": str(factors)},
        workers=count,
        dask=options.dask,
        store=None if options.store is None else Path(options.store),
        progress=None if progress is None else partial(_tell, progress, len(rows)),
    ):
        predictions[finished.key] = finished.required()
    return Estimates(rows=tuple(predictions[str(place)].row for place in range(len(rows))))


def calibration_of(path: FilePath | None) -> Calibration | None:
    """Return the calibration in a file; None without a file. Raises InputError for a file that cannot be read."""
    return None if path is None else read_calibration(Path(path))


def _digest(rows: list[Any]) -> str:
    return blake2b(repr(rows).encode(), digest_size=16).hexdigest()


def _tell(progress: Callable[[float], None], rows: int, so_far: SweepProgress) -> None:
    progress(so_far.done / rows)


def _opened(source: FilePath | Mapping[str, Any]) -> tuple[Mapping[str, Any], str, Path]:
    """Return the content of a source, its name, and the folder that file names in it start from."""
    if isinstance(source, Mapping):
        return source, "configuration", Path()
    path = path_of(source, "the file of configurations")
    document = read_document(path, "file of configurations", limit=LARGEST)
    if not isinstance(document, dict):
        raise FormatError(f"the file of configurations {path} holds no keys: write 'model: llama3-70b' and so on")
    return document, path.name, path.parent


def _estimated(numbered: _NumberedRow, *, folder: Path, calibration: Calibration | None) -> _Prediction:
    """Return the estimate of a row, or why there is none."""
    row = numbered.document
    if isinstance(row, dict) and "parallel" not in row and "cluster" in row:
        name = str(row.get("id", f"row {numbered.place}"))
        try:
            return _configured({key: value for key, value in row.items() if key != "id"}, name, folder, calibration)
        except PipeplanError as error:
            return _Prediction(id=name, refused=str(error))
    return _published(row_from(row, numbered.place), calibration)


def _configured(document: Mapping[str, Any], name: str, folder: Path, calibration: Calibration | None) -> _Prediction:
    predicted = estimate_one(*read_configuration(document, folder), calibration=calibration)
    return _Prediction(id=name, estimate=predicted)


def _published(row: RunRow, calibration: Calibration | None) -> _Prediction:
    named: dict[str, Any] = {"id": row.id, "source": row.source, "assumed": row.assumed}
    if row.model is None or row.cluster is None or row.configuration is None:
        return _Prediction(**named, refused=row.refused or "the row does not say what ran")
    measured = {
        "step_time_s": row.measured.step_time,
        "peak_memory_gib": None if row.measured.peak_bytes is None else row.measured.peak_bytes / GIBIBYTE,
    }
    try:
        predicted = estimate_one(
            row.model, row.cluster, row.configuration, calibration=calibration, with_error_bar=False
        )
    except PipeplanError as error:
        return _Prediction(**named, refused=str(error))
    of_others = error_bar(row.model, row.cluster, row.configuration, without=row.id)
    figures = {name: value for name, value in measured.items() if value is not None}
    return _Prediction(**named, estimate=replace(predicted, error_bar=of_others), measured=figures)
