"""Ledgers of tried runs: what all runs share, and the settings and the measured step of each.

.. code-block:: yaml

    model: llama3-70b
    cluster: h100-sxm:8x8
    global_batch: 128
    sequence: 8192
    runs:
      - {tp: 4, pp: 4, cp: 2, vp: 5, measured: 14.61s, peak_memory: 62.8GiB}
      - {id: wide, configuration: wide.yaml, measured: logs/wide.log}
      - {tp: 2, pp: 4, cp: 4, out_of_memory: true}
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from statistics import median
from typing import Any

from pipeplan.costs import parse_limit
from pipeplan.extensions.planning.flags import read_configuration, read_keys
from pipeplan.extensions.planning.runs.factors import TriedRun
from pipeplan.extensions.planning.runs.logs import measured_as
from pipeplan.foundation.documents import read_document
from pipeplan.foundation.errors import CostError, FormatError, InputError, PipeplanError, UnknownNameError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.model import shortened

_OWN = ("id", "runs", "configuration", "measured", "peak_memory", "out_of_memory")
"""Keys of a ledger and its runs beside those of a configuration."""


def read_ledger(path: Path, *, approximate: bool = False) -> list[TriedRun]:
    """Return the runs of a ledger. Raises InputError with the run that cannot be read, and why."""
    document = read_document(path, "ledger of runs")
    entries = document.get("runs") if isinstance(document, Mapping) else None
    if not isinstance(entries, list) or not entries:
        raise FormatError(f"the ledger {path} has no 'runs': expected a list of settings and 'measured'", field="runs")
    runs = []
    for place, entry in enumerate(entries):
        name = str(entry.get("id", f"run {place}")) if isinstance(entry, Mapping) else f"run {place}"
        try:
            runs.append(_run(name, {**document, "id": name}, entry, path.parent, approximate))
        except PipeplanError as error:
            raise InputError(f"{path.name}: {name}: {error}", field="runs") from None
    return runs


def _run(name: str, shared: Mapping[str, Any], entry: Any, folder: Path, approximate: bool) -> TriedRun:
    if not isinstance(entry, Mapping):
        raise FormatError(f"expected a mapping of settings and 'measured', not {shortened(repr(entry), 60)}")
    named = {} if "configuration" not in entry else read_keys(folder / str(entry["configuration"]))
    for key in entry:
        if key not in _OWN and get_close_matches(str(key), _OWN, n=1, cutoff=0.8):
            raise UnknownNameError("key of a run", str(key), _OWN)
    settings = {**shared, **named, **entry}
    values = {key: settings.pop(key, None) for key in _OWN}
    measured, peak = values["measured"], values["peak_memory"]
    if (measured is None) != (values["out_of_memory"] is True):
        raise InputError("expected either 'measured', a duration or a log, or 'out_of_memory: true'")
    model, cluster, configuration = read_configuration(settings, folder, approximate=approximate)
    try:
        seconds, peak_gib = None, None if peak is None else parse_limit(peak)[0] / GIBIBYTE
    except CostError:
        raise InputError(f"invalid peak_memory {shortened(repr(peak), 60)}: expected a size such as 62.8GiB") from None
    if measured is not None:
        measurement = measured_as(measured, configuration, folder)
        seconds = median(measurement.seconds(configuration))
        peak_gib = peak_gib or max(measurement.memory[0].values(), default=None)
    return TriedRun(
        id=name, model=model, cluster=cluster, configuration=configuration, seconds=seconds, peak_gib=peak_gib
    )
