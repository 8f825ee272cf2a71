"""Several runs in one set of processes: starting them takes most of a small run's time."""

from dataclasses import dataclass

import torch
import torch.distributed as dist

from pipeplan.runtime import clocks
from pipeplan.runtime.progress import Place, Progress
from pipeplan.runtime.result import RunResult
from pipeplan.runtime.train import RunTask


@dataclass(frozen=True)
class ManyRuns:
    tasks: tuple[RunTask, ...]
    ranks: int
    device: str = "cpu"
    threads: int = 1
    timeout: float = 60.0

    def describe(self, rank: int, place: Place) -> str:
        return f"rank {rank}: {place}"

    def work(self, rank: int, device: torch.device, progress: Progress) -> list[RunResult]:
        return [task.work(rank, device, progress) for task in self.tasks]


@dataclass(frozen=True)
class Offsets:
    """Every rank's clock offset, all of them believing to be on hosts of their own."""

    ranks: int
    device: str = "cpu"
    threads: int = 1
    timeout: float = 60.0

    def describe(self, rank: int, place: Place) -> str:
        return f"rank {rank}: {place}"

    def work(self, rank: int, device: torch.device, progress: Progress) -> list[int]:
        clocks._boot = lambda: f"host {rank}"
        told = [0] * self.ranks
        dist.all_gather_object(told, clocks.offset_to_first(device))
        return told
