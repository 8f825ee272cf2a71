"""From files of configurations to estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pipeplan.costs import options_of
from pipeplan.extensions.planning import Calibration, Configuration, Estimate, read_calibration
from pipeplan.extensions.planning import estimate as estimate_one
from pipeplan.extensions.planning.answers.estimates import ConfigurationRow, EstimatedRow, Estimates, estimated_row
from pipeplan.extensions.planning.answers.options import EstimateOptions, FilePath
from pipeplan.extensions.planning.choice.assumptions import assumptions
from pipeplan.extensions.planning.flags import assumptions_of, read_configuration, read_keys
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.runs.comparing import compared
from pipeplan.extensions.planning.runs.logs import measured_as
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.extensions.search.answers.searches import usable_cores
from pipeplan.foundation.documents import ENDINGS
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.files import path_of
from pipeplan.foundation.records import replaced
from pipeplan.foundation.sweeps import Finished, SweepTask, sweep

if TYPE_CHECKING:
    from pipeplan.extensions.planning.keywords import EstimateOptionsKeywords

_FILE = "the file of configurations"

FEW = 32
"""Number of rows below which the default is one process: starting others would take longer than they save."""

_Reader = Callable[[Mapping[str, Any]], tuple[ModelShape, Cluster, Configuration]]
"""Reader of a configuration's keys."""


def estimate(
    source: FilePath | Mapping[str, Any],
    *,
    progress: Callable[[float], None] | None = None,
    **options: Unpack[EstimateOptionsKeywords],
) -> Estimates:
    """Estimate step time and memory of given configurations without a search.

    Parameters
    ----------
    source
        A YAML, TOML or JSON file, or what it holds: one configuration (``model``, ``cluster``, ``global_batch``,
        ``sequence``, and what ``fix`` of :func:`pipeplan.plan` by its names), or ``rows``: a list of such
        configurations. Or a file of a trainer that :func:`pipeplan.review` reads, such as a launch script that a plan
        writes.
    progress
        Called with the share that is done.
    **options
        The options of estimates (:class:`~pipeplan.extensions.planning.answers.options.EstimateOptions`).

    Other Parameters
    ----------------
    workers
        Number of worker processes (default: the number of cores).
    store
        Checkpoint file; rerun the same command to resume.
    approximate
        Read a config.json whose layers are not modelled as the nearest architecture.
    calibration
        Calibration file of your own GPU, written by `pipeplan calibrate`.
    measured
        Measured step of one configuration, to compare with its prediction: a duration such as 14.25s, or the log of the
        run (Megatron-LM, Megatron Bridge, NeMo, torchtitan).

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
    source: FilePath | Mapping[str, Any], options: EstimateOptions, *, progress: Callable[[float], None] | None = None
) -> Estimates:
    """See :func:`estimate`."""
    calibration = calibration_of(options.calibration)
    rows, single = _rows(source, options)
    if options.measured is not None and (not single or options.store is not None):
        words = "measured belongs to one configuration, without a store: list several runs in a ledger"
        raise InputError(words, field="measured")
    if single and options.store is None:
        answer = _estimated(rows[0], calibration=calibration)
        return Estimates.of([_single(rows[0], answer, calibration, options.measured)])
    tasks = [SweepTask(str(place), row) for place, row in enumerate(rows) if not row.refused]
    default = 1 if len(rows) < FEW else usable_cores()
    finished = {
        result.key: result
        for result in sweep(
            partial(_estimated, calibration=calibration),
            tasks,
            answer=Estimate,
            asked={
                "what": "estimates",
                "rows": blake2b(repr(rows).encode(), digest_size=16).hexdigest(),
                "calibration": str(calibration),
                "approximate": options.approximate,
            },
            workers=default if options.workers is None else options.workers,
            store=None if options.store is None else Path(options.store),
            progress=None if progress is None else lambda so_far: progress(so_far.done / len(tasks)),
        )
    }
    if single and (failure := finished["0"].failure) is not None and failure.kind == "refused":
        raise InputError(failure.message)
    if single:
        return Estimates.of([_single(rows[0], finished["0"].required(), calibration)])
    return Estimates.of(_row(row, finished.get(str(place))) for place, row in enumerate(rows))


def _single(
    row: ConfigurationRow,
    estimate: Estimate,
    calibration: Calibration | None,
    measured: FilePath | float | None = None,
) -> EstimatedRow:
    """Return the only row of an answer, with the assumptions that it rests on and the measurement of its run."""
    model, cluster, _ = row.job
    made = estimated_row(row, estimate, assumptions=assumptions(model, cluster, estimate, calibration=calibration))
    if measured is None:
        return made
    value = measured if isinstance(measured, float | int) else str(measured)
    found = measured_as(value, estimate.configuration)
    return replaced(made, measured=compared(model, cluster, estimate, found, calibration=calibration))


def _rows(source: FilePath | Mapping[str, Any], options: EstimateOptions) -> tuple[list[ConfigurationRow], bool]:
    """Return the rows of a source, and whether it is a single configuration, whose errors are raised."""
    document, name, folder = _opened(source)
    rows = () if isinstance(source, Mapping) else _of_trainer(path_of(source, _FILE), document)
    if rows:
        if len(rows) == 1 and rows[0].refused:
            raise InputError(f"{rows[0].id}: {rows[0].refused}")
        return list(rows), len(rows) == 1
    read = partial(read_configuration, folder=folder, approximate=options.approximate)
    if "rows" not in document:
        return [_configured(document, name, read)], True
    documents = document["rows"]
    if not isinstance(documents, list) or not documents:
        raise FormatError(f"{name}: 'rows' must be a non-empty list of configurations")
    return [_read(row, place, read) for place, row in enumerate(documents)], False


_OWN_KEYS = frozenset({"rows", "cluster", "global_batch"})
"""Keys of pipeplan's own files, one of which each of them has."""


def _of_trainer(path: Path, document: Mapping[str, Any]) -> tuple[ConfigurationRow, ...]:
    """Return the configurations in a trainer's file, or in a plan's answer; none for a file of pipeplan's own."""
    may_be_own = path.suffix.lower() in ENDINGS
    if may_be_own and not (_OWN_KEYS.isdisjoint(document) or "best" in document):
        return ()
    rows: tuple[ConfigurationRow, ...] = required_service("review", "configuration_rows")(path, may_be_own=may_be_own)
    return rows


def _row(row: ConfigurationRow, finished: Finished[Estimate] | None) -> EstimatedRow:
    """Return the row of the answer, with the estimate of the sweep or the reason why there is none."""
    if finished is None:
        return estimated_row(row, None, row.refused)
    if finished.failure is not None and finished.failure.kind == "refused":
        return estimated_row(row, None, finished.failure.message)
    return estimated_row(row, finished.required())


def calibration_of(path: FilePath | None) -> Calibration | None:
    """Return the calibration in a file; None without a file. Raises InputError for a file that cannot be read."""
    return None if path is None else read_calibration(Path(path))


def _opened(source: FilePath | Mapping[str, Any]) -> tuple[Mapping[str, Any], str, Path]:
    """Return the content of a source, its name, and the folder that file names in it start from."""
    if isinstance(source, Mapping):
        return source, "configuration", Path()
    path = path_of(source, _FILE)
    document = read_keys(path, "file of configurations") if path.suffix.lower() in ENDINGS else {}
    return document, path.name, path.parent


def _read(document: Any, place: int, read: _Reader) -> ConfigurationRow:
    """Return a configuration of a file; ``refused`` is what is wrong with it."""
    name = f"row {place}"
    if not isinstance(document, dict):
        return ConfigurationRow(id=name, refused="invalid row: expected a mapping of keys such as model and cluster")
    name = str(document.get("id", name))
    try:
        return _configured({key: value for key, value in document.items() if key != "id"}, name, read)
    except PipeplanError as error:
        return ConfigurationRow(id=name, refused=str(error))


def _configured(document: Mapping[str, Any], name: str, read: _Reader) -> ConfigurationRow:
    model, cluster, configuration = read(document)
    assumed = assumptions_of(document, configuration)
    return ConfigurationRow(id=name, model=model, cluster=cluster, configuration=configuration, assumed=assumed)


def _estimated(row: ConfigurationRow, *, calibration: Calibration | None) -> Estimate:
    """Return the estimate of a row that is not refused."""
    return estimate_one(*row.job, calibration=calibration)
