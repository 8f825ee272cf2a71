"""The norm of all gradients of a pipeline, and their clipping."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


def total_norm(stages: Iterable[nn.Module], norm_type: float, group: Any, device: torch.device) -> Tensor:
    """The norm of the gradients of all ranks' stages together, a float32 scalar that is the same on all ranks of the group.

    Gradients that FSDP2 (or tensor parallelism) spreads over other ranks count as a whole.
    """
    norms = [torch.zeros((), device=device)]
    for parameters in _alike(stages):
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in parameters], norm_type)
        norms.append((norm.full_tensor() if isinstance(norm, DTensor) else norm).to(device, torch.float32))
    mine = torch.linalg.vector_norm(torch.stack(norms), norm_type)
    if math.isinf(norm_type):
        dist.all_reduce(mine, dist.ReduceOp.MAX, group=group)
        return mine
    powers = mine**norm_type
    dist.all_reduce(powers, group=group)
    return powers ** (1 / norm_type)


def clip(stages: Iterable[nn.Module], limit: float, norm: Tensor) -> None:
    """Scale gradients so that their norm, which is given, is at most the limit."""
    for parameters in _alike(stages):
        torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)


def _alike(stages: Iterable[nn.Module]) -> list[list[nn.Parameter]]:
    """Parameters with a gradient, each once, apart by how they are spread over ranks: only those are computed on at once."""
    parameters = {id(parameter): parameter for stage in stages for parameter in stage.parameters()}
    found: dict[Any, list[nn.Parameter]] = {}
    for parameter in parameters.values():
        if parameter.grad is not None:
            spread = parameter.grad.device_mesh if isinstance(parameter.grad, DTensor) else None
            found.setdefault(spread, []).append(parameter)
    return list(found.values())
