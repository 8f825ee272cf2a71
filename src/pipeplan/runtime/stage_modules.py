"""A rank's stages as modules: what can be run, where they are, what is around them, what is recomputed or offloaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

from pipeplan.errors import InputError
from pipeplan.model import Kind, Schedule


def require_runnable(modules: Iterable[nn.Module], schedule: Schedule) -> None:
    """Refuse what PyTorch's runtime would train wrongly, or not at all.

    Raises
    ------
    InputError
        For compiled modules under split backwards, and for data parallelism around a part of a stage alone.
    """
    for module in modules:
        for part in module.modules():
            reason = _unfit(part, module, split=schedule.has(Kind.I))
            if reason:
                raise InputError(reason, field="modules")


def _unfit(part: nn.Module, stage: nn.Module, *, split: bool) -> str | None:
    """Why a part of a stage cannot be run, and what to do."""
    if split and type(part).__name__ == "OptimizedModule":
        return (
            "PyTorch cannot split a backward pass through torch.compile: leave stages uncompiled, or take a schedule of "
            "full backwards"
        )
    if isinstance(part, FullyShardedDataParallel):
        return "a stage cannot be in FullyShardedDataParallel: shard it by torch.distributed.fsdp.fully_shard"
    if isinstance(part, FSDPModule) and not isinstance(stage, FSDPModule):
        return "layers of a stage are under fully_shard but the stage is not: call fully_shard on it, too, behind them"
    if isinstance(part, DistributedDataParallel) and part is not stage:
        return "a part of a stage is in DistributedDataParallel: wrap the whole stage instead"
    return None


def keep_gathered(modules: Iterable[nn.Module], schedule: Schedule) -> None:
    """Have FSDP gather and give back what the schedule says where backwards are split, and no layer in between.

    A split backward looks for the gathered weights: of a layer that gave its own back behind its forward, PyTorch would
    compute no gradient, without a word.
    """
    if schedule.has(Kind.I):
        for module in modules:
            if isinstance(module, FSDPModule):
                module.set_reshard_after_forward(False)


def device_of(modules: Iterable[nn.Module], group: Any) -> torch.device:
    """Return the device of the first parameter; without any, the device of the group's backend."""
    parameter = next((candidate for module in modules for candidate in module.parameters()), None)
    if parameter is not None:
        return parameter.device
    return torch.device("cuda" if "nccl" in dist.get_backend(group) else "cpu")


def with_index(device: torch.device) -> torch.device:
    """Return the current GPU where just any is meant."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


@contextmanager
def evaluating(modules: Iterable[nn.Module]) -> Iterator[None]:
    """The modules in evaluation mode, and then each part as it was."""
    training = [part for module in modules for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module that DDP is around."""
    return module.module if isinstance(module, DistributedDataParallel) else module


@dataclass(frozen=True, slots=True)
class StageSavings:
    """The microbatches of one stage that are recomputed or offloaded, and whether its outputs leave the rank.

    Attributes
    ----------
    recomputed
        Microbatches whose forward keeps its inputs alone, and runs again at R.
    offloaded
        Microbatches that leave for the host's memory at OFFLOAD and come back at RELOAD.
    sends
        Whether its outputs go to another rank.
    """

    recomputed: frozenset[int]
    offloaded: frozenset[int]
    sends: bool


def parts_of(schedule: Schedule, rank: int) -> dict[int, StageSavings]:
    """Return the savings of every stage of a rank."""
    recomputed, offloaded = (_of_kind(schedule, rank, kind) for kind in (Kind.R, Kind.OFFLOAD))
    rank_of = schedule.placement.rank_of[0]
    return {
        stage: StageSavings(
            recomputed=frozenset(microbatch for of, microbatch in recomputed if of == stage),
            offloaded=frozenset(microbatch for of, microbatch in offloaded if of == stage),
            sends=stage + 1 < schedule.stages and rank_of[stage + 1] != rank,
        )
        for stage in schedule.placement.stages_on(rank)
    }


def leaving(schedule: Schedule, rank: int) -> tuple[tuple[int, int], ...]:
    """Stage and microbatch of a rank's OFFLOADs, in their order."""
    return _of_kind(schedule, rank, Kind.OFFLOAD)


def _of_kind(schedule: Schedule, rank: int, kind: Kind) -> tuple[tuple[int, int], ...]:
    row = schedule.row(rank)
    chosen = row.kind == kind
    return tuple(zip(row.stage[chosen].tolist(), row.microbatch[chosen].tolist(), strict=True))
