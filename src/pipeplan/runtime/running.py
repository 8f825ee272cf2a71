"""Trains a model with a schedule of ours in PyTorch's pipeline runtime, and measures it."""

from __future__ import annotations

import os
from pathlib import Path

from pipeplan.costs import RUN_SETTINGS, require_settings
from pipeplan.errors import InputError, PipeplanError, RunError
from pipeplan.model import Schedule
from pipeplan.passes import Receives, lower_for_torch
from pipeplan.runtime.failure import Failure
from pipeplan.runtime.group import choose_device, in_job, local_device, process_group
from pipeplan.runtime.launch import launch
from pipeplan.runtime.layout import cut
from pipeplan.runtime.model import Model
from pipeplan.runtime.places import Phase, Places
from pipeplan.runtime.progress import Report, Watcher
from pipeplan.runtime.requirements import require_torch
from pipeplan.runtime.run_result import RunResult
from pipeplan.runtime.run_task import RunTask
from pipeplan.runtime.watchdog import watchdog


def run(
    schedule: Schedule,
    model: str | Model = "gpt-tiny",
    *,
    layout: tuple[int, ...] | None = None,
    steps: int = 3,
    warmup: int = 1,
    verify: bool = False,
    receives: Receives = "early",
    device: str = "auto",
    threads: int = 1,
    seed: int = 0,
    learning_rate: float = 1e-3,
    timeout: float = 120.0,
    kineto: Path | None = None,
    dtype: str | None = None,
    progress: Report | None = None,
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
    layout
        How many layers each stage has; None cuts evenly by the model's weights.
    steps, warmup
        Timed steps, and untimed ones before them; all train.
    verify
        Compare every loss and gradient with a single-process run, in every step. Each rank then holds the whole model.
    receives
        Where inserted receives stand: as early as possible, or right before they are needed.
    device
        ``cpu`` (gloo), ``cuda`` (NCCL), or ``auto``: cuda where every rank has a GPU.
    threads
        CPU threads of each rank.
    seed, learning_rate
        Of weights and data; of AdamW.
    timeout
        Seconds without progress after which the run counts as failed.
    kineto
        An existing folder for PyTorch's profile of one more step: ``rank0.json`` and so on.
    dtype
        ``float32`` or ``bfloat16`` parameters, instead of the model's own.
    progress
        Told twice a second how far the steps are; in a job, of the first rank's process.

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
    require_torch()
    require_settings(RUN_SETTINGS, steps=steps, warmup=warmup, threads=threads, seed=seed, timeout=timeout)
    if kineto is not None and not kineto.is_dir():
        raise InputError(f"the folder for PyTorch's profiles, {kineto}, is not there")
    task = RunTask(
        schedule=lower_for_torch(schedule, receives=receives),
        model=model,
        layout=layout,
        steps=steps,
        warmup=warmup,
        verify=verify,
        device=choose_device(device, schedule.ranks),
        threads=threads,
        seed=seed,
        learning_rate=learning_rate,
        timeout=timeout,
        kineto=kineto,
        dtype=dtype,
    )
    cut(task.load(), schedule.stages, layout)
    watcher = None if progress is None else Watcher(progress, task.how_far)
    if in_job():
        return _in_job(task, watcher)
    result: RunResult = launch(task, watcher)
    return result


def _in_job(task: RunTask, watcher: Watcher | None) -> RunResult:
    """Do this process's part in a job that is already running."""
    places = Places(task.ranks)
    rank = int(os.environ["RANK"])
    device = local_device(task.device, rank)
    try:
        # A waiting rank is given longer, so that the rank it waits for is named first.
        with process_group(device, task.ranks, timeout=2 * task.timeout) as rank:
            places.tell(rank, 0, 0, Phase.STARTING)
            first = watcher if rank == 0 else None
            with watchdog(places, rank, task.timeout, lambda: task.describe(rank, places.of(rank)), first):
                return task.work(rank, device, places)
    except PipeplanError:
        raise
    except Exception as error:
        failure = Failure.of(error, places.of(rank))
        raise RunError(f"{task.describe(rank, failure.place)}: {failure.message}") from error
