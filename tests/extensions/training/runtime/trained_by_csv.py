"""In a process of its own, one a rank: PyTorch's runtime trains one step by each of a folder's CSV files.

A file is called ``NAME.FORM.csv``; FORM is what ``_load_csv`` takes.
"""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

import pipeplan

WIDTH, SAMPLES = 8, 4


def main(folder: Path) -> dict[str, float]:
    """Return the relative difference of the rank's gradients from those of a single process, by file."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    differences = {csv.stem: difference(csv) for csv in sorted(folder.glob("*.csv"))}
    dist.destroy_process_group()
    return differences


def difference(csv: Path) -> float:
    """Train a step by a file."""
    schedule = pipeplan.read_schedule(csv)
    held, microbatches = schedule.placement.stages_on(dist.get_rank()), schedule.microbatches
    modules, alone = ([module(stage) for stage in range(schedule.stages)] for _ in range(2))
    # Samples of very different sizes: a loss of another microbatch makes another gradient.
    sizes = torch.arange(1, microbatches + 1).repeat_interleave(SAMPLES).float()[:, None]
    torch.manual_seed(1)
    inputs, targets = (sizes * torch.randn(SAMPLES * microbatches, WIDTH) for _ in range(2))
    stages = [PipelineStage(modules[stage], stage, schedule.stages, torch.device("cpu")) for stage in held]
    live = _PipelineScheduleRuntime(stages, microbatches, loss_fn=loss)
    live._load_csv(str(csv), format=csv.stem.rpartition(".")[2])
    source = (inputs,) if 0 in held else ()
    live.step(*source, target=targets if schedule.stages - 1 in held else None)
    loss(nn.Sequential(*alone)(inputs), targets).backward()
    pairs = [
        (mine.grad, other.grad)
        for stage in held
        for mine, other in zip(modules[stage].parameters(), alone[stage].parameters(), strict=True)
    ]
    return max(float((mine - other).norm() / other.norm()) for mine, other in pairs)


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean square; autograd keeps the difference and not the output, which PyTorch detaches in place."""
    return (outputs - targets).square().mean()


def module(stage: int) -> nn.Module:
    torch.manual_seed(10 + stage)
    return nn.Sequential(nn.Tanh(), nn.Linear(WIDTH, WIDTH))
