"""In a process of its own, one a rank: what Megatron-core trains, recorded by PyTorch's profiler with its ops marked."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

from tests.peers.megatron.flags import configured
from tests.peers.megatron.on_cpu import on_cpu
from tests.peers.megatron.run import Case, train

EXAMPLE = Path(__file__).parents[3] / "examples" / "mark_megatron.py"


@dataclass(frozen=True)
class Traced:
    """What to train, and the folder for the ranks' traces, a folder a case."""

    cases: tuple[Case, ...]
    folder: str


def main(job: Traced) -> None:
    """Trains two steps of every case, of as many ranks as there are processes, and leaves this rank's traces."""
    torch.set_num_threads(1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    try:
        with on_cpu():
            example().mark(rank, ranks)
            for case in job.cases:
                done = configured(case.text, layers_per_stage=case.layers_per_stage)
                with profile(activities=[ProfilerActivity.CPU]) as recorded:
                    train(done)
                    train(done)
                folder = Path(job.folder) / case.name
                folder.mkdir(exist_ok=True)
                recorded.export_chrome_trace(str(folder / f"rank{rank}.json.gz"))
    finally:
        dist.destroy_process_group()


def example() -> ModuleType:
    """The example's module, as a user has it beside the training script."""
    spec = importlib.util.spec_from_file_location("mark_megatron", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
