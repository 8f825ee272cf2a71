"""DeepSeek's DualPipe: its own ``step`` runs each rank with stages that write down what they compute.

Modules, autograd, the queue of weight backwards and the overlapped pairs are its own; only what arrives from other ranks
is made up, since a rank's order does not depend on it. The package 1.0.0 holds DualPipe alone, not DualPipeV, which
PyTorch has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dualpipe
import pytest
import torch
from dualpipe.utils import run_backward

from pipeplan.model import format_schedule
from pipeplan.strategies import Shape, strategy

RANKS = (2, 4, 6, 8, 10, 12)


@dataclass(frozen=True, slots=True)
class Group:
    """All that a step asks of a process group when nothing is sent."""

    ranks: int
    here: int

    def size(self) -> int:
        return self.ranks

    def rank(self) -> int:
        return self.here


class Compute(torch.autograd.Function):
    """A stage's forward and backward as words in the rank's order."""

    @staticmethod
    def forward(context: Any, values: torch.Tensor, weight: torch.Tensor, stage: "Stage") -> torch.Tensor:
        context.stage, context.microbatch = stage, stage.microbatch
        stage.words.append(f"{stage.number}F{stage.microbatch}")
        stage.microbatch += 1
        return values + weight

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        words, number, microbatch = context.stage.words, context.stage.number, context.microbatch
        split = dualpipe.WeightGradStore.enabled
        words.append(f"{number}{'I' if split else 'B'}{microbatch}")
        if split:
            dualpipe.WeightGradStore.put(lambda: words.append(f"{number}W{microbatch}"))
        return gradient, None, None


class Stage(torch.nn.Module):
    """A stage of the model for one direction; its microbatches are numbered from ``first``."""

    def __init__(self, number: int, first: int, words: list[str]) -> None:
        super().__init__()
        self.number, self.microbatch, self.words = number, first, words
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return Compute.apply(values, self.weight, self)

    @staticmethod
    def overlaped_forward_backward(
        forward: "Stage",
        inputs: list[torch.Tensor],
        criterion: Callable[..., torch.Tensor] | None,
        labels: list[torch.Tensor],
        backward: "Stage",
        loss: torch.Tensor | None,
        outputs: list[torch.Tensor],
        gradients: list[torch.Tensor],
    ) -> tuple[list[torch.Tensor], torch.Tensor | None]:
        """One word for the pair, in the name by which DualPipe finds that stages can overlap."""
        values = forward(*inputs)
        if loss is not None:
            loss.backward()
        else:
            run_backward(outputs, gradients)
        second, first = forward.words.pop(), forward.words.pop()
        forward.words.append(f"({first};{second})OVERLAP_F_B")
        return [values], None if criterion is None else criterion(values, *labels)


def their_order(ranks: int, microbatches: int, rank: int) -> str:
    """What a rank's ``step`` does, in our notation: the first half of the microbatches enters at rank 0."""
    words: list[str] = []
    half = microbatches // 2
    stages = (Stage(rank, 0, words), Stage(ranks - 1 - rank, half, words))
    pipe = dualpipe.DualPipe(stages, process_group=Group(ranks, rank))
    at_an_end = rank in (0, ranks - 1)
    batch = torch.ones(half, 1, requires_grad=True) if at_an_end else None
    labels = [torch.ones(half, 1)] if at_an_end else []
    pipe.step(batch, num_chunks=microbatches, criterion=lambda values, label: (values * label).sum(), labels=labels)
    return " ".join(words)


def arrives(operations: list[Any], source: int, group: Group) -> list[torch.Tensor]:
    return [torch.ones(1, 1, requires_grad=True)]


@pytest.fixture(autouse=True)
def without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent, what arrives is made up, and the device is the CPU."""
    monkeypatch.setattr("torch.cuda.current_device", lambda: "cpu")
    monkeypatch.setattr("dualpipe.comm.append_irecv", arrives)
    monkeypatch.setattr("dualpipe.comm.append_isend", lambda operations, tensors, target, group: None)
    monkeypatch.setattr("dualpipe.comm.TENSOR_SHAPES", [(1, 1)])
    monkeypatch.setattr("dualpipe.comm.TENSOR_DTYPE", torch.float32)


def test_the_same_order_on_every_rank(ran: Callable[[str], None]) -> None:
    shapes = [(ranks, microbatches) for ranks in RANKS for microbatches in range(2 * ranks, 2 * ranks + 14, 2)]
    for ranks, microbatches in shapes:
        ours = format_schedule(strategy("dualpipe")(Shape(ranks, microbatches))).splitlines()
        assert [their_order(ranks, microbatches, rank) for rank in range(ranks)] == ours
    ran(f"DualPipe.step against dualpipe, op by op with overlapped pairs: {len(shapes)} shapes")


def test_they_ask_for_two_microbatches_more() -> None:
    """Ours takes m >= 2p - 2, the least at which no phase has a negative length; theirs asks for 2p."""
    assert strategy("dualpipe")(Shape(4, 6)).microbatches == 6
    with pytest.raises(AssertionError, match="num_chunks=6"):
        their_order(4, 6, 0)
