"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Required, TypedDict

if TYPE_CHECKING:
    from pipeplan.extensions.planning import Objective as PlanObjective
    from pipeplan.extensions.planning.answers.options import AllowLike, FilePath, FixLike


class PredictionOptionsKeywords(TypedDict, total=False):
    """Keywords of PredictionOptions."""

    workers: int | None
    store: FilePath | None
    approximate: bool
    calibration: FilePath | None


class PlanKeywords(PredictionOptionsKeywords, total=False):
    """Keywords of PlanOptions."""

    runs: FilePath | None
    global_batch: Required[int]
    sequence: Required[int]
    memory_limit: float | str | None
    objective: PlanObjective
    deadline: float | str | None
    tokens: float
    price: float | None
    fix: FixLike | None
    allow: AllowLike
    seconds: float | None


class EstimateOptionsKeywords(PredictionOptionsKeywords, total=False):
    """Keywords of EstimateOptions."""

    measured: FilePath | float | None
