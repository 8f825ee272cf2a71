"""Models that the tests' processes load by name: small ones, and ones that misbehave on rank 1."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from threading import Event

import torch
from torch import Tensor, nn

from pipeplan.extensions.training.runtime.models import GPT
from pipeplan.runtime import Model

TINY = GPT(blocks=6, width=32, heads=2, length=16, vocabulary=32, microbatch=2)

not_a_function = 3


def tiny() -> Model:
    return TINY.model("tiny")


class TiedHead(nn.Module):
    """The head whose weight is the embedding's."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.weight = embedding.weight

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight)


def tied() -> Model:
    """The embedding's weight is the head's, too; both are made with the model."""
    torch.manual_seed(5)
    embedding = TINY.embedding()
    head = TiedHead(embedding.token)
    model = tiny()
    return replace(model, name="tied", layers=(lambda: embedding, *model.layers[1:-1], lambda: head))


def tied_blocks() -> Model:
    """All blocks are one, which the first of them to be built makes."""
    model = tiny()
    block = cache(TINY.block)
    return replace(model, name="tied blocks", layers=(model.layers[0], *(block,) * TINY.blocks, model.layers[-1]))


def raises() -> Model:
    raise ValueError("no such data\nand more")


def returns_layers() -> list[nn.Module]:
    return [nn.Linear(2, 2)]


def layer_is_no_module() -> Model:
    return replace(tiny(), layers=(*TINY.model("tiny").layers[:-1], lambda: 3))


def batch_is_one_tensor() -> Model:
    return replace(tiny(), batch=lambda _: torch.zeros(2))


class Trouble(nn.Module):
    """Does as it should twice (PyTorch looks at shapes first, then comes microbatch 0), and then something else."""

    def __init__(self, trouble: Callable[[], None]) -> None:
        super().__init__()
        self.trouble = trouble
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if os.environ.get("RANK") == "1" and self.calls == 3:
            self.trouble()
        return x


def _with(trouble: Callable[[], None]) -> Model:
    model = tiny()
    layers = (*model.layers[:-1], lambda: Trouble(trouble), model.layers[-1])
    return replace(model, layers=layers, weights=None, roles=None)


def dies() -> Model:
    return _with(lambda: os.kill(os.getpid(), signal.SIGKILL))


def hangs() -> Model:
    return _with(lambda: time.sleep(600))


def fails() -> Model:
    def trouble() -> None:
        raise RuntimeError("the disk is full\nsecond line")

    return _with(trouble)


def returns_nothing():
    print("here I am")


def never_returns():
    Event().wait()
