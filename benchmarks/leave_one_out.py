"""Leave-one-source-out error of the planner's estimates, and what each constant contributes to it.

The constants of kernels and links (:func:`dials`) are fitted to the published runs of all sources but one, and predict the
runs of that one. A dial is a factor on a constant of one generation of GPUs. Steps are close to linear in logarithms, so a
fit needs one estimate per run and dial: ``log(predicted / measured)`` plus the derivatives times the logarithms of the
factors is the residual. The fit minimizes absolute residuals by iteratively reweighted least squares, with a prior of
:data:`PRIOR` around the shipped constants, which a dial keeps where no other source has runs for it.

``python -m benchmarks.leave_one_out`` prints the error by source; with ``--ablate`` also the error without each constant
(minutes): a constant stays if it gains 0.3 points or is physics with a source. With ``--fit`` the factors of a fit to all
sources.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from math import log
from multiprocessing import get_context
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from benchmarks.published_runs.rows import RunRow
from benchmarks.published_runs.sources import published, source_of
from pipeplan.extensions.planning import estimate
from pipeplan.extensions.planning.estimates import software as software_table
from pipeplan.extensions.planning.estimates.properties import Software
from pipeplan.extensions.planning.hardware import collectives, efficiency
from pipeplan.extensions.planning.hardware.efficiency import Generation
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Floats

PRIOR = 0.15
"""Standard deviation of the logarithm of a dial, before any run is seen."""

FACTOR = 1.05
"""Factor with which derivatives are taken."""

FLOOR = 0.02
"""Residual below which the fit counts squares: what two measurements of one run differ by."""

SPREAD = 0.1
"""Typical residual of a run, which sets the weight of runs against the prior."""

ROUNDS = 30
"""Iterations of the reweighted fit; it has converged to 1e-4 after about 15."""


Values = list[tuple[ModuleType, str, Any]]
"""New values of attributes of modules: module, name, value."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of constants: the new values, and the generation of GPUs whose runs it changes (empty: of any)."""

    values: Callable[[], Values]
    generation: str = ""


def _of_generations_by(change: Callable[[Generation], Generation], only: str = "") -> Values:
    table = {name: change(row) if only in ("", name) else row for name, row in efficiency.GENERATIONS.items()}
    return [(efficiency, "GENERATIONS", MappingProxyType(table))]


def _of_generations(values: Mapping[str, Any]) -> Values:
    return _of_generations_by(lambda row: replace(row, **values))


def _of_attention(values: Mapping[str, Any]) -> Values:
    return _of_generations_by(
        lambda row: replace(row, forward=replace(row.forward, **values), backward=replace(row.backward, **values))
    )


def _of_links(**values: Any) -> Values:
    return [(collectives, "LINKS", replace(efficiency.LINKS, **values))]


def _of_software(values: Mapping[str, Any]) -> Values:
    table = {name: replace(row, **values) for name, row in software_table.SOFTWARE.items()}
    return [(software_table, "SOFTWARE", MappingProxyType(table))]


def _products(form: str, row: Generation) -> Generation:
    return replace(row, gemm=MappingProxyType({**row.gemm, form: row.gemm[form] * FACTOR}))


def _attention(row: Generation) -> Generation:
    forward = replace(row.forward, reach=row.forward.reach * FACTOR)
    return replace(row, forward=forward, backward=replace(row.backward, reach=row.backward.reach * FACTOR))


def dials() -> dict[str, Change]:
    """Return the constants that are fitted, by name: each change multiplies one of them by :data:`FACTOR`."""
    found: dict[str, Change] = {}
    for name, row in efficiency.GENERATIONS.items():
        turned: dict[str, Callable[[Generation], Generation]] = {
            **{f"products, {form}": partial(_products, form) for form in row.gemm},
            "grouped products": lambda row: replace(row, grouped=row.grouped * FACTOR),
            "memory": lambda row: replace(row, memory=row.memory * FACTOR),
            "attention": _attention,
        }
        for what, change in turned.items():
            found[f"{name}: {what}"] = Change(partial(_of_generations_by, change, name), name)
    found["links inside a node"] = Change(partial(_of_generations_by, lambda row: replace(row, ring=row.ring * FACTOR)))
    found["network"] = Change(partial(_of_links, network=efficiency.LINKS.network * FACTOR))
    return found


@contextmanager
def applied(change: Change | None) -> Iterator[None]:
    """Apply a change to the modules' constants."""
    values = change.values() if change else []
    old = [(module, name, getattr(module, name)) for module, name, _ in values]
    try:
        for module, name, value in values:
            setattr(module, name, value)
        _forget()
        yield
    finally:
        for module, name, value in old:
            setattr(module, name, value)
        _forget()


def _forget() -> None:
    """Empty the caches of all functions of the planner."""
    for module in [value for name, value in sys.modules.items() if name.startswith("pipeplan.extensions.planning")]:
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def logs_of(rows: Sequence[RunRow], change: Change | None = None) -> Floats:
    """Return ``log(predicted / measured)`` of the step of each run; not a number where the run is refused or not changed."""
    found = np.full(len(rows), np.nan)
    with applied(change):
        for place, row in enumerate(rows):
            assert row.model is not None
            assert row.cluster is not None
            assert row.configuration is not None
            assert row.measured.step_time is not None
            if change and change.generation not in ("", row.cluster.gpu.generation):
                continue
            try:
                predicted = estimate(row.model, row.cluster, row.configuration, with_error_bar=False).step_time
            except PipeplanError:
                continue
            found[place] = log(predicted / row.measured.step_time)
    return found


def _changed_logs(changes: Mapping[str, Change], rows: Sequence[RunRow]) -> dict[str, Floats]:
    """Return the logarithms after each change, computed by one process per core."""
    _shared.update(changes=changes, rows=rows)
    # Changes hold functions, which cannot be pickled: the processes inherit them.
    with get_context("fork").Pool() as pool:
        return dict(zip(changes, pool.map(_one_change, changes, chunksize=1), strict=True))


_shared: dict[str, Any] = {}


def _one_change(name: str) -> Floats:
    return logs_of(_shared["rows"], _shared["changes"][name])


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """Residuals of runs, linear in the logarithms of the dials.

    Attributes
    ----------
    logs
        ``log(predicted / measured)`` with the shipped constants; shape (runs,).
    slopes
        Derivatives by the logarithms of the dials; shape (runs, dials).
    sources
        Source of each run; shape (runs,).
    """

    logs: Floats
    slopes: Floats
    sources: np.ndarray[Any, Any]

    def fitted(self, inside: np.ndarray[Any, Any]) -> Floats:
        """Return the logarithms of the dials that fit the runs ``inside``; shape (dials,)."""
        logs, slopes = self.logs[inside], self.slopes[inside]
        _, place, count = np.unique(self.sources[inside], return_inverse=True, return_counts=True)
        # Many rows of one source are not as many pieces of evidence.
        weight = 1.0 / np.sqrt(count[place])
        dials = np.zeros(slopes.shape[1])
        prior = np.eye(len(dials)) / PRIOR**2
        for _ in range(ROUNDS):
            residuals = logs + slopes @ dials
            by_row = weight / np.maximum(np.abs(residuals), FLOOR) / SPREAD
            dials = np.linalg.solve((slopes.T * by_row) @ slopes + prior, -(slopes.T * by_row) @ logs)
        return dials

    def left_out(self, logs: Floats | None = None) -> Floats:
        """Return ``log(predicted / measured)`` of each run, its source left out of the fit; shape (runs,)."""
        base = self if logs is None else replace(self, logs=logs)
        found = np.zeros(len(base.logs))
        for source in np.unique(base.sources):
            out = base.sources == source
            found[out] = base.logs[out] + base.slopes[out] @ base.fitted(~out)
        return found


def linear(rows: Sequence[RunRow], sources: Sequence[str]) -> Linear:
    """Return the residuals of runs and their derivatives by all dials."""
    base = logs_of(rows)
    turned = _changed_logs(dials(), rows)
    slopes = np.array([np.nan_to_num((logs - base) / log(FACTOR)) for logs in turned.values()]).T
    return Linear(base, slopes, np.array(sources))


def errors(logs: Floats) -> Floats:
    """Return predicted over measured, less 1."""
    found: Floats = np.exp(logs) - 1.0
    return found


def mean_error(logs: Floats) -> float:
    """Return the mean of absolute errors over the runs."""
    return float(np.abs(errors(logs)).mean())


def removals() -> dict[str, Change]:
    """Return the changes that remove one constant, or one field of all trainers' software, by name."""
    found: dict[str, Change] = {}
    for field in fields(Software):
        if field.name in ("name", "title", "source"):
            continue
        default = getattr(Software(name="", title=""), field.name)
        if any(getattr(row, field.name) != default for row in software_table.SOFTWARE.values()):
            found[f"software: {field.name}"] = Change(partial(_of_software, {field.name: default}))
    for name, value in _NEUTRAL.items():
        found[f"kernels: {name}"] = Change(partial(_of_generations, {name: value}))
    found["kernels: tiles"] = Change(lambda: _of_generations_by(lambda row: replace(row, tiles=row.tiles[:1])))
    for name in ("half_keys", "half_dim", "block"):
        found[f"attention: {name}"] = Change(partial(_of_attention, {name: 0}))
    for name in ("network_all_to_all", "network_by_node"):
        found[f"links: {name}"] = Change(partial(_of_links, **{name: efficiency.LINKS.network}))
    for name in ("launch", "message_launch", "crossing", "posting"):
        found[f"links: {name}"] = Change(partial(_of_links, **{name: 0.0}))
    return found


_NEUTRAL: Mapping[str, float] = {
    **{"accumulating": 1.0, "grouped": 1.0, "fill": 0.0, "quantised": 0.0, "kernel": 0.0},
    **{"lost": 0.0, "switch": 0.0},
}
"""Values of a generation's constants that have no effect."""


def table(found: Linear, left_out: Floats) -> Iterator[str]:
    """The errors by source in lines of Markdown: with the source left out of the fit, and with the shipped constants."""
    yield "| source | runs | left out: mean error | of absolute errors | shipped: mean error | of absolute errors |"
    yield "|---|---:|---:|---:|---:|---:|"
    for source in np.unique(found.sources):
        inside = found.sources == source
        cells = [
            cell
            for values in (errors(left_out[inside]), errors(found.logs[inside]))
            for cell in (f"{100 * values.mean():+.1f} %", f"{100 * np.abs(values).mean():.1f} %")
        ]
        yield f"| {source} | {inside.sum()} | {' | '.join(cells)} |"


def main() -> None:
    """Print the errors by source, and on request what each constant contributes."""
    rows = [row for row in published()[0] if row.configuration is not None and row.measured.step_time is not None]
    found = linear(rows, [source_of(row) for row in rows])
    left_out = found.left_out()
    print(*table(found, left_out), sep="\n")
    print(f"leave one source out: {mean_error(left_out):.2%}; shipped: {mean_error(found.logs):.2%}", flush=True)
    if "--fit" in sys.argv:
        for name, factor in zip(dials(), np.exp(found.fitted(np.ones(len(rows), bool))), strict=True):
            print(f"{name}: {factor:.3f}")
    if "--ablate" in sys.argv:
        for name, logs in _changed_logs(removals(), rows).items():
            without = mean_error(found.left_out(logs))
            print(f"{name}: {without:.2%} without it, gains {100 * (without - mean_error(left_out)):+.2f} points")


if __name__ == "__main__":
    main()
