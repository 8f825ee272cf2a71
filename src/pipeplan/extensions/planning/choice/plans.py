"""Planning from a question to its answer: the request, and wider ones if nothing fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pipeplan.extensions.planning.choice.legality import UNUSUAL
from pipeplan.extensions.planning.choice.planning import ORDER_SHARE
from pipeplan.extensions.planning.choice.request import (
    DEFAULT_TOKENS,
    NO_TRAINERS,
    PlanListener,
    PlanRequest,
    read_fixed,
    value_of,
)
from pipeplan.extensions.planning.choice.trainers import TrainerRuns
from pipeplan.extensions.planning.estimates.seconds import TimeFactors
from pipeplan.extensions.planning.fitting import default_limit
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.plan_records import Objective, PlanResult
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.trainers import Trainer

ALL = "all"
"""Name that waives every rule of practice."""

ALIASES = {"many-chunks": "small-chunks", "schedules": "any-schedule", "precision": "any-precision"}
"""Other names of rules of practice."""


def read_allowed(names: Collection[str]) -> frozenset[str]:
    """Return the rules of practice that a user waives, by name; each text may hold several names joined by commas.

    Raises UnknownNameError for another name.
    """
    words = [ALIASES.get(word, word) for text in names for name in text.split(",") if (word := name.strip().lower())]
    for word in words:
        if word not in UNUSUAL and word != ALL:
            raise UnknownNameError("unusual choice", word, (*UNUSUAL, ALL), field="allow")
    return frozenset(UNUSUAL if ALL in words else words)


def plan(
    model: ModelShape,
    cluster: Cluster,
    *,
    global_batch: int,
    sequence: int,
    memory_limit: float | None = None,
    objective: Objective = "step-time",
    deadline: float | None = None,
    tokens: float = DEFAULT_TOKENS,
    fix: Mapping[str, Any] | None = None,
    allow: Collection[str] = (),
    seconds: float = 30.0,
    order_seconds: float | None = None,
    workers: int = 1,
    store: Path | None = None,
    calibration: TimeFactors | None = None,
    trainers: Mapping[str, Trainer] = NO_TRAINERS,
    progress: PlanListener | None = None,
) -> PlanResult:
    """Return the configuration to train with; :func:`pipeplan.plan` describes the other parameters.

    Each trainer has its own plan, with its own software and schedules; the best of these is the answer, which names its
    trainer. All valid configurations are bounded. Those that could be the best are estimated, in rounds that do not depend
    on the workers. The best of them get a layout search; runners-up, front and sensitivity are made of estimates.

    Parameters
    ----------
    memory_limit
        Bytes that the framework may allocate per GPU; None: :func:`default_limit`.
    objective, deadline
        See :func:`value_of`; ``cost`` and ``gpus`` also consider parts of the cluster.
    order_seconds
        Seconds of the budget for the order search; None: a fraction of it (:data:`ORDER_SHARE`).
    trainers
        Trainers that ``fix`` may name, by name.

    Raises
    ------
    PipeplanError
        If no configuration is valid (ShapeError) or meets the deadline (InfeasibleError), or an input is invalid.
    """
    if not seconds > 0:
        raise InputError(f"invalid time budget {seconds:g}: expected more than 0 seconds", field="seconds")
    value = value_of(objective, deadline)
    limit = default_limit(cluster) if memory_limit is None else memory_limit
    request = PlanRequest(
        model=model,
        cluster=cluster,
        global_batch=global_batch,
        sequence=sequence,
        memory_limit=limit,
        fixed=read_fixed(fix or {}, trainers),
        allowed=read_allowed(allow),
        trainers=trainers,
        calibration=calibration,
    )
    run = TrainerRuns(
        request=request,
        value=value,
        seconds=seconds,
        progress=progress,
        objective=objective,
        tokens=tokens,
        deadline=deadline,
        limit=limit,
        workers=workers,
        store=store,
    )
    run.run(strict=memory_limit is not None)
    return run.result(ORDER_SHARE * seconds if order_seconds is None else order_seconds)
