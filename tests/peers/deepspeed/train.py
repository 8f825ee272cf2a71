"""In the process of a rank: DeepSpeed's engine trains by schedules and by its own order, as the example does."""

import deepspeed
import torch

from examples.deepspeed_schedule import train
from pipeplan.model import parse_schedule


def main(schedules: list[str]) -> list[float]:
    """The largest difference of losses and of this rank's weights for each schedule, in our notation."""
    # Else it compiles, in minutes, an all-reduce over shared memory; a pipeline of one replica reduces nothing.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
    differences = []
    for text in schedules:
        schedule = parse_schedule(text)
        own, planned = (train(schedule, layers=8, steps=2, planned=planned) for planned in (False, True))
        differences.append(max(float((a - b).abs().max()) for a, b in zip(own, planned, strict=True)))
    torch.distributed.destroy_process_group()
    return differences
