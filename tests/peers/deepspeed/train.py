"""In the process of a rank: DeepSpeed's engine trains by schedules and by its own order, as the example does."""

from pathlib import Path

import deepspeed
import torch

from examples import deepspeed_schedule
from pipeplan.model import parse_schedule


def main(job: tuple[Path, list[str]]) -> tuple[int, list[float]]:
    """The example's exit code for a file, and the largest difference of losses and of this rank's weights for each order.

    The orders are in our notation.
    """
    plan, orders = job
    # Else it compiles, in minutes, an all-reduce over shared memory; a pipeline of one replica reduces nothing.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    code = deepspeed_schedule.main([str(plan), "--steps", "1"])
    differences = []
    for text in orders:
        schedule = parse_schedule(text)
        own, planned = (deepspeed_schedule.train(schedule, 8, 2, planned=planned) for planned in (False, True))
        differences.append(max(float((a - b).abs().max()) for a, b in zip(own, planned, strict=True)))
    torch.distributed.destroy_process_group()
    return code, differences
