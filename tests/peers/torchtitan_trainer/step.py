"""Steps of torchtitan's own Trainer on this rank: their gradients, and the order that the schedule holds."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import distribute_tensor

from tests.peers.torchtitan_trainer.jobs import Step, Trained


def answer_for_the_cpu() -> None:
    """Answer torchtitan's queries of its device, which it makes when it is imported, with the CPU."""
    cpu: Any = torch.cpu
    torch._utils._get_available_device_type = lambda: "cpu"
    cpu.get_device_name = lambda device=None: "CPU"
    cpu.get_device_properties = lambda device=None: SimpleNamespace(total_memory=1 << 40)
    cpu.memory_stats = lambda device=None: {}
    cpu.reset_peak_memory_stats = lambda device=None: None
    cpu.empty_cache = lambda: None
    cpu.current_device = lambda: 0


answer_for_the_cpu()

from torchtitan.config import ConfigManager  # noqa: E402
from torchtitan.distributed import ParallelDims  # noqa: E402
from torchtitan.trainer import Trainer  # noqa: E402


class OneOfMany(Trainer):
    """A Trainer that leaves the process group to the next one."""

    def init_distributed(self) -> ParallelDims:
        if not dist.is_initialized():
            return super().init_distributed()
        return ParallelDims.from_config(self.config.parallelism, dist.get_world_size())


def main(steps: list[Step]) -> list[Trained]:
    """Every step, each with a Trainer of its own."""
    done = []
    for step in steps:
        os.chdir(step.folder)
        done.append(trained(step))
    dist.destroy_process_group()
    return done


def trained(step: Step) -> Trained:
    trainer = OneOfMany(configured(step))
    try:
        for part in trainer.model_parts:
            for module in part.modules():
                # gloo has no mean.
                if isinstance(module, FSDPModule):
                    module.set_force_sum_reduction_for_comms(True)
        with torch.no_grad():
            for name, weight in weights(trainer):
                made = torch.Generator().manual_seed(zlib.crc32(name.encode()))
                drawn = torch.randn(weight.shape, generator=made) / 8
                weight.copy_(distribute_tensor(drawn, weight.device_mesh, weight.placements, src_data_rank=None))
        trainer.step = 1
        trainer.train_step(trainer.batch_generator(trainer.dataloader))
        return Trained(gradients(trainer), order(trainer))
    finally:
        trainer.close()


def configured(step: Step) -> Trainer.Config:
    words = ["--module", "tests.peers.torchtitan_trainer.small", "--config", step.config]
    config = ConfigManager().parse_args([*words, "--dump_folder", str(Path(step.folder) / "out"), *step.words])
    if not step.python:
        return config
    names: dict[str, Any] = {}
    exec(step.python, names)
    return names["scheduled"](config)


def weights(trainer: Trainer) -> Iterator[tuple[str, Any]]:
    """This rank's, each by its name in the model: recomputation puts one more between."""
    for part in trainer.model_parts:
        for name, weight in part.named_parameters():
            yield name.replace("._checkpoint_wrapped_module", ""), weight


def gradients(trainer: Trainer) -> dict[str, torch.Tensor | None]:
    found = {name: weight.grad for name, weight in weights(trainer)}
    return {name: None if grad is None else grad.full_tensor().clone() for name, grad in found.items()}


def order(trainer: Trainer) -> str:
    """This rank's ops in the order in which PyTorch runs them, without communication; empty without a pipeline."""
    if not trainer.parallel_dims.pp_enabled:
        return ""
    rank = trainer.parallel_dims.get_mesh("pp").get_local_rank()
    return ",".join(str(action) for action in trainer.pp_schedule.pipeline_order.get(rank, ()) if action is not None)
