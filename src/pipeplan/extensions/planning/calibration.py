"""Calibration file: measured over predicted time of one machine, by kind of work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.hardware import Gpu
from pipeplan.extensions.planning.results import CostsFrom
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.documents import json_text, read_document
from pipeplan.foundation.errors import CostError, FormatError, InputError, UnknownNameError
from pipeplan.foundation.files import write_text
from pipeplan.foundation.records import Record

KERNELS = ("gemm", "grouped_gemm", "attention", "memory", "head", "loss")
"""Kinds of GPU kernels. Head and loss are layers; their own factor replaces the factors of their kernels."""

KINDS = (*KERNELS, "optimizer", "collective", "network", "compute")
"""Kinds of work that have a factor. ``network`` are the collectives between nodes, which otherwise have the factor of all
collectives; ``compute`` multiplies all kernels: it is the ratio of whole stages of a run."""

_FIELD = "calibration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Measured and predicted seconds of one kind of work (:data:`KINDS`), and a description of what was measured.

    ``uncertainty`` is the relative standard deviation of the factor; 0: unknown.
    """

    kind: str
    measured: float
    analytic: float
    source: str = ""
    uncertainty: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kind of work", self.kind, KINDS, field=_FIELD)
        for name in ("measured", "analytic"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise CostError(
                    f"invalid {name} seconds {value} of {self.kind}: expected a finite number above 0", field=_FIELD
                )

    @property
    def factor(self) -> float:
        """Measured over predicted time."""
        return self.measured / self.analytic


class CalibrationFactor(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Factor of one kind of work, with the measured and the predicted seconds, and its relative standard deviation."""

    factor: float
    measured: float
    analytic: float
    source: str
    uncertainty: float = 0.0


class CalibrationRecord(Record, frozen=True, kw_only=True):
    """Content of a calibration file, and answer of ``pipeplan calibrate --json``."""

    gpu: str
    model: str
    sequence: int
    microbatch_size: int
    precision: str
    measured_on: str
    factors: dict[str, CalibrationFactor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Correction factors of one machine, at most one per kind of work.

    ``model``, ``sequence``, ``microbatch_size`` and ``precision`` are those of the measured layers, ``measured_on`` the
    device and software in words.
    """

    gpu: str
    corrections: tuple[Correction, ...]
    model: str = ""
    sequence: int = 0
    microbatch_size: int = 0
    precision: str = "bf16"
    measured_on: str = ""

    def __post_init__(self) -> None:
        kinds = [correction.kind for correction in self.corrections]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise CostError(
                    f"the calibration of {self.gpu} has two factors for {kind}; expected at most one", field=_FIELD
                )

    def factor(self, kind: str) -> float:
        """Return measured over predicted time of a kind of work; 1 if it was not measured."""
        own = self._own(kind)
        if kind in ("head", "loss"):
            # A layer without its own factor uses its kernels' factors, which already contain ``compute``.
            return 1.0 if own is None else own * (self._own("compute") or 1.0)
        if kind == "network" and own is None:
            return self.factor("collective")
        return (own or 1.0) * ((self._own("compute") or 1.0) if kind in KERNELS else 1.0)

    def _own(self, kind: str) -> float | None:
        return next((correction.factor for correction in self.corrections if correction.kind == kind), None)

    def costs_from(self, kind: str, model: ModelShape, configuration: Configuration) -> CostsFrom:
        """Return the source of a time: ``measured`` on this layer, ``calibrated`` on another one, or ``analytic``."""
        if self._own(kind) is None and not (kind == "collective" and self._own("network")):
            # The factor of whole stages also corrects kernels that were not measured separately, but no other work.
            return "calibrated" if kind in KERNELS and self._own("compute") is not None else "analytic"
        return "measured" if self._is_of(model, configuration) else "calibrated"

    def _is_of(self, model: ModelShape, configuration: Configuration) -> bool:
        measured = (self.model, self.sequence, self.microbatch_size, self.precision, 1, 1, 1)
        planned = (
            model.name,
            configuration.sequence,
            configuration.microbatch_size,
            configuration.precision,
            configuration.tensor,
            configuration.context,
            configuration.expert,
        )
        return measured == planned

    def require(self, gpu: Gpu) -> None:
        """Raise InputError if the calibration belongs to another GPU."""
        if gpu.name != self.gpu:
            raise InputError(
                f"the calibration is for {self.gpu}, but the cluster has {gpu.name}; measure on that GPU with "
                f"`pipeplan calibrate MODEL --gpu {gpu.name}`",
                field=_FIELD,
            )

    def with_corrections(self, corrections: Iterable[Correction]) -> Calibration:
        """Return a copy in which some kinds of work have new corrections."""
        new = {correction.kind: correction for correction in corrections}
        kept = {correction.kind: correction for correction in self.corrections} | new
        return replace(self, corrections=tuple(kept[kind] for kind in KINDS if kind in kept))

    @property
    def record(self) -> CalibrationRecord:
        """The content of the calibration file."""
        return CalibrationRecord(
            gpu=self.gpu,
            model=self.model,
            sequence=self.sequence,
            microbatch_size=self.microbatch_size,
            precision=self.precision,
            measured_on=self.measured_on,
            factors={
                correction.kind: CalibrationFactor(
                    factor=_rounded(correction.factor),
                    measured=_rounded(correction.measured),
                    analytic=_rounded(correction.analytic),
                    source=correction.source,
                    uncertainty=_rounded(correction.uncertainty),
                )
                for correction in self.corrections
            },
        )


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration as YAML or JSON. Raises InputError for another suffix and a file that cannot be written."""
    require_calibration_file(path)
    record = calibration.record.to_dict()
    if path.suffix == ".json":
        write_text(path, json_text(record, indent=2) + "\n")
        return
    factors = record.pop("factors")
    lines = [f"{key}: {json_text(value)}\n" for key, value in record.items()]
    lines += ["factors:  # measured over analytic time; seconds\n" if factors else "factors: {}\n"]
    lines += [f"  {kind}: {json_text(values)}\n" for kind, values in factors.items()]
    write_text(path, "".join(lines))


def require_calibration_file(path: Path) -> None:
    """Raise InputError if a path does not have the suffix of a calibration file."""
    if path.suffix not in {".yaml", ".yml", ".json"}:
        raise InputError(
            f"invalid calibration file {path.name}: expected the suffix .yaml, .yml or .json", field="output"
        )


def read_calibration(path: Path) -> Calibration:
    """Return the calibration in a file that :func:`write_calibration` wrote, or one that lists factors without seconds.

    Raises InputError for a file that cannot be read or is no calibration: FormatError, UnknownNameError or CostError.
    """
    content = read_document(path, _FIELD)
    where = f"calibration {path}"
    if not isinstance(content, dict) or not isinstance(content.get("gpu"), str):
        raise FormatError(f"{where} has no 'gpu': expected the name of its GPU", field=_FIELD)
    factors = content.get("factors")
    if not isinstance(factors, dict):
        raise FormatError(f"{where} has no 'factors': expected a factor for each kind of work", field=_FIELD)
    header = {key: value for key, value in content.items() if key != "factors"}
    _require_keys(where, header, tuple(_TYPES))
    for key, value in header.items():
        if isinstance(value, bool) or not isinstance(value, _TYPES[key]):
            raise FormatError(f"{where}: invalid {key} {value!r}", field=_FIELD)
    return Calibration(
        corrections=tuple(_correction(where, kind, factor) for kind, factor in factors.items()), **header
    )


_TYPES: Mapping[str, type] = {
    name: kind for name, kind in get_type_hints(CalibrationRecord).items() if name != "factors"
}


def _correction(where: str, kind: Any, factor: Any) -> Correction:
    values = factor if isinstance(factor, dict) else {"factor": factor}
    _require_keys(f"{where}: {kind}", values, ("factor", "measured", "analytic", "source", "uncertainty"))
    numbers = {key: _number(f"{where}: {kind}.{key}", value) for key, value in values.items() if key != "source"}
    if {"measured", "analytic"} <= numbers.keys():
        measured, analytic = numbers["measured"], numbers["analytic"]
    elif "factor" in numbers:
        measured, analytic = numbers["factor"], 1.0
    else:
        raise FormatError(f"{where}: {kind} needs 'factor', or both 'measured' and 'analytic'", field=_FIELD)
    return Correction(
        kind=str(kind),
        measured=measured,
        analytic=analytic,
        source=str(values.get("source", "")),
        uncertainty=numbers.get("uncertainty", 0.0),
    )


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CostError(f"invalid {name} {value!r}: expected a number", field=_FIELD)
    return float(value)


def _require_keys(where: str, content: Mapping[Any, Any], names: tuple[str, ...]) -> None:
    for key in content:
        if key not in names:
            raise UnknownNameError(f"key in {where}", str(key), names, field=_FIELD)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
