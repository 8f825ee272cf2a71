"""Several runs in the ranks of :func:`tests.processes.run_ranks`, and the offsets of their clocks."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from pipeplan.extensions.training.runtime import clocks
from pipeplan.extensions.training.runtime.group import process_group
from pipeplan.extensions.training.runtime.progress import Places
from pipeplan.extensions.training.runtime.results import RunResult
from pipeplan.extensions.training.runtime.running import RunTask

CPU = torch.device("cpu")


def main(tasks: tuple[RunTask, ...]) -> list[RunResult] | list[int]:
    """What the tasks measure; without any, every rank's clock offset, all of them believing to be on hosts of their own."""
    with process_group(CPU, int(os.environ["WORLD_SIZE"]), timeout=60.0) as rank:
        if tasks:
            return [task.work(rank, CPU, Places(task.ranks)) for task in tasks]
        clocks._boot = lambda: f"host {rank}"
        message = [0] * dist.get_world_size()
        dist.all_gather_object(message, clocks.offset_to_first(CPU))
        return message
