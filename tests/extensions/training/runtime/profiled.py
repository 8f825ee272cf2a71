"""In a process of its own, one a rank: PyTorch's own schedules under its profiler, two pipeline ranks x FSDP on the others.

Each schedule's traces go to ``FOLDER/SCHEDULE/rankK.json.gz``: two steps each.
"""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe, ScheduleInterleavedZeroBubble
from torch.profiler import ProfilerActivity, profile

CLASSES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "zero-bubble": ScheduleInterleavedZeroBubble}

PIPELINE, MICROBATCHES, WIDTH = 2, 4, 128


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (PIPELINE, dist.get_world_size() // PIPELINE), mesh_dim_names=("pp", "dp"))
    for name in CLASSES:
        (folder / name).mkdir(exist_ok=True)
        record(name, mesh, folder / name / f"rank{dist.get_rank()}.json.gz")
    dist.destroy_process_group()


def record(name: str, mesh: DeviceMesh, path: Path) -> None:
    """Trains two steps after an untimed one."""
    rank, chunks = mesh.get_local_rank("pp"), 2 if name == "zero-bubble" else 1
    stages = [stage(PIPELINE * chunk + rank, PIPELINE * chunks, mesh) for chunk in range(chunks)]
    # Both sorts of schedules take what is theirs: one stage, or a list.
    live = CLASSES[name](stages if chunks > 1 else stages[0], MICROBATCHES, loss_fn=nn.functional.mse_loss)
    inputs = (torch.randn(16 * MICROBATCHES, WIDTH),) if rank == 0 else ()
    targets = {"target": torch.randn(16 * MICROBATCHES, WIDTH)} if rank == PIPELINE - 1 else {}
    live.step(*inputs, **targets)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        live.step(*inputs, **targets)
        live.step(*inputs, **targets)
    recorded.export_chrome_trace(str(path))


def stage(number: int, stages: int, mesh: DeviceMesh) -> PipelineStage:
    torch.manual_seed(number)
    module = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    fully_shard(module, mesh=mesh["dp"], reshard_after_forward=False)
    return PipelineStage(module, number, stages, torch.device("cpu"), group=mesh.get_group("pp"))
