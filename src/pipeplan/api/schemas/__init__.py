"""The JSON Schema of every answer of a command, and of every file of pipeplan's own, by name and version.

A version says which keys there are and what they mean. Adding keys leaves it as it is; taking one away, or giving it another
meaning, makes another version. Nothing is written through these records but what is of a file's own format: tests hold every
answer against its record.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pipeplan.api.schemas import orders, planning
from pipeplan.formats import RECORDS, schema_of

ANSWERS: dict[str, type[msgspec.Struct]] = {
    "answer-check": orders.VerdictRecord,
    "answer-compare": orders.ComparisonRecord,
    "answer-diff": orders.DiffRecord,
    "answer-estimate": planning.EstimatesRecord,
    "answer-explain": orders.ExplanationRecord,
    "answer-gpus": planning.GpusRecord,
    "answer-machines": orders.MachinesRecord,
    "answer-models": planning.ModelsRecord,
    "answer-pareto": orders.FrontRecord,
    "answer-plan": planning.PlanRecord,
    "answer-run": orders.TrainingRunRecord,
    "answer-schedules": orders.CatalogueRecord,
    "answer-steady-state": orders.SteadyStatesRecord,
    "calibration": planning.CalibrationRecord,
}
"""What commands answer beside one result, which is ``pipeplan-result``."""

EVERY: dict[str, type[msgspec.Struct]] = RECORDS | ANSWERS


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one of ``EVERY``."""
    return schema_of(name, EVERY[name])
