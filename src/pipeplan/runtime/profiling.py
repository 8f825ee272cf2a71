"""Measures a model's stages, so that schedules can be simulated on real costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import torch

from pipeplan.costs import ProfileOptions, ProfileOptionsKeywords, RunOptions, options_of, require_settings, table_of
from pipeplan.errors import InputError
from pipeplan.model import Placement, Schedule
from pipeplan.passes import lower_for_torch
from pipeplan.runtime.group import choose_device, in_job
from pipeplan.runtime.launch import launch
from pipeplan.runtime.model import Model, cut
from pipeplan.runtime.models import model_for
from pipeplan.runtime.profile_task import ProfileTask
from pipeplan.runtime.progress import ProgressListener, Watcher
from pipeplan.runtime.requirements import BACKWARD_VERSIONS, require_torch
from pipeplan.runtime.results import Profile
from pipeplan.strategies import strategy


def profile(
    model: str | Model = "gpt-tiny",
    /,
    placement: Placement | None = None,
    *,
    warmup: int = 3,
    together: bool | None = None,
    progress: ProgressListener | None = None,
    **options: Unpack[ProfileOptionsKeywords],
) -> Profile:
    """Measure every stage of a model: how long F, B, I and W take and what they hold, on real modules.

    Parameters
    ----------
    model
        A built-in name, ``module:function``, or a :class:`~pipeplan.runtime.models.Model`.
    placement
        Which rank holds each stage; None: two ranks, a stage each.
    warmup
        Rounds before the measured ones that do not count.
    together
        Measure with one process per rank, all at the same time, so that ranks contend for memory bandwidth and clock speed
        as they will in a run. This also measures a transfer, and runs some steps of 1F1B to see what ranks lose between
        ops. False: in this process, one stage at a time. None: together on a CPU and where every rank has a GPU, else
        alone.
    progress
        As for :func:`~pipeplan.runtime.run`.
    **options
        The other options of :class:`pipeplan.costs.ProfileOptions`.

    Raises
    ------
    InputError
        For a model that cannot be loaded or cut, or a wrong option.
    RunError
        If a process dies, raises or hangs.
    """
    require_settings(table_of(RunOptions), warmup=warmup)
    chosen = options_of(ProfileOptions, {"model": model, **options})
    return profile_with(placement or Placement.linear(2), chosen, warmup=warmup, together=together, progress=progress)


def profile_with(
    placement: Placement,
    options: ProfileOptions,
    *,
    warmup: int = 3,
    together: bool | None = None,
    progress: ProgressListener | None = None,
) -> Profile:
    """See :func:`profile`."""
    require_torch(BACKWARD_VERSIONS, what="measuring the split backward")
    if placement.copies > 1:
        raise InputError(
            "a bidirectional placement holds every stage twice; profile the linear one with as many stages"
        )
    if in_job():
        raise InputError("profiling starts processes of its own; do it outside torchrun")
    alone = together is False or (together is None and _few_gpus(options.device, placement.ranks))
    device = choose_device(options.device, 1 if alone else placement.ranks)
    task = ProfileTask(
        placement=placement,
        trial=_trial(placement.ranks),
        options=replace(options, device=device),
        warmup=warmup,
    )
    cut(model_for(options), placement.stages, options.layout)
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
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return device != "cpu" and 0 < gpus < ranks
