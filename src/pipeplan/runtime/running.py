"""Trains a model with a schedule of ours in PyTorch's pipeline runtime, and measures it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from pipeplan.costs import RunOptions, RunOptionsKeywords, options_of
from pipeplan.errors import InputError, PipeplanError, RunError
from pipeplan.model import Schedule
from pipeplan.passes import lower_for_torch
from pipeplan.runtime.group import choose_device, in_job, local_device, process_group
from pipeplan.runtime.launch import RankFailure, launch, watchdog
from pipeplan.runtime.model import Model, cut
from pipeplan.runtime.models import model_for
from pipeplan.runtime.progress import Phase, Places, ProgressListener, Watcher
from pipeplan.runtime.requirements import require_torch
from pipeplan.runtime.results import RunResult
from pipeplan.runtime.run_task import RunTask


def run(
    schedule: Schedule,
    model: str | Model = "gpt-tiny",
    /,
    *,
    learning_rate: float = 1e-3,
    kineto: Path | None = None,
    progress: ProgressListener | None = None,
    **options: Unpack[RunOptionsKeywords],
) -> RunResult:
    """Train some steps with a schedule, on this host or as one rank of the torchrun job that this process is in.

    In a job, every process calls this with the same arguments and gets the same result.

    Parameters
    ----------
    schedule
        Any that PyTorch's runtime can express: one copy of the model, whole sequences; any placement. R, OFFLOAD and RELOAD
        run in their place. Communication is inserted unless the schedule already has it.
    model
        A built-in name, ``module:function``, or a :class:`~pipeplan.runtime.models.Model`.
    learning_rate
        Of AdamW.
    kineto
        An existing folder for PyTorch's profile of one more step: ``rank0.json`` and so on.
    progress
        Told twice a second how far the steps are; in a job, of the first rank's process.
    **options
        The other options of :class:`pipeplan.costs.RunOptions`.

    Raises
    ------
    ShapeError
        For a schedule that PyTorch's runtime cannot express.
    DeadlockError
        If ranks wait for each other.
    InputError
        For a model that cannot be loaded or cut, a wrong option, a job of another size, a port that is in use.
    RunError
        If a rank dies, raises or hangs; the message names it and its op.
    """
    chosen = options_of(RunOptions, {"model": model, **options})
    return run_with(schedule, chosen, learning_rate=learning_rate, kineto=kineto, progress=progress)


def run_with(
    schedule: Schedule,
    options: RunOptions,
    *,
    learning_rate: float = 1e-3,
    kineto: Path | None = None,
    progress: ProgressListener | None = None,
) -> RunResult:
    """See :func:`run`."""
    require_torch()
    if kineto is not None and not kineto.is_dir():
        raise InputError(f"the folder for PyTorch's profiles, {kineto}, is not there")
    task = RunTask(
        schedule=lower_for_torch(schedule, receives=options.receives),
        options=replace(options, device=choose_device(options.device, schedule.ranks)),
        learning_rate=learning_rate,
        kineto=kineto,
    )
    cut(model_for(task.options), schedule.stages, options.layout)
    watcher = None if progress is None else Watcher(progress, task.how_far)
    if in_job():
        return _in_job(task, watcher)
    result: RunResult = launch(task, watcher)
    return result


def _in_job(task: RunTask, watcher: Watcher | None) -> RunResult:
    """Do this process's part in a job that is already running."""
    places = Places(task.ranks)
    rank = int(os.environ["RANK"])
    device = local_device(task.options.device, rank)
    try:
        # A waiting rank is given longer, so that the rank it waits for is named first.
        with process_group(device, task.ranks, timeout=2 * task.options.timeout) as rank:
            places.tell(rank, 0, 0, Phase.STARTING)
            first = watcher if rank == 0 else None
            with watchdog(places, rank, task.options.timeout, lambda: task.describe(rank, places.of(rank)), first):
                return task.work(rank, device, places)
    except PipeplanError:
        raise
    except Exception as error:
        failure = RankFailure.of(error, places.of(rank))
        raise RunError(f"{task.describe(rank, failure.place)}: {failure.message}") from error
