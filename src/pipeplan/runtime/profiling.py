"""Measures a model's stages, so that schedules can be simulated on real costs."""

from __future__ import annotations

import torch

from pipeplan.costs import RUN_SETTINGS, require_settings
from pipeplan.errors import InputError
from pipeplan.model import Placement, Schedule
from pipeplan.passes import lower_for_torch
from pipeplan.runtime.group import choose_device, in_job
from pipeplan.runtime.launch import launch
from pipeplan.runtime.layout import cut
from pipeplan.runtime.model import Model
from pipeplan.runtime.profile_result import Profile
from pipeplan.runtime.profile_task import ProfileTask
from pipeplan.runtime.progress import Report, Watcher
from pipeplan.runtime.requirements import BACKWARD_VERSIONS, require_torch
from pipeplan.strategies import strategy


def profile(
    model: str | Model = "gpt-tiny",
    placement: Placement | None = None,
    *,
    layout: tuple[int, ...] | None = None,
    repeats: int = 15,
    warmup: int = 3,
    device: str = "auto",
    threads: int = 1,
    together: bool | None = None,
    seed: int = 0,
    timeout: float = 120.0,
    dtype: str | None = None,
    progress: Report | None = None,
) -> Profile:
    """Measure every stage of a model: how long F, B, I and W take and what they hold, on real modules.

    Parameters
    ----------
    model
        A built-in name, ``module:function``, or a :class:`~pipeplan.runtime.models.Model`.
    placement
        Which rank holds each stage; None: two ranks, a stage each.
    layout
        How many layers each stage has; None cuts evenly by the model's weights.
    repeats, warmup
        Measured rounds, and rounds before them that do not count.
    device
        ``cpu``, ``cuda`` or ``auto``: cuda where there is a GPU.
    threads
        CPU threads of each process.
    together
        Measure with one process per rank, all at the same time, so that ranks contend for memory bandwidth and clock speed
        as they will in a run. This also measures a transfer, and runs some steps of 1F1B to see what ranks lose between
        ops. False: in this process, one stage at a time. None: together on a CPU and where every rank has a GPU, else
        alone.
    seed, timeout, dtype, progress
        As for :func:`~pipeplan.runtime.run`.

    Raises
    ------
    InputError
        For a model that cannot be loaded or cut, or a wrong option.
    RunError
        If a process dies, raises or hangs.
    """
    require_torch(BACKWARD_VERSIONS, what="measuring the split backward")
    require_settings(RUN_SETTINGS, repeats=repeats, warmup=warmup, threads=threads, seed=seed, timeout=timeout)
    placement = placement or Placement.linear(2)
    if placement.copies > 1:
        raise InputError(
            "a bidirectional placement holds every stage twice; profile the linear one with as many stages"
        )
    if in_job():
        raise InputError("profiling starts processes of its own; do it outside torchrun")
    alone = together is False or (together is None and _few_gpus(device, placement.ranks))
    task = ProfileTask(
        model=model,
        placement=placement,
        trial=_trial(placement.ranks),
        layout=layout,
        repeats=repeats,
        warmup=warmup,
        device=choose_device(device, 1 if alone else placement.ranks),
        threads=threads,
        seed=seed,
        timeout=timeout,
        dtype=dtype,
    )
    cut(task.load(), placement.stages, layout)
    if alone:
        return task.work_alone(progress)
    measured: Profile = launch(task, None if progress is None else Watcher(progress, task.how_far))
    return measured


def _trial(ranks: int) -> Schedule:
    """1F1B with its communication: ops with no message between them, with one and with two."""
    rule = strategy("1f1b")
    return lower_for_torch(rule(rule.shape(ranks, 2 * ranks + 4)))


def _few_gpus(device: str, ranks: int) -> bool:
    """Whether there are GPUs to measure on, but not one for every rank."""
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return device != "cpu" and 0 < found < ranks
