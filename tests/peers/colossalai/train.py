"""In the process of a rank: ColossalAI's V scheduler runs the nodes that we export, and tells its gradients."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from colossalai.cluster import ProcessGroupMesh
from colossalai.interface import OptimizerWrapper
from colossalai.pipeline.schedule.v_schedule import ScheduledNode
from colossalai.pipeline.schedule.zero_bubble_pp import ZeroBubbleVPipeScheduler
from colossalai.pipeline.stage_manager import PipelineStageManager
from colossalai.pipeline.weight_grad_store import WeightGradStore

WIDTH, MICROBATCH_SIZE = 16, 2

if not hasattr(dist.Backend, "HCCL"):
    # With a PyTorch that has NCCL, ColossalAI looks up the backend of Huawei's devices by its name.
    dist.Backend.HCCL = "hccl"

Gradients = dict[int, torch.Tensor]
"""Of each stage's weight."""


@dataclass(frozen=True, slots=True)
class Case:
    """The text of our export ``zb-nodes``, a line a rank, and the microbatches of its schedule."""

    nodes: str
    microbatches: int


class SplitLinear(torch.autograd.Function):
    """A product with a weight, whose gradient is put off: ColossalAI's store computes it when the schedule says so."""

    @staticmethod
    def forward(context: Any, values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(values, weight)
        return values @ weight.T

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        values, weight = context.saved_tensors
        WeightGradStore.put(values, gradient, weight, weight_gradient)
        return gradient @ weight, None


def weight_gradient(values: torch.Tensor, gradient: torch.Tensor, into: torch.Tensor | None = None) -> torch.Tensor:
    found = gradient.T @ values
    return found if into is None else into.add_(found)


class Chunks(torch.nn.Module):
    """A rank's two chunks as ColossalAI calls them: one model, which asks the stage manager which chunk it is."""

    def __init__(self, stages: tuple[int, int], manager: PipelineStageManager) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(weight(stage)) for stage in stages])
        self.manager = manager

    def forward(
        self, inputs: torch.Tensor, targets: torch.Tensor, stage_index: Any, hidden: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        values = inputs.requires_grad_() if hidden is None else hidden
        # ColossalAI empties what a stage gives once it is sent, so the last op must not keep its output.
        return {"hidden": SplitLinear.apply(torch.tanh(values), self.weights[self.manager.model_chunk_id])}

    def no_sync(self) -> AbstractContextManager[None]:
        return nullcontext()


def weight(stage: int) -> torch.Tensor:
    """A stage's weight, the same in every process."""
    generator = torch.Generator().manual_seed(stage)
    return torch.randn(WIDTH, WIDTH, generator=generator, dtype=torch.float64) / WIDTH**0.5


def batch_of(microbatches: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(microbatches)
    shape = microbatches * MICROBATCH_SIZE, WIDTH
    inputs = torch.randn(shape, generator=generator, dtype=torch.float64)
    return {"inputs": inputs, "targets": inputs.flip(1)}


def loss_of(outputs: dict[str, torch.Tensor], batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.nn.functional.mse_loss(outputs["hidden"], batch["targets"])


def alone(ranks: int, microbatches: int) -> tuple[float, Gradients]:
    """The loss and each stage's gradients in one process, without a pipeline."""
    weights = [weight(stage).requires_grad_() for stage in range(2 * ranks)]
    batch = batch_of(microbatches)
    values = batch["inputs"]
    for stage in weights:
        values = torch.tanh(values) @ stage.T
    loss = loss_of({"hidden": values}, batch)
    gradients = torch.autograd.grad(loss, weights)
    return float(loss), dict(enumerate(gradients))


def nodes_of(text: str) -> list[list[ScheduledNode]]:
    """ColossalAI's nodes from our lines of ``KIND.chunk.microbatch@time``; its B is our I, a star marks a rollback."""
    return [[node_of(word, rank) for word in line.split()] for rank, line in enumerate(text.splitlines())]


def node_of(word: str, rank: int) -> ScheduledNode:
    what, time = word.split("@")
    kind, chunk, microbatch = what.split(".")
    return ScheduledNode(
        type="B" if kind == "I" else kind,
        chunk=int(chunk),
        stage=rank,
        minibatch=int(microbatch),
        start_time=float(time.rstrip("*")),
        rollback=time.endswith("*"),
    )


def in_pipeline(case: Case, manager: PipelineStageManager) -> tuple[float | None, Gradients]:
    """The loss, on rank 0, and the gradients of this rank's two stages after a step of ColossalAI's scheduler."""
    ranks, rank = int(manager.num_stages), int(manager.stage)
    stages = rank, 2 * ranks - 1 - rank
    manager.stage_indices = [(stage, stage + 1) for stage in stages]
    model = Chunks(stages, manager)
    scheduler = ZeroBubbleVPipeScheduler(
        manager, nodes_of(case.nodes), num_model_chunks=2, num_microbatch=case.microbatches
    )
    step = scheduler.forward_backward_step(
        model,
        iter([batch_of(case.microbatches)]),
        loss_of,
        OptimizerWrapper(torch.optim.SGD(model.parameters(), lr=0.0)),
        return_loss=True,
    )
    loss = None if step["loss"] is None else float(step["loss"])
    return loss, {stage: parameter.grad for stage, parameter in zip(stages, model.weights, strict=True)}


def differences(found: tuple[float | None, Gradients], expected: tuple[float, Gradients]) -> tuple[float, float]:
    """Of the losses, where this rank has one, and the largest of the gradients."""
    loss, gradients = found
    apart = [float((gradient - expected[1][stage]).abs().max()) for stage, gradient in gradients.items()]
    return 0.0 if loss is None else abs(loss - expected[0]), max(apart)


def main(cases: list[Case]) -> list[tuple[float, float]]:
    """For each case the differences of the loss and of this rank's gradients from a run without a pipeline."""
    # Asked for where PyTorch is built without NCCL; only the PyTorch for Ascend has it.
    vars(dist).setdefault("is_hccl_available", lambda: False)
    dist.init_process_group("gloo")
    ranks = dist.get_world_size()
    manager = PipelineStageManager(ProcessGroupMesh(ranks), 0, enable_interleave=True, use_zbv=True, num_model_chunks=2)
    found = [differences(in_pipeline(case, manager), alone(ranks, case.microbatches)) for case in cases]
    dist.destroy_process_group()
    return found
