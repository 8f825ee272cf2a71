"""Several runs in one set of processes: starting them takes most of a small run's time."""

from dataclasses import dataclass

import torch
import torch.distributed as dist

from pipeplan.costs import ModelOptions
from pipeplan.runtime import clocks
from pipeplan.runtime.progress import Places, RankPlace
from pipeplan.runtime.results import RunResult
from pipeplan.runtime.running import RunTask

ON_CPU = ModelOptions(device="cpu", timeout=60.0)


@dataclass(frozen=True)
class ManyRuns:
    tasks: tuple[RunTask, ...]
    ranks: int
    options: ModelOptions = ON_CPU

    def describe(self, rank: int, place: RankPlace) -> str:
        return f"rank {rank}: {place}"

    def work(self, rank: int, device: torch.device, places: Places) -> list[RunResult]:
        return [task.work(rank, device, places) for task in self.tasks]


@dataclass(frozen=True)
class Offsets:
    """Every rank's clock offset, all of them believing to be on hosts of their own."""

    ranks: int
    options: ModelOptions = ON_CPU

    def describe(self, rank: int, place: RankPlace) -> str:
        return f"rank {rank}: {place}"

    def work(self, rank: int, device: torch.device, places: Places) -> list[int]:
        clocks._boot = lambda: f"host {rank}"
        told = [0] * self.ranks
        dist.all_gather_object(told, clocks.offset_to_first(device))
        return told
