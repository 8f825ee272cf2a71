"""Modules of a rank's stages: checks, devices, wrappers, and the microbatches that are recomputed or offloaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

from pipeplan.foundation.errors import InputError
from pipeplan.model import Kind, Schedule


def modules_in(stages: Any) -> list[nn.Module]:
    """Return the modules among the stages. Anything else is refused later, on all ranks together."""
    parts = stages.values() if isinstance(stages, Mapping) else stages
    return [module for module in parts if isinstance(module, nn.Module)]


def require_runnable(modules: Iterable[nn.Module], schedule: Schedule) -> None:
    """Refuse modules that PyTorch's runtime would train incorrectly, or not at all.

    Raises
    ------
    InputError
        If a compiled module has a split backward, or data parallelism wraps only part of a stage.
    """
    for module in modules:
        for part in module.modules():
            reason = _unfit(part, module, split=schedule.has(Kind.I))
            if reason:
                raise InputError(reason, field="modules")


def is_compiled(module: nn.Module) -> bool:
    """Return True for a module that torch.compile has wrapped, or that ``module.compile()`` has compiled in place."""
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def _unfit(part: nn.Module, stage: nn.Module, *, split: bool) -> str | None:
    """Return the reason why a part of a stage cannot run, with a remedy; None if it can."""
    if split and is_compiled(part):
        return (
            "PyTorch cannot split a backward pass through torch.compile: leave stages uncompiled, or use a schedule of "
            "full backwards"
        )
    if isinstance(part, FullyShardedDataParallel):
        return "a stage cannot be in FullyShardedDataParallel: shard it by torch.distributed.fsdp.fully_shard"
    if isinstance(part, FSDPModule) and not isinstance(stage, FSDPModule):
        return "layers of a stage are under fully_shard but the stage is not: call fully_shard on it, too, after them"
    if isinstance(part, DistributedDataParallel) and part is not stage:
        return "a part of a stage is in DistributedDataParallel: wrap the whole stage instead"
    return None


def keep_gathered(modules: Iterable[nn.Module], schedule: Schedule) -> None:
    """Keep the weights that FSDP gathered until the schedule reshards them, if the schedule splits backwards.

    A split backward looks for the gathered weights. PyTorch would silently compute no gradient for a layer that was
    resharded after its forward.
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
    """Return the device with its index: ``cuda`` is the current GPU."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


@contextmanager
def evaluating(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Put modules into evaluation mode in the block, and restore the mode of every part afterwards."""
    training = [part for module in modules for part in module.modules() if part.training]
    # Not the eval method of the module: parts that the user keeps in evaluation mode must stay in it afterwards.
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module inside ``DistributedDataParallel``; other modules unchanged."""
    return module.module if isinstance(module, DistributedDataParallel) else module


def saved_state(module: nn.Module) -> dict[str, Any]:
    """Return the state of a stage without DDP, with the names that its parameters have without ``torch.compile``."""
    return {_without_compile(name): value for name, value in unwrapped(module).state_dict().items()}


def load_saved_state(module: nn.Module, state: Mapping[str, Any]) -> None:
    """Load a state from :func:`saved_state`, of a compiled module or another one. Raises PyTorch's RuntimeError."""
    own = unwrapped(module)
    names = {_without_compile(name): name for name in own.state_dict()}
    own.load_state_dict({names.get(_without_compile(name), name): value for name, value in state.items()})


def _without_compile(name: str) -> str:
    return name.replace("_orig_mod.", "")


@dataclass(frozen=True, slots=True)
class StageSavings:
    """Microbatches of one stage that are recomputed or offloaded, and whether its outputs leave the rank.

    Attributes
    ----------
    recomputed
        Microbatches whose forward keeps only its inputs, and runs again at R.
    offloaded
        Microbatches whose activations move to the host's memory at OFFLOAD and back at RELOAD.
    sends
        True if the stage's outputs go to another rank.
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
    """Return stage and microbatch of a rank's OFFLOADs, in their order."""
    return _of_kind(schedule, rank, Kind.OFFLOAD)


def _of_kind(schedule: Schedule, rank: int, kind: Kind) -> tuple[tuple[int, int], ...]:
    row = schedule.row(rank)
    chosen = row.kind == kind
    return tuple(zip(row.stage[chosen].tolist(), row.microbatch[chosen].tolist(), strict=True))
