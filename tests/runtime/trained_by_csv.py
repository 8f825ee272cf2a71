"""In a process of its own, one a rank: PyTorch's runtime trains one step by a CSV.

``python -m tests.runtime.trained_by_csv CSV FORM MICROBATCHES ANSWER``; FORM is what ``_load_csv`` takes. The relative
difference of the rank's gradients from those of a single process goes to ``ANSWER.RANK``.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

from pipeplan.formats import read_schedule

WIDTH, SAMPLES = 8, 4


def main(csv: Path, form: str, microbatches: int, answer: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, schedule = dist.get_rank(), read_schedule(csv)
    modules = [module(stage) for stage in range(schedule.stages)]
    # Samples of very different sizes: a loss of another microbatch makes another gradient.
    sizes = torch.arange(1, microbatches + 1).repeat_interleave(SAMPLES).float()[:, None]
    torch.manual_seed(1)
    inputs, targets = (sizes * torch.randn(SAMPLES * microbatches, WIDTH) for _ in range(2))
    held = schedule.placement.stages_on(rank)
    stages = [PipelineStage(modules[stage], stage, schedule.stages, torch.device("cpu")) for stage in held]
    live = _PipelineScheduleRuntime(stages, microbatches, loss_fn=nn.functional.mse_loss)
    live._load_csv(str(csv), format=form)
    given = (inputs,) if 0 in held else ()
    live.step(*given, target=targets if schedule.stages - 1 in held else None)
    alone = [module(stage) for stage in range(schedule.stages)]
    nn.functional.mse_loss(nn.Sequential(*alone)(inputs), targets).backward()
    pairs = [
        (mine.grad, other.grad)
        for stage in held
        for mine, other in zip(modules[stage].parameters(), alone[stage].parameters(), strict=True)
    ]
    difference = max(float((mine - other).norm() / other.norm()) for mine, other in pairs)
    Path(f"{answer}.{rank}").write_text(str(difference))
    dist.destroy_process_group()


def module(stage: int) -> nn.Module:
    torch.manual_seed(10 + stage)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
