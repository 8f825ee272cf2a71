"""Plans: from names and files to the planner and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pipeplan.costs import options_of, parse_duration, parse_limit
from pipeplan.extensions.planning import PlanProgress
from pipeplan.extensions.planning import plan as best_plan
from pipeplan.extensions.planning.answers.estimation import calibration_of
from pipeplan.extensions.planning.answers.ledgers import read_ledger
from pipeplan.extensions.planning.answers.options import ClusterLike, FixLike, ModelLike, PlanOptions
from pipeplan.extensions.planning.answers.plans import Plan, plan_of
from pipeplan.extensions.planning.flags import cluster_of, model_of
from pipeplan.extensions.planning.runs.factors import fitted
from pipeplan.extensions.planning.runs.proposing import FromRuns
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.extensions.search.answers.searches import usable_cores
from pipeplan.foundation.errors import CostError, InputError
from pipeplan.foundation.records import replaced
from pipeplan.model import shortened

if TYPE_CHECKING:
    from pipeplan.extensions.planning.keywords import PlanKeywords


def plan(
    model: ModelLike,
    cluster: ClusterLike,
    *,
    progress: Callable[[PlanProgress], None] | None = None,
    **options: Unpack[PlanKeywords],
) -> Plan:
    """Choose a configuration to train with: degrees, chunks, microbatches, schedule, layout, recomputation, and flags.

    Each trainer gets a plan of its own, with its software and its schedules; the best of them is the answer, which names its
    trainer. ``fix={"trainer": "megatron"}`` asks for the plan of one. Every legal combination is estimated or ruled out by a
    bound; the finalists get the best layout and a search. The answer says why the others lost, what would change the choice,
    and the error of such predictions on published runs.

    Parameters
    ----------
    model
        A preset (:func:`pipeplan.models`), a model hub's config.json as a file or as a dictionary, or a shape.
    cluster
        ``GPU:PER_NODExNODES``, such as ``h100-sxm:8x16`` (:func:`pipeplan.gpus`), a file with a GPU and links of one's
        own, or a cluster.
    progress
        Called with how far it is.
    **options
        The other options of a plan (``PlanOptions``); ``fix`` is also a mapping:
        ``{"tp": 8, "pp": [4, 8]}``.

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
    runs
        Ledger of tried runs with their measured steps: corrects the predictions and proposes the next run.
    global_batch
        Sequences per step, over all replicas.
    sequence
        Sequence length in tokens.
    memory_limit
        Memory limit per GPU: bytes, or a size such as 72GiB (default: the GPU's memory minus a reserve).
    objective
        Objective: shortest step, lowest cost per token, or fewest GPUs that meet the deadline (default: step-time).
    deadline
        Longest step in seconds, or with a unit, longest time for all tokens: 12h, 30d.
    tokens
        Tokens of the whole training, such as 15e12, for the totals in days, GPU hours and dollars (default: 1e+12).
    price
        Price of a GPU hour in dollars (default: the cluster file's, if it has one).
    fix
        Fix a setting, NAME=VALUE: tp=8, or tp=4,8 to allow either; repeatable.
    allow
        Unusual choices to try: offload (of activations), zero3-pipeline (ZeRO-3 next to a pipeline), small-chunks (more
        than 4 per rank, or fewer than 2 layers each), any-schedule (also those that no trainer runs), any-precision
        (also other than the model's), or all. Without it, they are made only if nothing else fits.
    seconds
        Budget: as much work as two idle cores do in these seconds; a loaded machine takes longer (default: 30).

    Raises
    ------
    InputError
        For a model, cluster, batch, limit or fixed value that cannot be; unknown names come with the nearest one.

    Examples
    --------
    >>> found = pipeplan.plan("llama3-8b", "h100-sxm:8x1", global_batch=16, sequence=8192, seconds=5)  # doctest: +SKIP
    >>> found.best.step_time, found.flags["megatron"].text  # doctest: +SKIP
    """
    return planned(options_of(PlanOptions, {**options, "model": model, "cluster": cluster}), progress=progress)


def planned(options: PlanOptions, *, progress: Callable[[PlanProgress], None] | None = None) -> Plan:
    """See :func:`plan`."""
    shape, machines = model_of(options.model, approximate=options.approximate), cluster_of(options.cluster)
    if options.price is not None:
        machines = replace(machines, gpu=replace(machines.gpu, price=options.price))
    factors = calibration_of(options.calibration)
    if factors is not None:
        factors.require(machines.gpu)
    runs = [] if options.runs is None else read_ledger(Path(options.runs), approximate=options.approximate)
    fit = fitted(runs, base=factors) if runs else None
    fixed = pairs_of({} if options.fix is None else options.fix)
    if fit is not None:
        factors = fit.calibration
        factors.require(machines.gpu)
        # The factors correct the predictions of the software of the runs.
        fixed = {"software": sorted({run.configuration.software for run in runs})} | fixed
    answer = best_plan(
        shape,
        machines,
        global_batch=options.global_batch,
        sequence=options.sequence,
        memory_limit=None if options.memory_limit is None else bytes_of(options.memory_limit),
        objective=options.objective,
        deadline=None if options.deadline is None else seconds_of(options.deadline, options),
        tokens=options.tokens,
        fix=fixed,
        allow=[options.allow] if isinstance(options.allow, str) else options.allow,
        seconds=30.0 if options.seconds is None else options.seconds,
        workers=usable_cores() if options.workers is None else options.workers,
        store=None if options.store is None else Path(options.store),
        calibration=factors,
        trainers=plan_trainers(),
        progress=progress,
    )
    chosen = plan_of(answer, factors)
    return chosen if fit is None else replaced(chosen, from_runs=FromRuns.of(answer, runs, fit))


def seconds_of(deadline: float | str, options: PlanOptions) -> float:
    """Return a deadline in seconds per step; with a unit, it is a time for all tokens of the training."""
    seconds, of_training = parse_duration(deadline, "deadline")
    return seconds * options.global_batch * options.sequence / options.tokens if of_training else seconds


def bytes_of(limit: float | str) -> float:
    """Return a memory limit in bytes.

    Raises CostError for text that is not a size, and for activations, whose size a plan computes.
    """
    size, unit = parse_limit(limit)
    if unit != "byte":
        raise CostError(f"the memory limit of a plan is in bytes, such as 72GiB, not {limit}", field="memory_limit")
    return size


def pairs_of(fix: FixLike) -> dict[str, Any]:
    """Return the fixed settings by name. Raises InputError for a text without ``=``, and for a duplicate name."""
    if isinstance(fix, Mapping):
        return dict(fix)
    pairs: object = fix
    if not isinstance(pairs, Sequence) or not all(isinstance(pair, str) for pair in pairs):
        raise InputError(
            f"invalid fixed setting, expected NAME=VALUE such as tp=8, not {shortened(repr(fix), 60)}", field="fix"
        )
    values: dict[str, Any] = {}
    for pair in [fix] if isinstance(fix, str) else fix:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise InputError(f"invalid fixed setting, expected NAME=VALUE such as tp=8, not '{pair}'", field="fix")
        if name in values:
            raise InputError(f"{name} is fixed twice: write its values as {name}={values[name]},{value}", field="fix")
        values[name] = value
    return values
