"""Plans and estimates: from names and files to the planner and back. Importing this loads the planner."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeplan.api.looks import about, look
from pipeplan.api.planning.configuration_files import cluster_of, model_of, read_configuration
from pipeplan.api.planning.estimation import calibration_of, estimate
from pipeplan.api.planning.plan_settings import NEEDED, PLAN_GROUPS, PLAN_SETTINGS
from pipeplan.api.planning.planned_costs import costs_planned_for
from pipeplan.api.planning.plans import OWN_ENDINGS as PLAN_ENDINGS
from pipeplan.api.planning.plans import Plan
from pipeplan.api.searching.searches import usable_cores
from pipeplan.costs import parse_limit, plain_numbers, require_settings
from pipeplan.errors import CostError, InputError
from pipeplan.hardware import Cluster
from pipeplan.model import shortened
from pipeplan.planner import TRAINERS, Objective, PlanProgress, require_release
from pipeplan.planner import plan as best_plan
from pipeplan.workload import ModelShape

ModelLike = str | os.PathLike[str] | Mapping[str, Any] | ModelShape
"""A preset's name, a model hub's config.json as a file or as its content, or a shape."""

ClusterLike = str | os.PathLike[str] | Cluster
"""``GPU:PER_NODExNODES``, a file, or a cluster."""

FixLike = Mapping[str, Any] | Sequence[str]
"""What is decided: ``{"tp": 8, "pp": [4, 8]}``, or ``["tp=8", "pp=4,8"]``."""

__all__ = [
    "NEEDED",
    "PLAN_ENDINGS",
    "PLAN_GROUPS",
    "PLAN_SETTINGS",
    "TRAINERS",
    "Plan",
    "PlanProgress",
    "about",
    "cluster_of",
    "costs_planned_for",
    "estimate",
    "look",
    "model_of",
    "plan",
    "read_configuration",
    "require_release",
]


_OF_SEVERAL_KINDS = ("model", "cluster", "fix")
"""What may be given as more than text, and is looked at where it is read."""


def plan(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    global_batch: int,
    sequence: int,
    memory_limit: float | str | None = None,
    objective: Objective = "step-time",
    deadline: float | None = None,
    fix: FixLike | None = None,
    seconds: float | None = None,
    workers: int | None = None,
    dask: str | None = None,
    store: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    progress: Callable[[PlanProgress], None] | None = None,
) -> Plan:
    """The configuration to train with: degrees, chunks, microbatches, schedule, layout, recomputation, and the flags.

    Every legal combination is estimated or ruled out by a bound; the finalists get the best layout and a search. The answer
    says why the others lost, what would change the choice, and how far such predictions were off on published runs.

    Parameters
    ----------
    model
        A preset (:func:`pipeplan.models`), a model hub's config.json as a file or as a dictionary, or a shape.
    cluster
        ``GPU:PER_NODExNODES``, such as ``h100-sxm:8x16`` (:func:`pipeplan.gpus`), a file with a GPU and links of one's
        own, or a cluster.
    global_batch, sequence
        Sequences in a step, of all replicas together, and tokens in a sequence.
    memory_limit
        What a GPU may hold: bytes, or ``72GiB``; its memory less a reserve where nobody says.
    objective
        ``step-time``, ``tokens`` a second, ``cost`` of a token, or ``gpus``: the fewest that meet the deadline.
    deadline
        The longest step that ``gpus`` allows; seconds.
    fix
        What is decided already: ``{"tp": 8, "pp": [4, 8]}``, or ``["tp=8", "pp=4,8"]``.
    seconds
        The budget (30).
    workers
        Processes (as many as there are cores).
    dask
        Address of a Dask scheduler, whose workers estimate in place of processes here.
    store
        File that keeps estimates as they come; the same question asked again goes on from there.
    calibration
        File of ``pipeplan profile --calibrate``.
    progress
        Called with how far it is.

    Raises
    ------
    InputError
        For a model, cluster, batch, limit or fixed value that cannot be; unknown names come with the nearest one.

    Examples
    --------
    >>> found = pipeplan.plan("llama3-8b", "h100-sxm:8x1", global_batch=16, sequence=8192, seconds=5)  # doctest: +SKIP
    >>> found.best.step_time, found.flags["megatron"].text  # doctest: +SKIP
    """
    asked: dict[str, Any] = {
        "model": model, "cluster": cluster, "global_batch": global_batch, "sequence": sequence,
        "memory_limit": memory_limit, "objective": objective, "deadline": deadline, "fix": fix, "seconds": seconds,
        "workers": workers, "dask": dask, "store": store, "calibration": calibration,
    }  # fmt: skip
    require_settings(
        PLAN_SETTINGS,
        **{name: value for name, value in asked.items() if name not in _OF_SEVERAL_KINDS or isinstance(value, str)},
    )
    global_batch, sequence, deadline, seconds, workers = plain_numbers(
        global_batch, sequence, deadline, seconds, workers
    )
    shape, machines = model_of(model), cluster_of(cluster)
    factors = calibration_of(calibration)
    if factors is not None:
        factors.require(machines.gpu)
    planned = best_plan(
        shape,
        machines,
        global_batch=global_batch,
        sequence=sequence,
        memory_limit=None if memory_limit is None else bytes_of(memory_limit),
        objective=objective,
        deadline=deadline,
        fix=pairs_of({} if fix is None else fix),
        seconds=30.0 if seconds is None else seconds,
        workers=usable_cores() if workers is None else workers,
        dask=dask,
        store=None if store is None else Path(store),
        calibration=factors,
        progress=progress,
    )
    return Plan(shape, machines, planned, factors)


def bytes_of(limit: float | str) -> float:
    """A memory limit in bytes.

    Raises
    ------
    CostError
        For what is no size, and for activations: how large these are is what a plan finds out.
    """
    size, unit = parse_limit(limit)
    if unit != "byte":
        raise CostError(f"the memory limit of a plan is in bytes, such as 72GiB, not {limit}", field="memory_limit")
    return size


def pairs_of(fix: FixLike) -> dict[str, Any]:
    """What is fixed, by name. Raises InputError for a text without ``=``, and a name that stands twice."""
    if isinstance(fix, Mapping):
        return dict(fix)
    given: object = fix
    if not isinstance(given, Sequence) or not all(isinstance(pair, str) for pair in given):
        raise InputError(f"what is fixed is NAME=VALUE, such as tp=8, not {shortened(repr(fix), 60)}", field="fix")
    found: dict[str, Any] = {}
    for pair in [fix] if isinstance(fix, str) else fix:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise InputError(f"what is fixed is NAME=VALUE, such as tp=8, not '{pair}'", field="fix")
        if name in found:
            raise InputError(f"{name} is fixed twice: give its values as {name}={found[name]},{value}", field="fix")
        found[name] = value
    return found
