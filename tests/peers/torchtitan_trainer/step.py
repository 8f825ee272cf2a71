"""One step of torchtitan's own Trainer on this rank for each case: its gradients and the order that its schedule holds."""

import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist

from tests.peers.torchtitan_trainer.on_cpu import answer_for_the_cpu

answer_for_the_cpu()

from torchtitan.config import ConfigManager  # noqa: E402
from torchtitan.trainer import Trainer  # noqa: E402


@dataclass(frozen=True)
class Case:
    """What a step is trained with.

    ``words`` are torchtitan's flags, ``config`` is the function of ``small`` that they change, ``folder`` the place that
    files are named from.
    """

    words: tuple[str, ...]
    folder: str
    config: str = "cross_entropy"


@dataclass
class Trained:
    """What a rank had after the step: gradients by name (None: there was none), and the loss where it is known."""

    gradients: dict[str, torch.Tensor | None] = field(default_factory=dict)
    loss: float | None = None
    error: str = ""


def main(cases: list[Case]) -> list[Trained]:
    """A step a case, each with a Trainer and a process group of its own."""
    port = int(os.environ["MASTER_PORT"])
    done = []
    for number, case in enumerate(cases):
        os.environ["MASTER_PORT"] = str(port + number)
        os.chdir(case.folder)
        done.append(trained(case))
    return done


def trained(case: Case) -> Trained:
    words = ["--module", "tests.peers.torchtitan_trainer.small", "--config", case.config, *case.words]
    config = ConfigManager().parse_args([*words, "--dump_folder", str(Path(case.folder) / "out")])
    trainer = Trainer(config)
    try:
        with torch.no_grad():
            for part in trainer.model_parts:
                for name, weight in part.named_parameters():
                    made = torch.Generator().manual_seed(zlib.crc32(name.encode()))
                    weight.to_local().copy_(torch.randn(weight.shape, generator=made) / 8)
        trainer.step = 1
        trainer.train_step(trainer.batch_generator(trainer.dataloader))
        return Trained(gradients=gradients(trainer))
    finally:
        trainer.close()
        dist.destroy_process_group()


def gradients(trainer: Trainer) -> dict[str, torch.Tensor | None]:
    found = {name: weight.grad for part in trainer.model_parts for name, weight in part.named_parameters()}
    return {name: None if grad is None else grad.full_tensor().clone() for name, grad in found.items()}
