"""From a model, a cluster and a batch to the configuration to train with, and why it is that one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeplan.errors import InfeasibleError, InputError
from pipeplan.hardware import Cluster
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.planner.planned import Objective, Planned
from pipeplan.planner.selection.choices import NO_TRAINERS, PlannedTrainer, read_fixed
from pipeplan.planner.selection.choosing import ORDER_SHARE, Planning
from pipeplan.planner.selection.nothing_fits import refusal
from pipeplan.planner.selection.request import PlanListener, PlanRequest, default_limit, parts, value_of, with_cluster
from pipeplan.workload import ModelShape


def plan(
    model: ModelShape,
    cluster: Cluster,
    *,
    global_batch: int,
    sequence: int,
    memory_limit: float | None = None,
    objective: Objective = "step-time",
    deadline: float | None = None,
    fix: Mapping[str, Any] | None = None,
    seconds: float = 30.0,
    order_seconds: float | None = None,
    workers: int = 1,
    dask: str | None = None,
    store: Path | None = None,
    calibration: TimeFactors | None = None,
    trainers: Mapping[str, PlannedTrainer] = NO_TRAINERS,
    progress: PlanListener | None = None,
) -> Planned:
    """Return the configuration to train with; see :func:`pipeplan.plan` for what is not said here.

    All legal configurations are bounded; those that could be the best are estimated, in rounds whose members do not depend
    on the workers. The best of them are laid out; then the runners-up, the front and the sensitivity are made of estimates.

    Parameters
    ----------
    memory_limit
        Bytes that a GPU's framework may allocate; None: :func:`default_limit`.
    objective
        See :func:`value_of`; ``cost`` and ``gpus`` look at parts of the cluster, too.
    deadline
        Seconds of a step for ``gpus``. Training on N tokens in T seconds allows T x global batch x sequence / N.
    order_seconds
        Seconds of the budget to search for better orders; None: a share (:data:`ORDER_SHARE`) of it.
    calibration
        Factors of the user's machine.
    trainers
        By name, the trainers that ``fix`` may name.

    Raises
    ------
    ShapeError
        Where no configuration is legal; names the rule in the way.
    InfeasibleError
        Where no configuration meets the deadline.
    InputError
        For a budget, objective or fixed value that cannot be.
    """
    if not seconds > 0:
        raise InputError(f"a plan needs more than 0 seconds, not {seconds:g}", field="seconds")
    value = value_of(objective, deadline)
    limit = default_limit(cluster) if memory_limit is None else memory_limit
    request = PlanRequest(
        model=model,
        cluster=cluster,
        global_batch=global_batch,
        sequence=sequence,
        memory_limit=limit,
        fixed=read_fixed(fix or {}, trainers),
        trainers=trainers,
        calibration=calibration,
    )
    requests = [with_cluster(request, part) for part in parts(cluster, objective)]
    if all(refusal(each) is not None for each in requests):
        error = refusal(request)
        assert error is not None
        raise error
    planning = Planning(requests, value, seconds, progress, deadline=deadline)
    planning.run(workers=workers, dask=dask, store=store)
    planning.fall_back()
    planning.search_orders(ORDER_SHARE * seconds if order_seconds is None else order_seconds, workers)
    if planning.best is None and not planning.estimated and planning.refused:
        raise InfeasibleError(f"no legal configuration can be estimated: {planning.refused}", field="fix")
    if planning.best is None:
        return planning.nothing_fits(objective)
    if deadline is not None and planning.best.step_time > deadline:
        raise InfeasibleError(
            f"no configuration meets the deadline of {deadline:g} s a step: on all {cluster.gpus:,} GPUs the shortest takes "
            f"{planning.best.step_time:.3g} s",
            field="deadline",
        )
    return planning.planned(objective)
