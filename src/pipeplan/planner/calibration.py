"""A calibration: what one's own machine takes over what data sheets and published kernels say, by kind of work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeplan.documents import json_text, read_document
from pipeplan.errors import CostError, FormatError, InputError, UnknownNameError
from pipeplan.files import write_text
from pipeplan.hardware import Gpu
from pipeplan.planner.answers import CostsFrom
from pipeplan.planner.configuration import Configuration
from pipeplan.records import Record
from pipeplan.workload import ModelShape

KERNELS = ("gemm", "grouped_gemm", "attention", "memory", "head", "loss")
"""Kinds of work that a GPU does alone. Head and loss are layers, whose own factor stands in place of their kernels'."""

KINDS = (*KERNELS, "optimizer", "collective", "compute")
"""Kinds of work with a factor; ``compute`` is on top of all kernels, the ratio of whole stages of a run."""

_FIELD = "calibration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The measured and the analytic time of one kind of work.

    Attributes
    ----------
    kind
        One of :data:`KINDS`.
    measured, analytic
        Seconds of the same work.
    source
        What was measured, in words.
    """

    kind: str
    measured: float
    analytic: float
    source: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kind of work", self.kind, KINDS, field=_FIELD)
        for name in ("measured", "analytic"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise CostError(f"{name} seconds of {self.kind} are {value}: more than 0 and finite", field=_FIELD)

    @property
    def factor(self) -> float:
        """Return the factor on the analytic time."""
        return self.measured / self.analytic


class CalibrationFactor(Record, frozen=True, kw_only=True):
    """What one kind of work took over what it should, and the seconds of both."""

    factor: float
    measured: float
    analytic: float
    source: str


class CalibrationRecord(Record, frozen=True, kw_only=True):
    """File of a calibration, and what ``pipeplan profile --calibrate --json`` answers."""

    gpu: str
    model: str
    sequence: int
    microbatch_size: int
    precision: str
    measured_on: str
    factors: dict[str, CalibrationFactor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Factors of one machine.

    Attributes
    ----------
    gpu
        Name of the GPU whose data sheet they correct.
    corrections
        At most one of each kind.
    model, sequence, microbatch_size, precision
        Whose layers were measured.
    measured_on
        Device and software, in words.
    """

    gpu: str
    corrections: tuple[Correction, ...]
    model: str = ""
    sequence: int = 0
    microbatch_size: int = 0
    precision: str = "bf16"
    measured_on: str = ""

    def __post_init__(self) -> None:
        kinds = [each.kind for each in self.corrections]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise CostError(f"the calibration of {self.gpu} has two factors of {kind}", field=_FIELD)

    def factor(self, kind: str) -> float:
        """Measured over analytic time of a kind of work; 1 where nobody measured."""
        own = self._own(kind)
        if kind in ("head", "loss"):
            # Without one of its own a layer has its kernels' factors, which hold what all kernels share.
            return 1.0 if own is None else own * (self._own("compute") or 1.0)
        return (own or 1.0) * ((self._own("compute") or 1.0) if kind in KERNELS else 1.0)

    def _own(self, kind: str) -> float | None:
        return next((each.factor for each in self.corrections if each.kind == kind), None)

    def costs_from(self, kind: str, model: ModelShape, configuration: Configuration) -> CostsFrom:
        """Return the source of the time of a kind of work: measured on this layer, corrected by another, or neither."""
        if self._own(kind) is None:
            # A factor of whole stages corrects the kernels in them, and none that were not looked at apart.
            return "calibrated" if kind in KERNELS and self._own("compute") is not None else "analytic"
        return "measured" if self._is_of(model, configuration) else "calibrated"

    def _is_of(self, model: ModelShape, configuration: Configuration) -> bool:
        measured = (self.model, self.sequence, self.microbatch_size, self.precision, 1, 1, 1)
        asked = (
            model.name,
            configuration.sequence,
            configuration.microbatch_size,
            configuration.precision,
            configuration.tensor,
            configuration.context,
            configuration.expert,
        )
        return measured == asked

    def require(self, gpu: Gpu) -> None:
        """Refuse another GPU than the one it is of. Raises InputError."""
        if gpu.name != self.gpu:
            raise InputError(
                f"the calibration is of {self.gpu}, and the cluster has {gpu.name}: measure on one of those, "
                f"`pipeplan calibrate MODEL --gpu {gpu.name}`",
                field=_FIELD,
            )

    def with_corrections(self, corrections: Iterable[Correction]) -> Calibration:
        """The same with some kinds measured anew; the others stay."""
        new = {each.kind: each for each in corrections}
        kept = {each.kind: each for each in self.corrections} | new
        return replace(self, corrections=tuple(kept[kind] for kind in KINDS if kind in kept))

    @property
    def record(self) -> CalibrationRecord:
        """The calibration as its file has it."""
        return CalibrationRecord(
            gpu=self.gpu,
            model=self.model,
            sequence=self.sequence,
            microbatch_size=self.microbatch_size,
            precision=self.precision,
            measured_on=self.measured_on,
            factors={
                each.kind: CalibrationFactor(
                    factor=_rounded(each.factor),
                    measured=_rounded(each.measured),
                    analytic=_rounded(each.analytic),
                    source=each.source,
                )
                for each in self.corrections
            },
        )


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration as YAML or JSON, by the file's ending.

    Raises
    ------
    InputError
        For another ending, or where it cannot be written.
    """
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
    """Refuse an ending that no calibration has. Raises InputError."""
    if path.suffix not in {".yaml", ".yml", ".json"}:
        raise InputError(f"a calibration is .yaml or .json, not {path.name}", field="output")


def read_calibration(path: Path) -> Calibration:
    """The calibration in a file, as :func:`write_calibration` writes it; of a factor alone the seconds may be left out.

    Raises
    ------
    InputError
        For a file that cannot be read.
    FormatError
        For one that is no calibration.
    UnknownNameError
        For a key or a kind of work that nobody knows; names the nearest.
    CostError
        For a factor that cannot be.
    """
    content = read_document(path, _FIELD)
    where = f"the calibration {path}"
    if not isinstance(content, dict) or not isinstance(content.get("gpu"), str):
        raise FormatError(f"{where} does not say which 'gpu' it is of", field=_FIELD)
    factors = content.get("factors")
    if not isinstance(factors, dict):
        raise FormatError(f"{where} holds no 'factors'", field=_FIELD)
    said = {key: value for key, value in content.items() if key != "factors"}
    _require_keys(where, said, tuple(_TYPES))
    for key, value in said.items():
        if isinstance(value, bool) or not isinstance(value, _TYPES[key]):
            raise FormatError(f"{where}: {key} is {value!r}", field=_FIELD)
    return Calibration(corrections=tuple(_correction(where, kind, each) for kind, each in factors.items()), **said)


_TYPES: Mapping[str, type] = {
    "gpu": str,
    "model": str,
    "sequence": int,
    "microbatch_size": int,
    "precision": str,
    "measured_on": str,
}


def _correction(where: str, kind: Any, given: Any) -> Correction:
    values = given if isinstance(given, dict) else {"factor": given}
    _require_keys(f"{where}: {kind}", values, ("factor", "measured", "analytic", "source"))
    numbers = {key: _number(f"{where}: {kind}.{key}", value) for key, value in values.items() if key != "source"}
    if {"measured", "analytic"} <= numbers.keys():
        measured, analytic = numbers["measured"], numbers["analytic"]
    elif "factor" in numbers:
        measured, analytic = numbers["factor"], 1.0
    else:
        raise FormatError(f"{where}: {kind} has no factor", field=_FIELD)
    return Correction(kind=str(kind), measured=measured, analytic=analytic, source=str(values.get("source", "")))


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CostError(f"{name} is {value!r}, not a number", field=_FIELD)
    return float(value)


def _require_keys(where: str, given: Mapping[Any, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise UnknownNameError(f"key in {where}:", str(key), known, field=_FIELD)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
