"""A step by an exported CSV, in the schedule that torchtitan builds from its settings, in one process a rank."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torchtitan.config import ParallelismConfig
from torchtitan.distributed.pipeline_parallel import _build_pipeline_schedule

WIDTH = 4


@dataclass(frozen=True)
class Step:
    """The fields of ``ParallelismConfig`` that are set, microbatches, and the rank of each stage."""

    parallelism: dict[str, Any]
    microbatches: int
    rank_of: tuple[int, ...]


def layer(stage: int) -> torch.nn.Module:
    """A stage's module, the same in every process."""
    made = torch.Generator().manual_seed(stage)
    linear = torch.nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=made, dtype=torch.float64))
    return torch.nn.Sequential(linear, torch.nn.Tanh())


def batch(microbatches: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A sequence a microbatch, and what each should become: no two are alike."""
    made = torch.Generator().manual_seed(1)
    inputs, targets = torch.randn(2, microbatches, WIDTH, generator=made, dtype=torch.float64)
    return inputs, targets


def loss_of(output: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, None]:
    """The loss, and no metrics, as torchtitan's losses return them."""
    return (output - target).pow(4).sum(), None


def gradients(stages: Mapping[int, torch.nn.Module]) -> dict[str, torch.Tensor]:
    return {
        f"{stage}.{name}": parameter.grad.clone()
        for stage, module in stages.items()
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }


def in_one_process(step: Step) -> dict[str, torch.Tensor]:
    """The gradients of the whole model, microbatch by microbatch."""
    stages = {stage: layer(stage) for stage in range(len(step.rank_of))}
    inputs, targets = batch(step.microbatches)
    for each, target in zip(inputs.split(1), targets.split(1), strict=True):
        loss_of(torch.nn.Sequential(*stages.values())(each), target)[0].backward()
    return gradients(stages)


def main(steps: list[Step]) -> list[dict[str, torch.Tensor]]:
    """This rank's gradients of each step."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    try:
        return [trained(step, dist.get_rank()) for step in steps]
    finally:
        dist.destroy_process_group()


def trained(step: Step, rank: int) -> dict[str, torch.Tensor]:
    own = {stage: layer(stage) for stage, at in enumerate(step.rank_of) if at == rank}
    count, device = len(step.rank_of), torch.device("cpu")
    schedule = _build_pipeline_schedule(
        parallelism=ParallelismConfig(**step.parallelism),
        local_batch_size=step.microbatches,
        stages=[PipelineStage(module, stage, count, device) for stage, module in own.items()],
        loss_fn=loss_of,
    )
    inputs, targets = batch(step.microbatches)
    last = count - 1 in own
    schedule.step(*([inputs] if 0 in own else []), target=targets if last else None, losses=[] if last else None)
    return gradients(own)
