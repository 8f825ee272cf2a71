"""Several runs in one set of processes: starting them takes most of a small run's time."""

from dataclasses import dataclass

import torch
import torch.distributed as dist

from pipeplan.runtime import clocks
from pipeplan.runtime.places import Place, Places
from pipeplan.runtime.run_result import RunResult
from pipeplan.runtime.run_task import RunTask


@dataclass(frozen=True)
class ManyRuns:
    tasks: tuple[RunTask, ...]
    ranks: int
    device: str = "cpu"
    threads: int = 1
    timeout: float = 60.0

    def describe(self, rank: int, place: Place) -> str:
        return f"rank {rank}: {place}"

    def work(self, rank: int, device: torch.device, places: Places) -> list[RunResult]:
        return [task.work(rank, device, places) for task in self.tasks]


@dataclass(frozen=True)
class Offsets:
    """Every rank's clock offset, all of them believing to be on hosts of their own."""

    ranks: int
    device: str = "cpu"
    threads: int = 1
    timeout: float = 60.0

    def describe(self, rank: int, place: Place) -> str:
        return f"rank {rank}: {place}"

    def work(self, rank: int, device: torch.device, places: Places) -> list[int]:
        clocks._boot = lambda: f"host {rank}"
        told = [0] * self.ranks
        dist.all_gather_object(told, clocks.offset_to_first(device))
        return told
